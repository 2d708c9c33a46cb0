"""Makes events of one session for tests, with sequence numbers and times.

A test passes only the fields that it is about, and appends the events to a log itself.
"""

from __future__ import annotations

from typing import Any, TypeVar

from keryx.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallEffects,
    CallFinished,
    CallStarted,
    ContextCompacted,
    ContextSize,
    LoggedEvent,
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
    TurnRestored,
    TurnResumed,
    TurnStarted,
    TurnUndone,
    Usage,
    UsageRecorded,
)
from keryx.messages import File, Outcome, Text, ToolCall

E = TypeVar("E", bound=LoggedEvent)

SIZE = ContextSize(window=None, compact_at=None, last_prompt_tokens=None)


class EventFactory:
    """Makes the events of one session, in order."""

    def __init__(self, session_id: str = "s", *, last_seq: int = 0, at: float = 1000.0) -> None:
        self.session_id = session_id
        self.last_seq = last_seq
        self.at = at

    def _fact(self, kind: type[E], **fields: Any) -> E:
        self.last_seq += 1
        return kind(session_id=self.session_id, at=self.at, seq=self.last_seq, **fields)

    def opened(self, title: str = "") -> SessionOpened:
        return self._fact(
            SessionOpened,
            model="scripted:one",
            profile="default",
            place="here",
            workspace="/w",
            tools=(),
            title=title,
        )

    def renamed(self, title: str) -> SessionChanged:
        return self._fact(SessionChanged, by="you", title=title)

    def tagged(self, *tags: str) -> SessionChanged:
        return self._fact(SessionChanged, by="you", tags=tags)

    def accepted(
        self,
        message_id: str = "m1",
        text: str = "hello",
        turn_id: str = "t1",
        attachments: tuple[File, ...] = (),
    ) -> MessageAccepted:
        return self._fact(
            MessageAccepted,
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
        return self._fact(
            MessageChanged,
            message_id=message_id,
            by="you",
            text=text,
        )

    def withdrawn(self, message_id: str) -> MessageWithdrawn:
        return self._fact(
            MessageWithdrawn,
            message_id=message_id,
            by="you",
        )

    def delivered(self, message_id: str = "m1", turn_id: str = "t1") -> MessageDelivered:
        return self._fact(
            MessageDelivered,
            message_id=message_id,
            turn_id=turn_id,
        )

    def started(self, turn_id: str = "t1", *message_ids: str) -> TurnStarted:
        return self._fact(
            TurnStarted,
            turn_id=turn_id,
            message_ids=message_ids,
        )

    def resumed(self, turn_id: str = "t1", attempt: int = 1) -> TurnResumed:
        return self._fact(
            TurnResumed,
            turn_id=turn_id,
            attempt=attempt,
        )

    def warned(self, turn_id: str, warning: str) -> TurnStarted:
        return self._fact(
            TurnStarted,
            turn_id=turn_id,
            message_ids=(),
            warnings=(warning,),
        )

    def retried(self, turn_id: str = "t1") -> ModelRetried:
        return self._fact(
            ModelRetried,
            turn_id=turn_id,
            step_id="p1",
            cause="rate_limit",
            message="slow down",
            delay=1.0,
        )

    def switched(self, to: str, turn_id: str = "t1") -> ModelSwitched:
        return self._fact(
            ModelSwitched,
            turn_id=turn_id,
            step_id="p1",
            cause="rate_limit",
            from_="one",
            to=to,
        )

    def moved(self, workspace: str) -> SessionChanged:
        return self._fact(SessionChanged, by="you", workspace=workspace)

    def finished(
        self, turn_id: str = "t1", outcome: TurnOutcome = "completed", *, started: bool = True
    ) -> TurnFinished:
        return self._fact(
            TurnFinished,
            turn_id=turn_id,
            outcome=outcome,
            usage=Usage(),
            cost=None,
            started=started,
        )

    def compacted(self, summary: str = "so far") -> ContextCompacted:
        return self._fact(
            ContextCompacted,
            turn_id=None,
            summary=summary,
            up_to=self.last_seq,
            tokens_before=90,
            tokens_after=10,
        )

    def undone(self, turn_id: str) -> TurnUndone:
        return self._fact(TurnUndone, turn_id=turn_id, by="you")

    def restored(self, turn_id: str, *variants: str) -> TurnRestored:
        return self._fact(TurnRestored, turn_id=turn_id, by="you", variants=variants)

    def step(self, model: str = "scripted:one", turn_id: str = "t1") -> StepStarted:
        return self._fact(
            StepStarted,
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
        return self._fact(
            StepReplied,
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
        return self._fact(
            CallStarted,
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
        outcome: Outcome = "completed",
    ) -> CallFinished:
        return self._fact(
            CallFinished,
            turn_id=turn_id,
            call_id=call_id,
            tool="echo",
            outcome=outcome,
            reason=None,
            started=True,
            result=result,
            duration=0.1,
        )

    def asked(self, approval_id: str = "a1") -> ApprovalAsked:
        return self._fact(
            ApprovalAsked,
            turn_id="t1",
            approval_id=approval_id,
            call_id="c1",
            what="echo",
            why="it writes",
            risk="low",
            expires=None,
        )

    def answered(self, approval_id: str = "a1") -> ApprovalAnswered:
        return self._fact(
            ApprovalAnswered,
            turn_id="t1",
            approval_id=approval_id,
            call_id="c1",
            decision="once",
            by="you",
            where="terminal",
        )

    def spent(self, model: str, usage: Usage | None, cost: float | None) -> UsageRecorded:
        return self._fact(
            UsageRecorded,
            purpose="title",
            model=model,
            usage=usage,
            cost=cost,
        )
