"""Handles for a session and a turn: send messages, read events, wait for results."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Final, overload

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.app.host_client import HostClient
from keryx.app.services.places import find_workspace
from keryx.errors import DeveloperMustActError
from keryx.ids import new_id
from keryx.messages import Decision, File, Image, Mode, Reach, Reason
from keryx.ports.dispatch import Answer, Done, Sent
from keryx.ports.view import SessionView

BY: Final = "program"
"""The author of a command, unless the program names one."""


class TurnResult(msgspec.Struct, frozen=True):
    """How a turn ended."""

    outcome: ev.TurnOutcome
    text: str
    usage: ev.Usage
    cost: float | None
    calls: tuple[ev.CallFinished, ...]
    left_over: tuple[str, ...]
    reason: str | None
    error: ev.TurnError | None
    data: Any = None
    """The answer as a value that fits the schema of the message. None without a schema."""


class SessionHandle:
    """One session: sends it messages and commands, and reads its events."""

    def __init__(self, host_client: HostClient, session_id: str) -> None:
        self._host_client = host_client
        self.session_id = session_id

    async def send(
        self,
        text: str,
        *,
        key: str | None = None,
        schema: str | None = None,
        attended: bool = False,
        attachments: Sequence[Image | File] = (),
        workspace: str | None = None,
        replaces: str | None = None,
        revert: bool = False,
    ) -> TurnHandle:
        """Send a message; returns once the message is durable.

        `schema` is the text of a JSON schema. The answer fits it and is in the result as `data`, or
        the turn fails (`bad_response`) after the model got one correction. `attended` says that
        someone will `answer` the approvals of the turn; otherwise calls that need one are denied.
        Upload attachments first (`Keryx.upload`). Without `workspace`, the session's is used.
        `replaces` names a turn that makes room for this one, with all turns after it; `revert`
        reverts their file changes, and `restore` brings them back.
        """
        return await self._send(
            text,
            "queue",
            key=key,
            schema=schema,
            attended=attended,
            attachments=attachments,
            workspace=workspace,
            replaces=replaces,
            revert=revert,
        )

    async def steer(self, text: str, *, wait: bool = False, key: str | None = None) -> TurnHandle:
        """Send a message to the running turn: now, or after the present step with `wait`."""
        return await self._send(text, "steer", wait=wait, key=key)

    async def interrupt(self, text: str, *, key: str | None = None) -> TurnHandle:
        """Cancel the running turn; this message starts the next one."""
        return await self._send(text, "interrupt", key=key)

    async def answer(
        self,
        approval_id: str,
        decision: Decision,
        *,
        reach: Reach | None = None,
        by: str = BY,
    ) -> None:
        """Decide on a call that waits. The first answer wins; later ones: `AlreadyTakenError`.

        `reach` is one of the offers of the approval, for `session` and `always`; None: the first.
        """
        target = {"approval_id": approval_id, "where": "program"}
        await self.tell(cm.AnswerApproval, by=by, decision=decision, reach=reach, **target)

    async def answer_question(self, question_id: str, answer: str, *, by: str = BY) -> None:
        """Answer a question. The first answer wins; later ones: `AlreadyTakenError`."""
        target = {"question_id": question_id, "where": "program"}
        await self.tell(cm.AnswerQuestion, by=by, answer=answer, **target)

    async def run(
        self, tool: str, arguments: str = "{}", *, attended: bool = True
    ) -> AsyncGenerator[ev.Event]:
        """Run a tool without a model; yield its events until its `call.finished`.

        The approvals and questions of nested calls are included. `attended` says that someone will
        `answer` them; otherwise calls that need an approval are denied.
        """
        row = await self._host_client.store.session(self.session_id)
        call_id = new_id("k")
        await self.tell(
            cm.RunCall, call_id=call_id, tool=tool, arguments=arguments, attended=attended
        )
        after = 0 if row is None else row.last_seq
        async for event in await self._host_client.follow(self.session_id, after=after):
            if _belongs_to(event, call_id):
                yield event
            if isinstance(event, ev.CallFinished) and event.call_id == call_id:
                return

    async def view(self) -> SessionView:
        """Return the present state: settings, queue, running calls, open questions and so on."""
        return await self._host_client.view(self.session_id)

    async def change(self, **settings: Any) -> None:
        """Change settings: model, effort, workspace, tools, personality, title and others."""
        await self.tell(cm.ChangeSession, **settings)

    async def fork(self, turn_id: str | None = None) -> SessionHandle:
        """Create a session with the history of this one up to the end of that turn; None: all."""
        new_session_id = new_id("s")
        await self.tell(cm.ForkSession, new_session_id=new_session_id, turn_id=turn_id)
        return SessionHandle(self._host_client, new_session_id)

    async def compact(self, focus: str = "") -> None:
        """Replace the history that the model gets by a summary; the log keeps everything.

        The last turns stay as they are; `focus` is what the summary keeps above all. Returns when
        that is done. `UserMustActError` if a summary would save nothing, `ModelError` if no model
        can write it.
        """
        await self.tell(cm.CompactContext, focus=focus)

    async def undo(self, turn_id: str, *, files: bool = True) -> None:
        """Remove a turn from the model's context, and revert its files unless `files` is false.

        `UserMustActError` if one of these files was edited since.
        """
        await self.tell(cm.UndoTurn, turn_id=turn_id, files=files)

    async def restore(self, turn_id: str) -> None:
        """Bring back a turn that another one replaced; not while a turn is running."""
        await self.tell(cm.RestoreTurn, turn_id=turn_id)

    async def diff(self) -> str:
        """Return a diff of all files that the session changed, against their present content."""
        return await self._host_client.diff(self.session_id)

    async def revert(self, changes: Sequence[int]) -> None:
        """Revert changes of files, given by the `seq` of their `files.changed`: all or none."""
        await self.tell(cm.RevertFiles, changes=tuple(changes))

    async def tell(self, kind: type[cm.Command], *, by: str = BY, **fields: Any) -> Answer:
        """Send the session a command; returns once it is durable."""
        if isinstance(workspace := fields.get("workspace"), str | Path):
            folder = await self._host_client.to_thread(partial(find_workspace, workspace))
            fields["workspace"] = str(folder)
        command = kind(command_id=new_id("c"), session_id=self.session_id, by=by, **fields)
        return await self._host_client.tell(command)

    async def events(self, after: int = 0) -> AsyncGenerator[ev.Event]:
        """Yield the logged events after that number, then each new event, live ones included."""
        async with aclosing(await self.follow(after)) as stream:
            async for event in stream:
                yield event

    async def follow(self, after: int = 0) -> AsyncGenerator[ev.Event]:
        """Return the same stream, already started; the caller closes it."""
        return await self._host_client.follow(self.session_id, after=after)

    async def _send(
        self, text: str, mode: Mode, *, attachments: Sequence[Image | File] = (), **fields: Any
    ) -> TurnHandle:
        files = tuple(attachments)
        sent = await self.tell(cm.SendMessage, text=text, mode=mode, attachments=files, **fields)
        assert isinstance(sent, Sent)
        return TurnHandle(self, sent)


class TurnHandle:
    """One turn: reads its events, waits for its result, cancels it."""

    def __init__(self, session: SessionHandle, sent: Sent) -> None:
        self._session = session
        self._after = sent.seq - 1
        self.turn_id = sent.turn_id

    async def events(self) -> AsyncGenerator[ev.Event]:
        """Yield the events of the turn, until `turn.finished`."""
        has_begun = False
        # `follow`, because `events` would add a generator to the path of each token.
        async with aclosing(await self._session.follow(self._after)) as stream:
            async for event in stream:
                has_begun = has_begun or getattr(event, "turn_id", None) == self.turn_id
                if has_begun:
                    yield event
                if isinstance(event, ev.TurnFinished) and event.turn_id == self.turn_id:
                    return

    async def result(self) -> TurnResult:
        """Wait for the end of the turn, and return how it ended."""
        text, calls, has_schema = "", list[ev.CallFinished](), False
        async for event in self.events():
            match event:
                case ev.MessageAccepted() if event.turn_id == self.turn_id:
                    has_schema = has_schema or event.schema is not None
                case ev.StepReplied() if event.turn_id == self.turn_id:
                    text = event.text or text
                case ev.CallFinished() if event.turn_id == self.turn_id:
                    calls.append(event)
                case ev.TurnFinished() if event.turn_id == self.turn_id:
                    return TurnResult(
                        outcome=event.outcome,
                        text=text,
                        usage=event.usage,
                        cost=event.cost,
                        calls=tuple(calls),
                        left_over=event.left_over,
                        reason=event.reason,
                        error=event.error,
                        data=_decoded(text)
                        if has_schema and event.outcome == "completed"
                        else None,
                    )
                case _:
                    continue
        raise DeveloperMustActError(
            "the session was closed before the turn ended, so there is no result"
        )

    @overload
    async def cancel(self, *, reason: Reason = "interrupt") -> TurnResult: ...
    @overload
    async def cancel(self, *, call: str, reason: Reason = "interrupt") -> bool: ...
    async def cancel(
        self, *, call: str | None = None, reason: Reason = "interrupt"
    ) -> TurnResult | bool:
        """Cancel the turn and return how it ended; or one call: False if it was over already."""
        if call is not None:
            answer = await self._session.tell(cm.CancelCall, call_id=call, reason=reason)
            return isinstance(answer, Done) and answer.done
        await self._session.tell(cm.CancelTurn, turn_id=self.turn_id, reason=reason)
        return await self.result()


_FOR_PEOPLE: Final = (
    ev.ApprovalAsked,
    ev.ApprovalAnswered,
    ev.ApprovalExpired,
    ev.QuestionAsked,
    ev.QuestionAnswered,
    ev.QuestionExpired,
)


def _belongs_to(event: ev.Event, call_id: str) -> bool:
    """Whether the event is of the call, or asks people for a nested one (its id is a prefix)."""
    event_call_id = getattr(event, "call_id", call_id)
    is_nested = event_call_id.startswith(f"{call_id}.")
    return event_call_id == call_id or (is_nested and isinstance(event, _FOR_PEOPLE))


def _decoded(text: str) -> Any:
    """Return the answer as a value: a turn with a schema completes only with valid JSON."""
    return msgspec.json.decode(text)
