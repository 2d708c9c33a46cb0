"""A session at one instant, for who begins to watch it: what a screen shows beside the transcript.

It is folded from the log up to the fact `seq`; whoever reads the events after that one misses
nothing and sees nothing twice.
"""

from __future__ import annotations

import msgspec

from keryx.events import (
    ApprovalAsked,
    CallStarted,
    ContextCompacted,
    ContextSize,
    QuestionAsked,
    SessionChanged,
    SessionOpened,
    StepReplied,
)
from keryx.messages import ApprovalMode, File, Image, Mode


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the session works with; a running turn keeps what it started with."""

    model: str
    profile: str
    place: str
    workspace: str
    tools: tuple[str, ...]
    effort: str | None
    personality: str | None
    title: str
    pinned: bool
    archived: bool
    approvals: ApprovalMode | None
    read_only: bool


class QueuedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was accepted and not delivered yet."""

    message_id: str
    turn_id: str
    mode: Mode
    text: str
    workspace: str
    attachments: tuple[Image | File, ...]
    wait: bool


class TurnUnderWay(msgspec.Struct, frozen=True, kw_only=True):
    """The turn that runs, and whether it is being cancelled."""

    turn_id: str
    cancelling: bool


class Typed(msgspec.Struct, frozen=True):
    """What a person has typed and not sent."""

    text: str = ""
    attachments: tuple[Image | File, ...] = ()


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it is after the fact `seq`."""

    session_id: str
    seq: int
    settings: SessionSettings
    turn: TurnUnderWay | None
    queue: tuple[QueuedMessage, ...]
    """In the order in which they will be delivered, steers of the turn under way first."""
    approvals: tuple[ApprovalAsked, ...]
    questions: tuple[QuestionAsked, ...]
    calls: tuple[CallStarted, ...]
    """Calls that started and have not finished."""
    context: ContextSize | None
    draft: Typed


class RestingSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session in which nothing is under way, told without its log."""

    seq: int
    """The number of its last fact."""
    settings: tuple[SessionOpened | SessionChanged, ...]
    """The facts that set what it works with, in order."""
    last_reply: StepReplied | None
    compacted: ContextCompacted | None = None
    """If it was summed up after that reply."""
