"""The seam between the turn loop and a model.

A model streams one reply to one request. The history comes as bytes that the same model encoded
once, message by message, so that a long turn does not encode it again at every step.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from keryx.errors import ModelError
from keryx.events import ErrorKind, Usage
from keryx.messages import Message


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as a model is told of it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that a model needs for one reply."""

    system: str
    history: Sequence[bytes]
    """Messages, each as `Model.encode` gave it, in the order that the API demands."""
    tools: Sequence[ToolSpec] = ()
    effort: str | None = None
    max_tokens: int | None = None
    schema: Mapping[str, Any] | None = None
    """A JSON schema that the answer must fit."""
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])


class TextPiece(msgspec.Struct, frozen=True, gc=False):
    """Text of the reply."""

    text: str


class ReasoningPiece(msgspec.Struct, frozen=True, gc=False):
    """Reasoning that the provider shows."""

    text: str


class CallPiece(msgspec.Struct, frozen=True, gc=False):
    """A piece of a tool call: id and name come with the first one, arguments in any pieces."""

    index: int
    call_id: str = ""
    tool: str = ""
    arguments: str = ""


class Retrying(msgspec.Struct, frozen=True):
    """The reply starts anew: forget what came so far. Said before the wait, not after."""

    cause: ErrorKind
    message: str
    delay: float


class Switching(msgspec.Struct, frozen=True):
    """Another model takes over, and the reply starts anew."""

    from_: str
    to: str
    cause: ErrorKind
    message: str


class Finished(msgspec.Struct, frozen=True):
    """The end of a whole reply. A stream that ends without it was cut, which is an error."""

    stop_reason: str
    usage: Usage | None = None
    model: str = ""
    cost: float | None = None
    """In US dollars, if the price of that model is known."""


Piece = TextPiece | ReasoningPiece | CallPiece | Retrying | Switching | Finished


def unfinished(name: str) -> ModelError:
    """The stream of that model ended without `Finished`: its reply was cut, and may be asked again.

    Every reader of a stream raises this, so that no adapter can pass half a reply off as whole.
    """
    return ModelError(
        "bad_response",
        f"the reply of {name} was cut: its stream ended before the reply did",
        "ask again; if it happens often, report it to whoever provides this model",
        retry_after=0.0,
    )


def defect(error: Exception) -> ModelError:
    """What a model raised that is no `ModelError`: an adapter's own fault, and said so."""
    return ModelError("internal", f"{type(error).__name__}: {error}", "report this")


class Model(Protocol):
    """One model of one provider."""

    @property
    def name(self) -> str:
        """As people write it: `provider:name`."""
        ...

    @property
    def window(self) -> int | None:
        """How many tokens fit, if that is known."""
        ...

    @property
    def sees_images(self) -> bool: ...

    def encode(self, message: Message) -> bytes:
        """The message as this model's API takes it; the caller keeps the bytes."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Ask. Pieces that came in one read are one piece.

        Raises `ModelError` with a kind and a hint. Closing the generator (`aclose`) or cancelling
        whoever iterates closes the connection at once.
        """
        ...
