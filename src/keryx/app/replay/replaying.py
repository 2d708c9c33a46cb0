"""Runs a recorded turn again through the engine, in a home of its own that is gone afterwards.

No tool runs, except those that the caller passes: a call gets its recorded result if the same call
was recorded, and is marked as different otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.app.handles import SessionHandle, TurnResult
from keryx.app.library import Keryx
from keryx.app.portable.importing import write_session
from keryx.app.portable.session_file import SessionFile
from keryx.app.replay.recording import (
    JoinedMessage,
    RecordedResults,
    RecordedTurn,
    history_before,
    recorded_turns,
    shown_result,
)
from keryx.app.replay.steering import SteeredModel
from keryx.commands import SendMessage
from keryx.config import IN_MEMORY
from keryx.engine.money.spent import Amount
from keryx.errors import ToolFailedError
from keryx.events import StepReplied
from keryx.messages import File, Image, text_of
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.effects import NO_EFFECTS, Effects
from keryx.ports.model import Model
from keryx.ports.tool import Isolation, Replay, Risk, Tool
from keryx.ports.tool_context import ToolContext

NOT_RECORDED: Final = "[replay: this call was not recorded, so it has no result and did not run]"
_ANY: Final[Mapping[str, Any]] = {"type": "object"}


class ReplayedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the replay, its arguments as the model wrote them, and its result as text."""

    tool: str
    arguments: str
    result: str
    is_recorded: bool


class ReplayedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """How the turn went this time."""

    message: str
    result: TurnResult
    joined: tuple[JoinedMessage, ...]
    """The messages that joined it."""
    texts: tuple[str, ...]
    """The text of each reply."""
    calls: tuple[ReplayedCall, ...]
    amount: Amount
    seconds: float


class RecordedTool:
    """Answers calls of one tool from a log. It does nothing else."""

    isolation: Isolation = "loop"
    replay: Replay = "safe"
    timeout: float | None = None
    container = False

    def __init__(
        self, name: str, real: Tool | None, results: RecordedResults, missing: set[str]
    ) -> None:
        """`real` describes the tool to the model; `missing` gets the calls without a result."""
        self.name = name
        self.description = f"The tool {name}." if real is None else real.description
        self.parameters = _ANY if real is None else real.parameters
        self._results = results
        self._missing = missing

    def parse(self, arguments: bytes | str | Mapping[str, Any]) -> str:
        if isinstance(arguments, bytes):
            return arguments.decode()
        return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()

    def effects(self, args: Any) -> Effects:
        del args
        return NO_EFFECTS

    def risk(self, args: Any, workspace: Path) -> Risk:
        del args, workspace
        return Risk("none")

    def preview(self, args: Any) -> str:
        return str(args)[:80]

    async def invoke(self, args: Any, context: ToolContext) -> str:
        result = self._results.take(self.name, args)
        if result is None:
            self._missing.add(context.call_id)
            raise ToolFailedError(NOT_RECORDED)
        if result.outcome == "failed":
            raise ToolFailedError(text_of(result.result))
        if result.outcome != "completed":
            raise ToolFailedError(shown_result(result))
        return text_of(result.result)


def recorded_model(turn: RecordedTurn) -> ScriptedModel:
    """Return a model that gives the recorded replies of a turn."""
    replies = [
        ScriptedReply(
            text=reply.text,
            reasoning=reply.reasoning,
            calls=[ScriptedCall(call.tool, call.arguments) for call in reply.calls],
            usage=reply.usage,
            cost=reply.cost,
            piece=1_000,
            stop=reply.stop_reason or "",
        )
        for reply in turn.replies
    ]
    return ScriptedModel(replies, name="scripted:recorded", is_priced=True)


async def replay_turn(
    session: SessionFile,
    turn: RecordedTurn,
    model: Model,
    *,
    descriptions: Mapping[str, Tool],
    tools: Sequence[Tool | Callable[..., Any]] = (),
    workspace: Path,
) -> ReplayedTurn:
    """Run a turn again with this model. `descriptions` describes tools; `tools` run for real.

    Messages that joined the turn join it again, after the same reply. `workspace` is an absolute
    path; only tools that run for real use it.
    """
    opened, steered = session.events[0], SteeredModel(model, turn.joined)
    results, missing = RecordedResults(turn), set[str]()
    real_names = {getattr(tool, "name", getattr(tool, "__name__", "")) for tool in tools}
    names = {*getattr(opened, "tools", ()), *(call.tool for r in turn.replies for call in r.calls)}
    recorded = [
        RecordedTool(name, descriptions.get(name), results, missing)
        for name in sorted(names - real_names)
        if name
    ]
    async with Keryx(
        model=steered, tools=[*recorded, *tools], home=IN_MEMORY, workspace=workspace
    ) as app:
        offered = sorted({*names, *real_names})
        before = history_before(
            session, turn, model=model.name, tools=offered, workspace=str(workspace)
        )
        session_id = await write_session(app.store, before, turn.message.at)
        handle = await app.open(session_id)

        async def steer(message: JoinedMessage) -> None:
            files = await _uploaded(app, session, message.attachments)
            await handle.tell(
                SendMessage, text=message.text, mode="steer", wait=True, attachments=tuple(files)
            )

        steered.steer = steer
        return await _run(app, session, handle, turn, missing)


async def _uploaded(
    app: Keryx, session: SessionFile, attachments: Sequence[Image | File]
) -> list[Image | File]:
    blobs = {blob.hash: blob.data for blob in session.blobs}
    return [
        await app.upload(blobs[file.blob], file.name, file.media_type)
        for file in attachments
        if file.blob in blobs
    ]


async def _run(
    app: Keryx, session: SessionFile, handle: SessionHandle, turn: RecordedTurn, missing: set[str]
) -> ReplayedTurn:
    session_id, message = handle.session_id, turn.message
    attachments = await _uploaded(app, session, message.attachments)
    sent = await handle.send(message.text, schema=message.schema, attachments=attachments)
    result = await sent.result()
    turns = recorded_turns(await app.store.events(session_id))
    joined = turns[-1].joined if turns else ()
    log = [
        event
        for event in await app.store.events(session_id)
        if getattr(event, "turn_id", None) == sent.turn_id
    ]
    replies = [event for event in log if isinstance(event, StepReplied)]
    results = {call.call_id: call for call in result.calls}
    calls = tuple(
        ReplayedCall(
            tool=call.tool,
            arguments=call.arguments,
            result="" if call.call_id not in results else shown_result(results[call.call_id]),
            is_recorded=call.call_id not in missing,
        )
        for reply in replies
        for call in reply.calls
    )
    amount = Amount()
    for reply in replies:
        amount += Amount.of(reply)
    return ReplayedTurn(
        message=turn.message.text,
        result=result,
        joined=joined,
        texts=tuple(reply.text for reply in replies),
        calls=calls,
        amount=amount,
        seconds=log[-1].at - log[0].at,
    )
