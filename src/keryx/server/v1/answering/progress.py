"""What a response has said so far: a projection of the session's log. Pure.

A response begins with one fact (a message, or the results of the client's calls), which its id
names, and ends when its turn ends or waits for the client. Its events are numbered by their place
in the answer and not by how the answer came in pieces: whoever reads again, from any number, also
after a restart, goes on at exactly that character.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from keryx import events as ev
from keryx.messages import ToolCall
from keryx.server.v1.answering.stop_sequences import StopSequences

BLOCK: Final = 10_000_000
"""Numbers for each reply of the model: the number of its characters is far below."""
BETWEEN: Final = "\n\n"
"""Stands between the texts of two replies of one turn."""
Status = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class Reply(msgspec.Struct):
    """One reply of the model, as far as it has come."""

    step_id: str
    number: int
    """Its place among the attempts to reply: a retry has a number of its own."""
    retries: int = 0
    """The attempts of the same step before it."""
    replaced: int = 0
    """The attempts of the response before it that do not count any more."""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """The calls of the client's tools that wait for their results."""
    is_complete: bool = False

    @property
    def item_id(self) -> str:
        """The id of its text: that of a retry is another, since clients have seen the first."""
        return f"msg_{self.step_id}" + (f"_{self.retries}" if self.retries else "")


class MoreText(msgspec.Struct, frozen=True):
    """More of the text of a reply; `start` is the number of its characters before."""

    reply: Reply
    start: int
    text: str


class ReplyEnded(msgspec.Struct, frozen=True):
    """The reply is complete, or (`void`) a new attempt replaces it."""

    reply: Reply
    void: bool = False


class CallsWait(msgspec.Struct, frozen=True):
    """The calls of this reply wait for their results from the client."""

    reply: Reply


class Ended(msgspec.Struct, frozen=True):
    """The response has ended."""


Piece = MoreText | ReplyEnded | CallsWait | Ended
Beginning = ev.MessageAccepted | ev.CallsAnswered


class Progress:
    """Folds the events from the beginning of a response on."""

    def __init__(self, stop: Sequence[str] = ()) -> None:
        """`stop`: the response ends before the first of these in its text."""
        self._stopper = StopSequences[Reply](stop, BETWEEN)
        self._at = 0.0
        """When the last event happened."""
        self._client_tools: frozenset[str] = frozenset()
        self.begin: Beginning | None = None
        self.status: Status = "queued"
        self.replies: list[Reply] = []
        """Those that count: replies that were replaced are not here."""
        self.usage: ev.Usage | None = None
        self.ended_at: float | None = None
        self.turn: ev.TurnFinished | None = None
        """How the turn ended; None: it has not."""
        self._attempts = 0
        self._replaced = 0
        self._reply: Reply | None = None
        self._early: str | None = None
        """Text of the next attempt that came before the fact that begins it; None: none is due."""
        self._last_reply: Reply | None = None
        """The last reply that is complete."""
        self._client_calls: dict[str, ToolCall] = {}
        """Its calls of the client's tools, by id."""
        self._open_calls: set[str] = set()
        self._started: set[str] = set()
        self._stop_reason: str | None = None

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    @property
    def is_stopped(self) -> bool:
        """Whether the response ended at a stop sequence, while its turn goes on."""
        return self._stopper.is_reached

    @property
    def turn_id(self) -> str:
        assert self.begin is not None
        return self.begin.turn_id

    @property
    def end_number(self) -> int:
        """The number of the last event."""
        return (self._attempts + 1) * BLOCK

    @property
    def text(self) -> str:
        return BETWEEN.join(reply.text for reply in self.replies if reply.text)

    @property
    def waiting(self) -> tuple[ToolCall, ...]:
        """The client's calls that the turn waits for, once the response has ended."""
        return self.replies[-1].calls if self.replies else ()

    def apply(self, event: ev.Event) -> Iterator[Piece]:
        """Apply the next event, and yield what is new."""
        if self.begin is None:
            assert isinstance(event, ev.MessageAccepted | ev.CallsAnswered)
            self._begin(event)
            return
        self._at = event.at
        if not self.is_over and getattr(event, "turn_id", self.turn_id) == self.turn_id:
            yield from self._apply(event)

    def _begin(self, event: Beginning) -> None:
        self.begin = event
        if isinstance(event, ev.CallsAnswered):
            self.status = "in_progress"
            self._client_tools = frozenset(event.client_tools)
        elif event.options is not None:
            self._client_tools = frozenset(tool.name for tool in event.options.client_tools)

    def _apply(self, event: ev.Event) -> Iterator[Piece]:
        match event:
            case ev.TurnStarted() | ev.TurnResumed():
                self.status = "in_progress"
            case ev.StepStarted():
                yield from self._new_attempt(event.step_id)
            case ev.StepAbandoned():
                yield from self._drop_reply()
            case ev.CallStarted():
                self._started.add(event.call_id)
                yield from self._end_if_waiting(event)
            case ev.CallFinished():
                self._open_calls.discard(event.call_id)
                yield from self._end_if_waiting(event)
            case ev.TurnFinished():
                yield from self._finish(event)
            case _:
                yield from self._apply_to_reply(event)

    def _apply_to_reply(self, event: ev.Event) -> Iterator[Piece]:
        """Apply an event that concerns the reply which is streaming."""
        if self._reply is None or getattr(event, "step_id", None) != self._reply.step_id:
            return
        match event:
            case ev.ModelRetried() | ev.ModelSwitched():
                yield from self._new_attempt(event.step_id)
            case ev.StepReset():
                self._early = ""
            case ev.TextDelta():
                yield from self._add(event.text)
            case ev.StepSnapshot():
                yield from self._grow_to(event.text)
            case ev.StepReplied():
                yield from self._replied(event)
            case _:
                pass

    # -- replies

    def _new_attempt(self, step_id: str) -> Iterator[Piece]:
        before = self._reply
        retries = 0 if before is None or before.step_id != step_id else before.retries + 1
        yield from self._drop_reply()
        self._attempts += 1
        self._reply = Reply(step_id, self._attempts, retries, self._replaced)
        early, self._early = self._early, None
        yield from self._add(early or "")

    def _drop_reply(self) -> Iterator[Piece]:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        self._replaced += 1
        self._stopper.drop(reply)
        if reply.text:
            self.replies.remove(reply)
            yield ReplyEnded(reply, void=True)

    def _add(self, text: str) -> Iterator[Piece]:
        reply = self._reply
        assert reply is not None
        if self._early is not None:
            self._early += text
            return
        yield from self._show(self._stopper.feed(reply, text))
        if self.is_stopped:
            yield from self._end_at_stop(reply)

    def _show(self, texts: Iterable[tuple[Reply, str]]) -> Iterator[Piece]:
        for reply, text in texts:
            if not reply.text:
                self.replies.append(reply)
            start = len(reply.text)
            reply.text += text
            yield MoreText(reply, start, text)

    def _grow_to(self, text: str) -> Iterator[Piece]:
        assert self._reply is not None
        start = len(self._reply.text) + self._stopper.held(self._reply)
        yield from self._add(text[start:])

    def _end_at_stop(self, reply: Reply) -> Iterator[Piece]:
        self._reply = None
        reply.is_complete = True
        if reply.text:
            yield ReplyEnded(reply)
        yield from self._end("completed", self._at)

    def _replied(self, event: ev.StepReplied) -> Iterator[Piece]:
        yield from self._grow_to(event.text)
        if self.is_stopped:
            self.usage = _sum(self.usage, event.usage)
            return
        reply, self._reply = self._reply, None
        assert reply is not None
        reply.is_complete = not event.cut
        self._last_reply = reply
        calls = (call for call in event.calls if call.tool in self._client_tools)
        self._client_calls = {call.call_id: call for call in calls}
        self._open_calls = {call.call_id for call in event.calls}
        self._started.clear()
        self._stop_reason = event.stop_reason
        self.usage = _sum(self.usage, event.usage)
        if reply.text:
            yield ReplyEnded(reply)

    # -- the end

    def _end_if_waiting(self, event: ev.CallStarted | ev.CallFinished) -> Iterator[Piece]:
        """End the response once all that its turn waits for are calls of the client."""
        reply, calls = self._last_reply, self._client_calls
        if reply is None or not self._open_calls:
            return
        if self._open_calls <= calls.keys() & self._started:
            yield from self._show(self._stopper.flush())
            reply.calls = tuple(call for name, call in calls.items() if name in self._open_calls)
            if not reply.text:
                self.replies.append(reply)
            yield CallsWait(reply)
            yield from self._end("completed", event.at)

    def _finish(self, event: ev.TurnFinished) -> Iterator[Piece]:
        yield from self._drop_reply()
        yield from self._show(self._stopper.flush())
        self.turn = event
        match event.outcome:
            case "completed":
                cut = self._stop_reason in ("length", "max_tokens", "max_output_tokens")
                yield from self._end("incomplete" if cut else "completed", event.at)
            case "cancelled":
                yield from self._end("cancelled", event.at)
            case "failed" | "parked":
                yield from self._end("failed", event.at)

    def _end(self, status: Status, at: float) -> Iterator[Piece]:
        self.status, self.ended_at = status, at
        yield Ended()


def _sum(first: ev.Usage | None, second: ev.Usage | None) -> ev.Usage | None:
    if first is None or second is None:
        return first or second
    return ev.Usage(
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        cached_tokens=first.cached_tokens + second.cached_tokens,
        reasoning_tokens=first.reasoning_tokens + second.reasoning_tokens,
    )
