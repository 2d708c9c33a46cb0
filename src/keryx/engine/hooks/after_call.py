"""Runs the hooks after a call that completed or failed. They may change what the model sees of it.

The work is done, so a hook that fails, or is cancelled with its call, changes nothing: the result
stays, and a note says what happened. The call holds its effects meanwhile, so that a hook may still
work on the files that the call has written.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from keryx.decoding import convert
from keryx.engine.calls.call import Call
from keryx.engine.calls.call_outcome import Ending
from keryx.engine.calls.slots import Slots
from keryx.engine.calls.truncation import bounded
from keryx.engine.hooks.running import HookRequest, input_text, run_hook
from keryx.errors import HookFailedError, ToolCancelledError
from keryx.messages import HookAction, Json, Part, Text, well_formed
from keryx.ports.hook_programs import HookAnswer, HookProgram

SPARE: Final = 1.0
"""Seconds for the start and the end of a hook beside its own timeout."""


async def review_result(call: Call, ending: Ending, slots: Slots) -> Ending:
    """Return how the call ended, as its hooks leave it."""
    programs = call.environment.programs
    if programs is None or ending.outcome not in ("completed", "failed"):
        return ending
    hooks = programs.matching("after_call", call.tool.name)
    if not hooks or call.scope.is_cancelled:
        return ending
    call.phase = "reviewing"
    for program in hooks:
        if call.tool.timeout is not None:
            # The tool has returned in time; its timeout is not one for hooks.
            call.cancel_after(program.timeout + SPARE)
        try:
            answer = await _ask(call, program, ending, slots)
        except HookFailedError as error:
            _note(call, program, "fault", str(error))
            continue
        except (asyncio.CancelledError, ToolCancelledError):
            if not call.scope.is_cancelled:
                raise
            _note(call, program, "fault", "it was ended, because the call was cancelled")
            break
        ending = _applied(call, program, answer, ending)
    return ending


async def _ask(call: Call, program: HookProgram, ending: Ending, slots: Slots) -> HookAnswer:
    try:
        request = HookRequest.of(
            "after_call",
            call,
            input_text(call),
            outcome=ending.outcome,
            result=_shown(bounded(call.environment.redactor.content(ending.content))),
        )
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise HookFailedError(f"the result cannot be passed to it: {error}") from error
    return await run_hook(program, request, call, slots)


def _applied(call: Call, program: HookProgram, answer: HookAnswer, ending: Ending) -> Ending:
    if answer.result is not None:
        _note(call, program, "result", "")
        content = _content(answer.result)
        ending = msgspec.structs.replace(ending, content=content, exact=False)
    if answer.note is not None:
        _note(call, program, "note", answer.note)
    return ending


def _note(call: Call, program: HookProgram, action: str, detail: str) -> None:
    detail = call.environment.redactor.text(well_formed(detail))
    values = {"hook": program.name, "event": "after_call", "action": action, "detail": detail}
    call.actions.append(convert(values, HookAction))


def _shown(content: tuple[Part, ...]) -> msgspec.Raw:
    """Return a result as one JSON value: a text, a value, or a list of parts."""
    match content:
        case ():
            return msgspec.Raw(b"null")
        case (Text(text=text),):
            return msgspec.Raw(msgspec.json.encode(text))
        case (Json(value=value),):
            return value
        case _:
            return msgspec.Raw(msgspec.json.encode(content))


def _content(value: msgspec.Raw) -> tuple[Part, ...]:
    decoded: object = msgspec.json.decode(value)
    if decoded is None:
        return ()
    return (Text(decoded),) if isinstance(decoded, str) else (Json(msgspec.Raw(bytes(value))),)
