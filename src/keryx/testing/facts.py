"""Facts of one session for tests, numbered as a log numbers them.

`Facts` gives each event the next sequence number and a time, so that a test says only what it
is about. Nothing here is logged: that is for the test to do.
"""

from __future__ import annotations

from keryx.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallEffects,
    CallFinished,
    CallStarted,
    ContextSize,
    MessageAccepted,
    MessageChanged,
    MessageDelivered,
    MessageWithdrawn,
    ModelRetried,
    ModelSwitched,
    SessionChanged,
    SessionOpened,
    StepReplied,
    StepStarted,
    TurnFinished,
    TurnOutcome,
    TurnResumed,
    TurnStarted,
    TurnUndone,
    Usage,
    UsageRecorded,
)
from keryx.messages import File, Text, ToolCall

SIZE = ContextSize(window=None, compact_at=None, last_prompt_tokens=None)


class Facts:
    """Makes the facts of one session, in order."""

    def __init__(self, session_id: str = "s", *, last_seq: int = 0, at: float = 1000.0) -> None:
        self.session_id = session_id
        self.last_seq = last_seq
        self.at = at

    def _next(self) -> int:
        self.last_seq += 1
        return self.last_seq

    def opened(self, title: str = "") -> SessionOpened:
        return SessionOpened(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            model="scripted:one",
            profile="default",
            place="here",
            workspace="/w",
            tools=(),
            title=title,
        )

    def renamed(self, title: str) -> SessionChanged:
        return SessionChanged(
            session_id=self.session_id, at=self.at, seq=self._next(), by="you", title=title
        )

    def accepted(
        self,
        message_id: str = "m1",
        text: str = "hello",
        turn_id: str = "t1",
        attachments: tuple[File, ...] = (),
    ) -> MessageAccepted:
        return MessageAccepted(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            message_id=message_id,
            turn_id=turn_id,
            key=None,
            by="you",
            mode="queue",
            text=text,
            workspace="/w",
            attachments=attachments,
        )

    def changed(self, message_id: str, text: str) -> MessageChanged:
        return MessageChanged(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            message_id=message_id,
            by="you",
            text=text,
        )

    def withdrawn(self, message_id: str) -> MessageWithdrawn:
        return MessageWithdrawn(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            message_id=message_id,
            by="you",
        )

    def delivered(self, message_id: str = "m1", turn_id: str = "t1") -> MessageDelivered:
        return MessageDelivered(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            message_id=message_id,
            turn_id=turn_id,
        )

    def started(self, turn_id: str = "t1", *message_ids: str) -> TurnStarted:
        return TurnStarted(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id=turn_id,
            message_ids=message_ids,
        )

    def resumed(self, turn_id: str = "t1", attempt: int = 1) -> TurnResumed:
        return TurnResumed(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id=turn_id,
            attempt=attempt,
        )

    def warned(self, turn_id: str, warning: str) -> TurnStarted:
        return TurnStarted(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id=turn_id,
            message_ids=(),
            warnings=(warning,),
        )

    def retried(self, turn_id: str = "t1") -> ModelRetried:
        return ModelRetried(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id=turn_id,
            step_id="p1",
            cause="rate_limit",
            message="slow down",
            delay=1.0,
        )

    def switched(self, to: str, turn_id: str = "t1") -> ModelSwitched:
        return ModelSwitched(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id=turn_id,
            step_id="p1",
            cause="rate_limit",
            from_="one",
            to=to,
        )

    def moved(self, workspace: str) -> SessionChanged:
        return SessionChanged(
            session_id=self.session_id, at=self.at, seq=self._next(), by="you", workspace=workspace
        )

    def finished(self, turn_id: str = "t1", outcome: TurnOutcome = "completed") -> TurnFinished:
        return TurnFinished(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id=turn_id,
            outcome=outcome,
            usage=Usage(),
            cost=None,
        )

    def undone(self, turn_id: str) -> TurnUndone:
        return TurnUndone(
            session_id=self.session_id, at=self.at, seq=self._next(), turn_id=turn_id, by="you"
        )

    def step(self, model: str = "scripted:one", turn_id: str = "t1") -> StepStarted:
        return StepStarted(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id=turn_id,
            step_id="p1",
            model=model,
        )

    def replied(
        self,
        text: str = "hi",
        *,
        turn_id: str = "t1",
        usage: Usage | None = None,
        cost: float | None = None,
        calls: tuple[ToolCall, ...] = (),
    ) -> StepReplied:
        return StepReplied(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id=turn_id,
            step_id="p1",
            text=text,
            usage=usage,
            cost=cost,
            context=SIZE,
            stop_reason="stop",
            calls=calls,
        )

    def call(self, call_id: str = "c1", turn_id: str | None = "t1") -> CallStarted:
        return CallStarted(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id=turn_id,
            call_id=call_id,
            step_id=None if turn_id is None else "p1",
            by="you",
            tool="echo",
            arguments="{}",
            preview="echo",
            effects=CallEffects(),
            replay="never",
        )

    def called(
        self,
        call_id: str = "c1",
        turn_id: str | None = "t1",
        result: tuple[Text | File, ...] = (Text("done"),),
    ) -> CallFinished:
        return CallFinished(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id=turn_id,
            call_id=call_id,
            tool="echo",
            outcome="completed",
            reason=None,
            started=True,
            result=result,
            duration=0.1,
        )

    def asked(self, approval_id: str = "a1") -> ApprovalAsked:
        return ApprovalAsked(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id="t1",
            approval_id=approval_id,
            call_id="c1",
            what="echo",
            why="it writes",
            risk="low",
            expires=None,
        )

    def answered(self, approval_id: str = "a1") -> ApprovalAnswered:
        return ApprovalAnswered(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            turn_id="t1",
            approval_id=approval_id,
            call_id="c1",
            decision="once",
            by="you",
            where="terminal",
        )

    def spent(self, model: str, usage: Usage | None, cost: float | None) -> UsageRecorded:
        return UsageRecorded(
            session_id=self.session_id,
            at=self.at,
            seq=self._next(),
            purpose="title",
            model=model,
            usage=usage,
            cost=cost,
        )
