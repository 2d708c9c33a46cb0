"""A reply while it arrives: what the exchange asks of each format, and how pieces are merged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

import msgspec

from keryx.events import Usage
from keryx.models.wire.problems import Problem
from keryx.ports.model import CallPiece, OpaquePiece, Piece, ReasoningPiece, TextPiece


class StreamFailedError(Exception):
    """The server put an error object into the stream."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Reply(Protocol):
    """One reply while it arrives."""

    @property
    def is_done(self) -> bool:
        """Whether the server said that nothing follows."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the reply is whole, although something may follow."""
        ...

    @property
    def has_begun(self) -> bool: ...

    @property
    def usage(self) -> Usage | None: ...

    @property
    def stop_reason(self) -> str: ...

    @property
    def cost(self) -> float | None:
        """What the server says that the reply cost, in US dollars; None: it does not say."""
        ...

    @property
    def cache_writes(self) -> int:
        """How many tokens of the input the server wrote to its cache for an extra price."""
        ...

    def add(self, events: list[bytes]) -> list[Piece]:
        """Return the pieces of these events, neighbours merged.

        Raise `msgspec.DecodeError` for an invalid event, and `StreamFailedError`.
        """
        ...


E = TypeVar("E")


class EventReply(ABC, Generic[E]):
    """One reply while it arrives, in events of one type."""

    def __init__(self, signer: str, decode: Callable[[bytes], E]) -> None:
        """`signer` is who signs the opaque items of this reply."""
        self._signer = signer
        self._decode = decode
        self.is_done = False
        self.has_begun = False
        self.cost: float | None = None
        self.cache_writes = 0

    def add(self, events: list[bytes]) -> list[Piece]:
        pieces = Pieces()
        for data in events:
            if self.is_done:
                break
            event = self._decode(data)
            self.has_begun = True
            self._read(event, pieces)
        return pieces.finish()

    @abstractmethod
    def _read(self, event: E, pieces: Pieces) -> None:
        """Take over what this event says."""


class CachedTokens(msgspec.Struct, gc=False):
    """Details about the input, as both APIs of OpenAI count it."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None

    @classmethod
    def writes(cls, details: Self | None) -> int:
        """Return how many tokens were written to the cache for an extra price."""
        return (details.cache_write_tokens if details else None) or 0


class ReasoningTokens(msgspec.Struct, gc=False):
    """Details about the output, as both APIs of OpenAI count it."""

    reasoning_tokens: int | None = None


def usage_of(
    read: int | None,
    written: int | None,
    cached: CachedTokens | None,
    reasoning: ReasoningTokens | None,
    total: int | None = None,
) -> Usage:
    """Return the usage of a reply by the counts of either API of OpenAI."""
    read, written = read or 0, written or 0
    thoughts = (reasoning.reasoning_tokens if reasoning else None) or 0
    if thoughts and total == read + written + thoughts:
        written += thoughts  # xAI and some others count the reasoning apart from the output
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cached_tokens=(cached.cached_tokens if cached else None) or 0,
        reasoning_tokens=thoughts,
    )


class Pieces:
    """Collects the pieces of one read, and merges neighbours of one kind."""

    __slots__ = ("_call", "_pieces", "_reasoning", "_text")

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._text = ""
        self._reasoning = ""
        self._call: CallPiece | None = None

    def text(self, text: str) -> None:
        if text:
            if self._reasoning or self._call is not None:
                self._flush()
            self._text += text

    def reasoning(self, text: str) -> None:
        if text:
            if self._text or self._call is not None:
                self._flush()
            self._reasoning += text

    def call(self, index: int, *, call_id: str = "", tool: str = "", arguments: str = "") -> None:
        call = self._call
        if call is not None and call.index == index:
            self._call = CallPiece(
                index, call.call_id or call_id, call.tool or tool, call.arguments + arguments
            )
            return
        self._flush()
        self._call = CallPiece(index, call_id, tool, arguments)

    def opaque(self, signer: str, item: bytes) -> None:
        self._flush()
        self._pieces.append(OpaquePiece(signer, item))

    def finish(self) -> list[Piece]:
        self._flush()
        return self._pieces

    def _flush(self) -> None:
        if self._reasoning:
            self._pieces.append(ReasoningPiece(self._reasoning))
            self._reasoning = ""
        if self._text:
            self._pieces.append(TextPiece(self._text))
            self._text = ""
        if self._call is not None:
            self._pieces.append(self._call)
            self._call = None
