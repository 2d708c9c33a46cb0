"""One run of one hook: what it reads on stdin, and the slot that its process takes."""

from __future__ import annotations

from typing import Final, Self

import msgspec

from keryx.decoding import json_decoder
from keryx.engine.calls.call import Call
from keryx.engine.calls.slots import Slots
from keryx.errors import HookFailedError
from keryx.messages import Outcome
from keryx.ports.hook_programs import HookAnswer, HookEvent, HookProgram

_decode_object: Final = json_decoder(dict[str, msgspec.Raw]).decode


class HookRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The JSON object that a hook reads."""

    event: HookEvent
    session_id: str
    call_id: str
    tool: str
    input: msgspec.Raw
    workspace: str
    outcome: Outcome | None = None
    result: msgspec.Raw | None = None

    @classmethod
    def of(
        cls,
        event: HookEvent,
        call: Call,
        text: str,
        *,
        outcome: Outcome | None = None,
        result: msgspec.Raw | None = None,
    ) -> Self:
        """Return the request about this call; `text` is its input as JSON."""
        return cls(
            event=event,
            session_id=call.environment.session_id,
            call_id=call.call_id,
            tool=call.tool.name,
            input=msgspec.Raw(text.encode()),
            workspace=str(call.workspace),
            outcome=outcome,
            result=result,
        )


def input_text(call: Call) -> str:
    """Return the present input of the call as the text of a JSON object."""
    arguments = call.arguments or call.raw
    try:
        if isinstance(arguments, str | bytes):
            text = arguments if isinstance(arguments, str) else arguments.decode()
            text = text if text.strip() else "{}"
            _decode_object(text)
            return text
        return msgspec.json.encode(dict(arguments or {})).decode()
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise HookFailedError(f"the input cannot be passed to a hook: {error}") from error


async def run_hook(
    program: HookProgram, request: HookRequest, call: Call, slots: Slots
) -> HookAnswer:
    """Run the hook as a process of this call. `HookFailedError` if it gives no valid answer."""
    session_id = call.environment.session_id
    await slots.take(session_id)
    try:
        return await program.run(msgspec.json.encode(request), call.scope)
    finally:
        slots.release(session_id)
