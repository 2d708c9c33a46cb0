"""The changes that one commit makes to the tables beside the log, as plain data.

Every store applies the same list. `keryx.store.projections` knows which event changes what.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from keryx.events import ParentCall, Usage
from keryx.messages import File, Image, Part
from keryx.ports.usage import STEPS

OpenKind = Literal["turn", "message", "approval", "question", "call"]
OpenKey = tuple[OpenKind, str]
"""Something that one event began and a later event will end."""

NO_USAGE: Final = Usage()


class TranscriptEntry(msgspec.Struct, frozen=True):
    """One entry of the transcript, made of the events `sources`.

    If `message_id` is set, an earlier commit accepted the message: the store has its sources.
    """

    seq: int
    turn_id: str | None
    sources: tuple[int, ...]
    message_id: str | None = None


QUARTER: Final = 900
"""Usage is summed by quarters of an hour: in every time zone a day begins with one of them."""


class UsageEntry(msgspec.Struct, frozen=True):
    """The tokens and the cost that one event reports for one model."""

    at: float
    model: str
    usage: Usage
    cost: float | None
    purpose: str = STEPS
    first_token: float | None = None
    """Seconds until the first piece of the reply, if it is known."""

    @property
    def quarter(self) -> int:
        return int(self.at // QUARTER)


class ToolEntry(msgspec.Struct, frozen=True):
    """One call of a tool that has ended."""

    at: float
    tool: str
    failed: bool
    seconds: float

    @property
    def quarter(self) -> int:
        return int(self.at // QUARTER)


class TurnEntry(msgspec.Struct, frozen=True):
    """One turn that had started and has ended."""

    at: float
    failed: bool

    @property
    def quarter(self) -> int:
        return int(self.at // QUARTER)


class SessionFields(msgspec.Struct):
    """The fields of a session's row in the list; None: this commit does not change the field."""

    title: str | None = None
    model: str | None = None
    workspace: str | None = None
    pinned: bool | None = None
    archived: bool | None = None
    failed_turn: str | None = None
    """The last turn, if it ended badly; empty if it did not, or if another has started."""


NEW_SESSION: Final = SessionFields("", "", "", False, False, "")
"""The fields of a session before its first event."""


class Projection(msgspec.Struct):
    """The changes of one commit; a store applies them in the order of these fields."""

    step_model: str
    fields: SessionFields = msgspec.field(default_factory=SessionFields)
    changed: list[tuple[str, int]] = msgspec.field(default_factory=list[tuple[str, int]])
    """Messages of earlier commits, each with the number of an event that changed it."""
    entries: list[TranscriptEntry] = msgspec.field(default_factory=list[TranscriptEntry])
    closed: list[OpenKey] = msgspec.field(default_factory=list[OpenKey])
    opened: dict[OpenKey, list[int]] = msgspec.field(default_factory=dict[OpenKey, list[int]])
    parent: ParentCall | None = None
    """The call that opened the session, if this commit is the first of a child agent."""
    person: str | None = None
    """For whom the session is, if this commit is its first and it is not for the owner."""
    tags: tuple[str, ...] | None = None
    """All tags of the session; None: they stay as they are."""
    undone: dict[str, bool] = msgspec.field(default_factory=dict[str, bool])
    """Turns that were undone (True) or restored (False); the last change of each."""
    usages: list[UsageEntry] = msgspec.field(default_factory=list[UsageEntry])
    tools: list[ToolEntry] = msgspec.field(default_factory=list[ToolEntry])
    turns: list[TurnEntry] = msgspec.field(default_factory=list[TurnEntry])
    blobs: list[str] = msgspec.field(default_factory=list[str])

    def clear_usage(self) -> None:
        """Count nothing of the events so far: another session has counted them."""
        self.usages.clear()
        self.tools.clear()
        self.turns.clear()

    def name_blob(self, hash_: str | None) -> None:
        if hash_ is not None:
            self.blobs.append(hash_)

    def name_blobs_in(self, parts: Iterable[Part]) -> None:
        self.blobs.extend(part.blob for part in parts if isinstance(part, Image | File))

    def fields_after(self, before: SessionFields) -> SessionFields:
        """Return the fields of the session's row after this commit."""
        changed_fields = {
            name: value
            for name, value in msgspec.structs.asdict(self.fields).items()
            if value is not None
        }
        after = msgspec.structs.replace(before, **changed_fields)
        if self.undone.get(after.failed_turn or ""):
            after.failed_turn = ""
        return after
