"""A session and a turn, for those who talk to them and wait for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final, overload

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.app.host_client import HostClient
from keryx.errors import DeveloperMustActError
from keryx.ids import new_id
from keryx.messages import Decision, File, Image, Reach, Reason
from keryx.ports.dispatch import Answer, Done, Sent
from keryx.ports.view import SessionView

BY: Final = "program"
"""Who asks, unless a program says for whom it does."""


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
    """The answer as a value, if it was sent with a schema; it fits. None if there is none."""


class SessionHandle:
    """One session, for those who talk to it."""

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
    ) -> TurnHandle:
        """Say something; returns once the message is durable.

        The schema is the text of a JSON schema. The answer fits it and is in the result as `data`,
        or the turn fails (`bad_response`) after the model was told once. `attended` says that
        someone will `answer` what the turn asks; otherwise what would ask is denied.
        Attachments are uploaded before (`Keryx.upload`). No workspace means the session's.
        """
        return await self._send(
            text,
            "queue",
            key=key,
            schema=schema,
            attended=attended,
            attachments=attachments,
            workspace=workspace,
        )

    async def steer(self, text: str, *, wait: bool = False, key: str | None = None) -> TurnHandle:
        """Guide the running turn: now, or at the next boundary with `wait`."""
        return await self._send(text, "steer", wait=wait, key=key)

    async def interrupt(self, text: str, *, key: str | None = None) -> TurnHandle:
        """End the running turn; this message is the next one."""
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
        where = {"approval_id": approval_id, "where": "program"}
        await self.tell(cm.AnswerApproval, by=by, decision=decision, reach=reach, **where)

    async def answer_question(self, question_id: str, answer: str, *, by: str = BY) -> None:
        """Answer a question. The first answer wins; later ones: `AlreadyTakenError`."""
        where = {"question_id": question_id, "where": "program"}
        await self.tell(cm.AnswerQuestion, by=by, answer=answer, **where)

    async def run(
        self, tool: str, arguments: str = "{}", *, attended: bool = True
    ) -> AsyncGenerator[ev.Event]:
        """Run a tool by hand, with no model: all that it says, until its `call.finished`.

        What its own calls ask comes too. `attended` says that someone will `answer` that; otherwise
        what would ask is denied.
        """
        last = await self._host_client.store.session(self.session_id)
        call_id = new_id("k")
        told = {"call_id": call_id, "tool": tool, "arguments": arguments}
        await self.tell(cm.RunCall, **told, attended=attended)
        after = 0 if last is None else last.last_seq
        async for event in await self._host_client.follow(self.session_id, after=after):
            if _is_of(event, call_id):
                yield event
            if isinstance(event, ev.CallFinished) and event.call_id == call_id:
                return

    async def view(self) -> SessionView:
        """The session as it is now: its settings, its queue, what runs and what waits."""
        return await self._host_client.view(self.session_id)

    async def change(self, **settings: Any) -> None:
        """Change its model, effort, workspace, tools, personality, title and the like."""
        await self.tell(cm.ChangeSession, **settings)

    async def fork(self, turn_id: str | None = None) -> SessionHandle:
        """A new session that shares this one's past up to the end of that turn; None: all of it."""
        new = new_id("s")
        await self.tell(cm.ForkSession, new_session_id=new, turn_id=turn_id)
        return SessionHandle(self._host_client, new)

    async def compact(self) -> None:
        """Let a summary stand for what was said, in what the model is sent; the log keeps it all.

        Returns once that is done. `UserMustActError` if there is nothing to gain, `ModelError` if
        no model can do it.
        """
        await self.tell(cm.CompactContext)

    async def undo(self, turn_id: str, *, files: bool = True) -> None:
        """A turn leaves nothing in what the model reads, nor on the disk, unless `files` is false.

        `UserMustActError` if someone edited one of its files since.
        """
        await self.tell(cm.UndoTurn, turn_id=turn_id, files=files)

    async def diff(self) -> str:
        """All that the session changed on the disk, against what is there now."""
        return await self._host_client.diff(self.session_id)

    async def revert(self, changes: Sequence[int]) -> None:
        """Take back changes of files, named by the `seq` of their `files.changed`: all or none."""
        await self.tell(cm.RevertFiles, changes=tuple(changes))

    async def tell(self, kind: type[cm.Command], *, by: str = BY, **fields: Any) -> Answer:
        """Give the session a command; returns once it is durable."""
        made = kind(command_id=new_id("c"), session_id=self.session_id, by=by, **fields)
        return await self._host_client.tell(made)

    async def events(self, after: int = 0) -> AsyncGenerator[ev.Event]:
        """The log after that fact, then whatever comes, live events included."""
        async with aclosing(await self.follow(after)) as stream:
            async for event in stream:
                yield event

    async def follow(self, after: int = 0) -> AsyncGenerator[ev.Event]:
        """The same, begun when this returns; whoever reads it closes it."""
        return await self._host_client.follow(self.session_id, after=after)

    async def _send(
        self,
        text: str,
        mode: cm.Mode,
        *,
        key: str | None,
        wait: bool = False,
        schema: str | None = None,
        attended: bool = False,
        attachments: Sequence[Image | File] = (),
        workspace: str | None = None,
    ) -> TurnHandle:
        sent = await self.tell(
            cm.SendMessage,
            text=text,
            mode=mode,
            key=key,
            wait=wait,
            schema=schema,
            attended=attended,
            attachments=tuple(attachments),
            workspace=workspace,
        )
        assert isinstance(sent, Sent)
        return TurnHandle(self, sent)


class TurnHandle:
    """One turn, for those who wait for it."""

    def __init__(self, session: SessionHandle, sent: Sent) -> None:
        self._session = session
        self._after = sent.seq - 1
        self.turn_id = sent.turn_id

    async def events(self) -> AsyncGenerator[ev.Event]:
        """Everything that the turn says, until its one terminal fact."""
        begun = False
        # Not `events`, which would be one more generator for each token.
        async with aclosing(await self._session.follow(self._after)) as stream:
            async for event in stream:
                begun = begun or getattr(event, "turn_id", None) == self.turn_id
                if begun:
                    yield event
                if isinstance(event, ev.TurnFinished) and event.turn_id == self.turn_id:
                    return

    async def result(self) -> TurnResult:
        """How it ended, once it has."""
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
        raise DeveloperMustActError("the session was closed before the turn ended")

    @overload
    async def cancel(self, *, reason: Reason = "interrupt") -> TurnResult: ...
    @overload
    async def cancel(self, *, call: str, reason: Reason = "interrupt") -> bool: ...
    async def cancel(
        self, *, call: str | None = None, reason: Reason = "interrupt"
    ) -> TurnResult | bool:
        """End the turn, and say how it ended; or one call of it: False if that was over."""
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


def _is_of(event: ev.Event, call_id: str) -> bool:
    """Whether the call says this, or one that it made asks it. Ids begin with those above them."""
    named = getattr(event, "call_id", call_id)
    return named == call_id or (isinstance(event, _FOR_PEOPLE) and named.startswith(f"{call_id}."))


def _decoded(text: str) -> Any:
    """The answer as a value: a turn with a schema completes with nothing but JSON."""
    return msgspec.json.decode(text)
