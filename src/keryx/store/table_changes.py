"""What one commit changes beside the log, as plain data: the list that every store applies.

It refuses to know which event changes what; that is for `keryx.store.projections`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from keryx.events import LoggedEvent, Usage
from keryx.messages import File, Image, Part

OpenKind = Literal["turn", "message", "approval", "question", "call"]
OpenKey = tuple[OpenKind, str]
"""Something that a fact began and a later one will end."""

NOTHING: Final = Usage()


class Shown(msgspec.Struct, frozen=True):
    """One entry of the transcript, made of the events `sources`.

    If `message_id` is there, the message was accepted by an earlier commit: the sources that are
    kept with it come first.
    """

    seq: int
    turn_id: str | None
    sources: tuple[int, ...]
    message_id: str | None = None


QUARTER: Final = 900
"""What is spent is kept by quarters of an hour: at their bounds days begin, wherever one lives."""


class Spent(msgspec.Struct, frozen=True):
    """What one event says was spent with one model."""

    at: float
    model: str
    usage: Usage
    cost: float | None

    @property
    def quarter(self) -> int:
        return int(self.at // QUARTER)


class SessionFacts(msgspec.Struct):
    """What a session is called and set to; None is what this commit leaves as it was."""

    title: str | None = None
    model: str | None = None
    workspace: str | None = None
    pinned: bool | None = None
    archived: bool | None = None
    failed_turn: str | None = None
    """The last turn, if it ended badly; empty if it did not, or if another has started."""


NEW: Final = SessionFacts("", "", "", False, False, "")
"""What a session is before its first fact."""


class Projection(msgspec.Struct):
    """What a commit changes; to be applied in the order of the fields."""

    step_model: str
    facts: SessionFacts = msgspec.field(default_factory=SessionFacts)
    changed: list[tuple[str, int]] = msgspec.field(default_factory=list[tuple[str, int]])
    """Messages accepted before, each with a fact that changed it."""
    shown: list[Shown] = msgspec.field(default_factory=list[Shown])
    closed: list[OpenKey] = msgspec.field(default_factory=list[OpenKey])
    opened: dict[OpenKey, list[int]] = msgspec.field(default_factory=dict[OpenKey, list[int]])
    undone: list[str] = msgspec.field(default_factory=list[str])
    spent: list[Spent] = msgspec.field(default_factory=list[Spent])
    blobs: list[str] = msgspec.field(default_factory=list[str])

    def open(self, kind: OpenKind, name: str, seq: int) -> None:
        self.opened.setdefault((kind, name), [seq])

    def close(self, kind: OpenKind, name: str) -> None:
        was_opened_here = self.opened.pop((kind, name), None) is not None
        # A turn is opened again whenever it is resumed, so it may be open from before all the same.
        if kind == "turn" or not was_opened_here:
            self.closed.append((kind, name))

    def name_blob(self, hash_: str | None) -> None:
        if hash_ is not None:
            self.blobs.append(hash_)

    def name_blobs_in(self, parts: Iterable[Part]) -> None:
        self.blobs.extend(part.blob for part in parts if isinstance(part, Image | File))

    def show(self, event: LoggedEvent, turn_id: str | None) -> None:
        self.shown.append(Shown(event.seq, turn_id, (event.seq,)))

    def settle(self, before: SessionFacts) -> SessionFacts:
        """What the session is called and set to after this commit."""
        given = {
            name: value
            for name, value in msgspec.structs.asdict(self.facts).items()
            if value is not None
        }
        after = msgspec.structs.replace(before, **given)
        if after.failed_turn in self.undone:
            after.failed_turn = ""
        return after
