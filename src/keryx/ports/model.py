"""The interface of models: a model streams one reply to one request.

The history is passed as bytes: the model encodes each message once, so that a long turn does not
encode the history again at every step.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from keryx.errors import ModelError
from keryx.events import ErrorKind, Usage
from keryx.messages import Message, ToolChoice


class ToolSpec(msgspec.Struct, frozen=True):
    """What a model is told about a tool."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model."""

    system: str
    history: Sequence[bytes]
    """The messages, each encoded by `Model.encode`, in the order that the API demands."""
    tools: Sequence[ToolSpec] = ()
    tool_choice: ToolChoice | None = None
    """Which of the tools the reply must call; None: the model chooses whether it calls any."""
    effort: str | None = None
    max_tokens: int | None = None
    schema: Mapping[str, Any] | None = None
    """A JSON schema that the answer must match."""
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])


class TextPiece(msgspec.Struct, frozen=True, gc=False):
    """Text of the reply."""

    text: str


class ReasoningPiece(msgspec.Struct, frozen=True, gc=False):
    """Reasoning that the provider shows."""

    text: str


class CallPiece(msgspec.Struct, frozen=True, gc=False):
    """A piece of a tool call. The first one has id and name; each may have arguments."""

    index: int
    call_id: str = ""
    tool: str = ""
    arguments: str = ""


class OpaquePiece(msgspec.Struct, frozen=True, gc=False):
    """An item that only its provider understands, such as signed reasoning.

    It is kept with the reply, at its place between text and calls, and `Model.encode` sends it back
    to the same provider.
    """

    provider: str
    item: bytes
    """JSON."""


class Retrying(msgspec.Struct, frozen=True):
    """The reply starts again after `delay` seconds, and the pieces so far are void."""

    cause: ErrorKind
    message: str
    delay: float


class Switching(msgspec.Struct, frozen=True):
    """Another model takes over, and the reply starts again."""

    from_: str
    to: str
    cause: ErrorKind
    message: str


class Finished(msgspec.Struct, frozen=True):
    """The end of a complete reply. A stream that ends without it is an error."""

    stop_reason: str
    usage: Usage | None = None
    model: str = ""
    cost: float | None = None
    """In US dollars, if the price of that model is known."""

    def __post_init__(self) -> None:
        """Drop counts and a cost that cannot be: they come from outside."""
        if self.usage is not None and not self.usage.is_possible:
            msgspec.structs.force_setattr(self, "usage", None)
        if self.cost is not None and not 0 <= self.cost < math.inf:
            msgspec.structs.force_setattr(self, "cost", None)


Piece = TextPiece | ReasoningPiece | CallPiece | OpaquePiece | Retrying | Switching | Finished


def unfinished(name: str) -> ModelError:
    """Return the error for a stream that ended without `Finished`. The request may be retried.

    Every reader of a stream raises it, so that half a reply never counts as a complete one.
    """
    return ModelError(
        "bad_response",
        f"the reply of {name} was cut: its stream ended before the reply did",
        "ask again; if it happens often, report it to whoever provides this model",
        retry_after=0.0,
    )


def defect(error: Exception) -> ModelError:
    """Return the `ModelError` for any other exception of an adapter, which is a defect."""
    return ModelError("internal", f"{type(error).__name__}: {error}", "report this")


class Model(Protocol):
    """One model of one provider."""

    @property
    def name(self) -> str:
        """The name as people write it: `provider:name`."""
        ...

    @property
    def window(self) -> int | None:
        """The context window in tokens; None if it is unknown."""
        ...

    @property
    def sees_images(self) -> bool: ...

    def encode(self, message: Message) -> bytes:
        """Encode the message for this model's API. The caller keeps the bytes."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Stream the reply. Text that arrived in one socket read is one piece.

        Raises `ModelError` with a kind and a hint. Closing the generator (`aclose`) or cancelling
        the task that iterates closes the connection at once.
        """
        ...
