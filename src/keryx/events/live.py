"""The live events: they are streamed and not logged.

The logged event that follows has the complete content, so a reader that misses one loses nothing.
"""

from __future__ import annotations

from keryx.events.fields import Envelope, NestedProgress, RunningCall, Stream
from keryx.messages import ToolCall


class TextDelta(Envelope, frozen=True, kw_only=True, gc=False, tag="text.delta"):
    """More of the reply's text."""

    step_id: str
    text: str


class ReasoningDelta(Envelope, frozen=True, kw_only=True, gc=False, tag="reasoning.delta"):
    """More of the reply's reasoning."""

    step_id: str
    text: str


class ArgumentsDelta(Envelope, frozen=True, kw_only=True, tag="arguments.delta"):
    """More of the arguments of a call that the reply asks for."""

    step_id: str
    call_id: str
    tool: str
    text: str


class StepReset(Envelope, frozen=True, kw_only=True, tag="step.reset"):
    """A retry starts the reply again: the deltas of this step so far are void."""

    step_id: str


class CallOutput(Envelope, frozen=True, kw_only=True, tag="call.output"):
    """More output of a call; a nested call names its parent."""

    call_id: str
    stream: Stream
    text: str
    parent: str | None = None


class CallProgress(Envelope, frozen=True, kw_only=True, tag="call.progress"):
    """The progress of a call; of a nested call also its start and its end."""

    call_id: str
    done: float | None = None
    total: float | None = None
    note: str = ""
    parent: str | None = None
    nested: NestedProgress | None = None


class StepSnapshot(Envelope, frozen=True, kw_only=True, tag="step.snapshot"):
    """The reply so far, for a late reader; it belongs right after the fact `after`."""

    after: int
    turn_id: str
    step_id: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()


class CallsSnapshot(Envelope, frozen=True, kw_only=True, tag="calls.snapshot"):
    """The running calls, for a late reader; it belongs right after the fact `after`."""

    after: int
    running: tuple[RunningCall, ...]


class ContextCompacting(Envelope, frozen=True, kw_only=True, tag="context.compacting"):
    """A summary is being written, or (`over`) no longer; `context.compacted` follows on success."""

    turn_id: str | None
    tokens_before: int
    over: bool = False


class Resync(Envelope, frozen=True, kw_only=True, tag="resync"):
    """This reader was too slow: read again from the log."""


LiveEvent = (
    TextDelta
    | ReasoningDelta
    | ArgumentsDelta
    | StepReset
    | CallOutput
    | CallProgress
    | StepSnapshot
    | CallsSnapshot
    | ContextCompacting
    | Resync
)
