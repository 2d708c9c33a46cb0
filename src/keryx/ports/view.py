"""The state of a session at one moment: what a screen shows besides the transcript.

A view includes the log up to the fact `seq`. A reader that continues with the events after `seq`
misses nothing and sees nothing twice.
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
    """The settings of a session. A running turn keeps those that it started with."""

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
    tags: tuple[str, ...]


class QueuedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is accepted but not yet delivered."""

    message_id: str
    turn_id: str
    mode: Mode
    text: str
    workspace: str
    attachments: tuple[Image | File, ...]
    wait: bool


class TurnUnderWay(msgspec.Struct, frozen=True, kw_only=True):
    """The running turn, and whether it is being cancelled."""

    turn_id: str
    cancelling: bool


class Typed(msgspec.Struct, frozen=True):
    """What a person has typed but not sent."""

    text: str = ""
    attachments: tuple[Image | File, ...] = ()


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """A session after the fact `seq`."""

    session_id: str
    seq: int
    settings: SessionSettings
    turn: TurnUnderWay | None
    queue: tuple[QueuedMessage, ...]
    """In the order of delivery; steers of the running turn come first."""
    approvals: tuple[ApprovalAsked, ...]
    questions: tuple[QuestionAsked, ...]
    calls: tuple[CallStarted, ...]
    """The calls that have started and not finished."""
    context: ContextSize | None
    draft: Typed


class RestingSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session in which nothing runs, described without its log."""

    seq: int
    """The number of its last fact."""
    settings: tuple[SessionOpened | SessionChanged, ...]
    """The facts that set its settings, in order."""
    last_reply: StepReplied | None
    compacted: ContextCompacted | None = None
    """The compaction after that reply, if there was one."""
