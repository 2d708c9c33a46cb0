"""A reply while it arrives: what the exchange asks of each format, and how pieces are merged."""

from __future__ import annotations

from typing import Protocol

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

    def add(self, events: list[bytes]) -> list[Piece]:
        """Return the pieces of these events, neighbours merged.

        Raise `msgspec.DecodeError` for an invalid event, and `StreamFailedError`.
        """
        ...


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
