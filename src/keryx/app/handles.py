"""A session and a turn, for those who talk to them and wait for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import overload

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.app.front import Front
from keryx.engine.desk import mint
from keryx.errors import DeveloperMustActError
from keryx.messages import Decision, Reason
from keryx.ports.dispatch import Done, Sent


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


class SessionHandle:
    """One session, for those who talk to it."""

    def __init__(self, front: Front, session_id: str) -> None:
        self._front = front
        self.session_id = session_id

    async def send(
        self,
        text: str,
        *,
        key: str | None = None,
        schema: str | None = None,
        attended: bool = False,
    ) -> TurnHandle:
        """Say something; returns once the message is durable.

        The schema is the text of a JSON schema that the answer must fit. `attended` says that
        someone will `answer` what the turn asks; otherwise what would ask is denied.
        """
        return await self._send(text, "queue", key=key, schema=schema, attended=attended)

    async def steer(self, text: str, *, wait: bool = False, key: str | None = None) -> TurnHandle:
        """Guide the running turn: now, or at the next boundary with `wait`."""
        return await self._send(text, "steer", wait=wait, key=key)

    async def interrupt(self, text: str, *, key: str | None = None) -> TurnHandle:
        """End the running turn; this message is the next one."""
        return await self._send(text, "interrupt", key=key)

    async def answer(self, approval_id: str, decision: Decision, *, by: str = "program") -> None:
        """Decide on a call that waits. The first answer wins; later ones: `AlreadyTakenError`."""
        await self._front.tell(
            cm.AnswerApproval(
                command_id=mint("c"),
                session_id=self.session_id,
                by=by,
                approval_id=approval_id,
                decision=decision,
                where="program",
            )
        )

    async def answer_question(self, question_id: str, answer: str, *, by: str = "program") -> None:
        """Answer a question. The first answer wins; later ones: `AlreadyTakenError`."""
        await self._front.tell(
            cm.AnswerQuestion(
                command_id=mint("c"),
                session_id=self.session_id,
                by=by,
                question_id=question_id,
                answer=answer,
                where="program",
            )
        )

    async def run(self, tool: str, arguments: str = "{}") -> AsyncGenerator[ev.Event]:
        """Run a tool by hand, with no model: all that it says, until its `call.finished`."""
        last = await self._front.store.session(self.session_id)
        call_id = mint("k")
        await self._front.tell(
            cm.RunCall(
                command_id=mint("c"),
                session_id=self.session_id,
                by="program",
                call_id=call_id,
                tool=tool,
                arguments=arguments,
            )
        )
        after = 0 if last is None else last.last_seq
        async for event in await self._front.follow(self.session_id, after=after):
            if getattr(event, "call_id", call_id) == call_id:
                yield event
            if isinstance(event, ev.CallFinished) and event.call_id == call_id:
                return

    async def diff(self) -> str:
        """All that the session changed on the disk, against what is there now."""
        return await self._front.diff(self.session_id)

    async def revert(self, changes: Sequence[int]) -> None:
        """Take back changes of files, named by the `seq` of their `files.changed`: all or none."""
        await self._front.tell(
            cm.RevertFiles(
                command_id=mint("c"),
                session_id=self.session_id,
                by="program",
                changes=tuple(changes),
            )
        )

    async def events(self, after: int = 0) -> AsyncGenerator[ev.Event]:
        """The log after that fact, then whatever comes, live events included."""
        async with aclosing(await self._front.follow(self.session_id, after=after)) as stream:
            async for event in stream:
                yield event

    async def _send(
        self,
        text: str,
        mode: cm.Mode,
        *,
        key: str | None,
        wait: bool = False,
        schema: str | None = None,
        attended: bool = False,
    ) -> TurnHandle:
        sent = await self._front.tell(
            cm.SendMessage(
                command_id=mint("c"),
                session_id=self.session_id,
                by="program",
                text=text,
                mode=mode,
                key=key,
                wait=wait,
                schema=schema,
                attended=attended,
            )
        )
        assert isinstance(sent, Sent)
        return TurnHandle(self._front, self.session_id, sent)


class TurnHandle:
    """One turn, for those who wait for it."""

    def __init__(self, front: Front, session_id: str, sent: Sent) -> None:
        self._front = front
        self._session_id = session_id
        self._after = sent.seq - 1
        self.turn_id = sent.turn_id

    async def events(self) -> AsyncGenerator[ev.Event]:
        """Everything that the turn says, until its one terminal fact."""
        begun = False
        stream = await self._front.follow(self._session_id, after=self._after)
        async with aclosing(stream):
            async for event in stream:
                begun = begun or getattr(event, "turn_id", None) == self.turn_id
                if begun:
                    yield event
                if isinstance(event, ev.TurnFinished) and event.turn_id == self.turn_id:
                    return

    async def result(self) -> TurnResult:
        """How it ended, once it has."""
        text, calls = "", list[ev.CallFinished]()
        async for event in self.events():
            match event:
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
            answer = await self._front.tell(
                cm.CancelCall(
                    command_id=mint("c"),
                    session_id=self._session_id,
                    by="program",
                    call_id=call,
                    reason=reason,
                )
            )
            return isinstance(answer, Done) and answer.done
        await self._front.tell(
            cm.CancelTurn(
                command_id=mint("c"),
                session_id=self._session_id,
                by="program",
                turn_id=self.turn_id,
                reason=reason,
            )
        )
        return await self.result()
