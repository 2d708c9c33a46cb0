"""The results of a search in the transcripts of all sessions."""

from __future__ import annotations

from typing import Literal

import msgspec

FoundKind = Literal["message", "reply", "call"]
"""The kind of text that matched. call: its arguments or its result."""


class Piece(msgspec.Struct, frozen=True):
    """A part of a snippet; `found` marks the words that were searched."""

    text: str
    found: bool


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A hit of a search: an entry of a transcript, by its `seq`."""

    session_id: str
    seq: int
    turn_id: str | None
    kind: FoundKind
    at: float
    snippet: tuple[Piece, ...]


class Covered(msgspec.Struct, frozen=True, kw_only=True):
    """What a search finds: commits up to `position`. A `problem` says why it is not whole."""

    position: int
    is_whole: bool
    problem: str | None = None


class SessionMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A hit of a search, for tools."""

    session_id: str
    title: str
    at: float
    kind: FoundKind
    text: str
    """The words around the match."""
