"""The bodies of requests and answers, with bounds. Absent fields of a change keep their value."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from keryx.command_checks import MAX_TEXT
from keryx.events import ApprovalAsked, CallStarted, ContextSize, LoggedEvent, QuestionAsked, Usage
from keryx.events.memory import MemoryRecalled
from keryx.messages import ApprovalMode, Decision, Mode, Reach
from keryx.ports.search import FoundKind, Piece
from keryx.ports.store import SessionRow
from keryx.ports.view import QueuedMessage, SessionSettings, TurnUnderWay, Typed

ID_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:~@+=-]{0,199}$"
HASH_PATTERN: Final = r"^[0-9a-f]{64}$"


def is_id(text: str) -> bool:
    return re.fullmatch(ID_PATTERN, text) is not None


Id = Annotated[str, Meta(pattern=ID_PATTERN, max_length=200)]
Word = Annotated[str, Meta(min_length=1, max_length=200)]
Line = Annotated[str, Meta(max_length=500)]
Folder = Annotated[str, Meta(min_length=1, max_length=4_096)]
Key = Annotated[str, Meta(min_length=1, max_length=200)]
Prose = Annotated[str, Meta(max_length=MAX_TEXT)]
Secret = Annotated[str, Meta(max_length=1_000)]
Seq = Annotated[int, Meta(ge=1, le=2**53)]
ToolNames = Annotated[tuple[Word, ...], Meta(max_length=500)]


# -- sessions


class NewSessionBody(msgspec.Struct, frozen=True, kw_only=True):
    """Absent and null fields get the server's defaults."""

    session_id: Id | None = None
    workspace: Folder | None = None
    model: Word | None = None
    effort: Word | None = None
    personality: Word | None = None
    profile: Word | None = None
    tools: ToolNames | None = None
    approvals: ApprovalMode | None = None
    read_only: bool = False
    title: Line | None = None


class SessionChanges(msgspec.Struct, frozen=True, kw_only=True):
    title: Line | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    model: Word | UnsetType = UNSET
    effort: Word | UnsetType | None = UNSET
    personality: Word | UnsetType | None = UNSET
    profile: Word | UnsetType = UNSET
    tools: ToolNames | UnsetType = UNSET
    workspace: Folder | UnsetType = UNSET
    approvals: ApprovalMode | UnsetType | None = UNSET
    read_only: bool | UnsetType = UNSET
    tags: Annotated[tuple[Word, ...], Meta(max_length=50)] | UnsetType = UNSET


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    session: SessionRow
    seq: int
    turn_id: str | None
    kind: FoundKind
    snippet: tuple[Piece, ...]
    at: float


class SessionList(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of the list; or with `search`, what was found."""

    sessions: tuple[SessionRow, ...] | UnsetType = UNSET
    next: int | UnsetType | None = UNSET
    hits: tuple[Hit, ...] | UnsetType = UNSET


class Spent(Usage, frozen=True, kw_only=True):
    """All that a session used; a cost of None means that a part of it is unknown."""

    cost: float | None


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it is after the fact `seq`: open its event stream with `after=seq`."""

    summary: SessionRow
    seq: int
    settings: SessionSettings
    turn: TurnUnderWay | None
    queue: tuple[QueuedMessage, ...]
    approvals: tuple[ApprovalAsked, ...]
    questions: tuple[QuestionAsked, ...]
    calls: tuple[CallStarted, ...]
    context: ContextSize | None
    usage: Spent
    draft: Typed


# -- messages


class Attached(msgspec.Struct, frozen=True):
    """An upload; the server remembers its name and media type, which may be sent again."""

    upload_id: Annotated[str, Meta(pattern=HASH_PATTERN)]
    name: Line | None = None
    media_type: Annotated[str, Meta(max_length=200)] | None = None


AttachedList = Annotated[tuple[Attached, ...], Meta(max_length=50)]


class NewMessage(msgspec.Struct, frozen=True, kw_only=True):
    text: Prose = ""
    mode: Mode = "queue"
    turn_id: Id | None = None
    wait: bool = False
    key: Key | None = None
    attachments: AttachedList = ()
    workspace: Folder | None = None
    replaces: Id | None = None
    revert: bool = False


class Accepted(msgspec.Struct, frozen=True):
    """The message is durable: its id, the turn that it will be or join, its place in the log."""

    message_id: str
    turn_id: str
    seq: int


class MessageChanges(msgspec.Struct, frozen=True, kw_only=True):
    text: Prose | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    workspace: Folder | UnsetType = UNSET
    before: Id | UnsetType | None = UNSET
    attachments: AttachedList | UnsetType = UNSET


class Changed(msgspec.Struct, frozen=True):
    changed: bool


class Withdrawn(msgspec.Struct, frozen=True):
    withdrawn: bool


class DraftBody(msgspec.Struct, frozen=True):
    text: Prose
    attachments: AttachedList = ()


# -- turns, calls and answers


class Cancelled(msgspec.Struct, frozen=True):
    """False: it was over already."""

    cancelled: bool


class NewCall(msgspec.Struct, frozen=True, kw_only=True):
    tool: Word
    arguments: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    workspace: Folder | None = None
    key: Key | None = None


class CallAccepted(msgspec.Struct, frozen=True):
    call_id: str


class DecisionBody(msgspec.Struct, frozen=True):
    """`reach` is one of the offers of the approval, for `session` and `always`; null: the first."""

    decision: Decision
    reach: Reach | None = None


class AnswerBody(msgspec.Struct, frozen=True):
    answer: Prose


class Nothing(msgspec.Struct, frozen=True):
    """The command took effect."""


# -- history


class TranscriptEntry(msgspec.Struct, frozen=True):
    seq: int
    event: LoggedEvent


class TranscriptPage(msgspec.Struct, frozen=True):
    """Oldest first; `next` is the `before`, or the `after`, of the page that goes on."""

    rows: tuple[TranscriptEntry, ...]
    next: int | None
    seq: int
    """The pages hold everything up to this event."""


class PromptPart(msgspec.Struct, frozen=True):
    part: str
    text: str


class Context(msgspec.Struct, frozen=True):
    parts: tuple[PromptPart, ...]
    tools: tuple[str, ...]
    context: ContextSize | None
    summary: str | None
    """The summary that replaces the earlier messages."""
    summary_tokens: int | None
    """An estimate."""
    recalled: MemoryRecalled | None = None
    """What the memory gave to the last turn."""


class FileChanged(msgspec.Struct, frozen=True):
    seq: int
    path: str
    call_id: str | None
    turn_id: str | None
    at: float


class Changes(msgspec.Struct, frozen=True):
    diff: str
    changes: tuple[FileChanged, ...]


class CompactBody(msgspec.Struct, frozen=True):
    focus: Annotated[str, Meta(max_length=2_000)] = ""


class RevertBody(msgspec.Struct, frozen=True):
    changes: Annotated[tuple[Seq, ...], Meta(min_length=1, max_length=10_000)]


class ForkBody(msgspec.Struct, frozen=True):
    turn_id: Id | None = None
    session_id: Id | None = None
    title: Line | None = None


class UndoBody(msgspec.Struct, frozen=True, kw_only=True):
    """Without its changes of files if `files` is false."""

    turn_id: Id
    files: bool = True


class Undone(msgspec.Struct, frozen=True):
    undone: bool


class Uploaded(msgspec.Struct, frozen=True):
    upload_id: str
    name: str
    media_type: str
    size: int


class Entry(msgspec.Struct, frozen=True):
    name: str
    kind: Literal["folder", "file", "link", "other"]
    size: int | None


class FolderShown(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="folder"):
    path: str
    entries: tuple[Entry, ...]
    truncated: bool = False


class FileShown(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="file"):
    """`text` is null for a binary file; `truncated` if it is only the beginning."""

    path: str
    size: int
    text: str | None
    media_type: str
    truncated: bool
