"""A model without a network that follows a script. For demos and tests.

It streams in pieces like any other model, pauses with an injected sleep, and fails on request. Its
messages are encoded as plain JSON, so a script can read its history.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.errors import ModelError
from keryx.events import Usage
from keryx.messages import Message
from keryx.ports.model import (
    CallPiece,
    Finished,
    ModelRequest,
    Piece,
    ReasoningPiece,
    TextPiece,
)

# About the length of a token, so that a demo looks like a real model.
PIECE: Final = 5

_decode: Final = json_decoder(Message).decode


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call of a reply; arguments that are a text are sent unchanged."""

    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """One reply: first the reasoning, then the text, then the calls."""

    text: str = ""
    reasoning: str = ""
    calls: Sequence[ScriptedCall] = ()
    usage: Usage | None = None
    cost: float | None = None
    """US dollars; None: unknown."""
    pause: float = 0.0
    """Seconds before each piece."""
    piece: int = PIECE
    """How many characters a piece has."""
    hold: Callable[[], Awaitable[object]] | None = None
    """Awaited after the last piece and before the end, for instance `event.wait`."""
    error: ModelError | None = None
    """Raised instead of the end."""
    stop: str = ""
    """The reason of the end; empty: the usual one."""


Script = Sequence[ScriptedReply] | Callable[[ModelRequest], ScriptedReply]


class ScriptedModel:
    """Replies in the order of the script, or with the result of its function."""

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted:demo",
        window: int | None = None,
        sees_images: bool = False,
        is_priced: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._script = script
        self._name = name
        self._window = window
        self._sees_images = sees_images
        self._sleep = sleep
        self.is_priced = is_priced
        """Whether its replies say what they cost."""
        self.asked: list[ModelRequest] = []

    def __repr__(self) -> str:
        return f"ScriptedModel({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def window(self) -> int | None:
        return self._window

    @property
    def sees_images(self) -> bool:
        return self._sees_images

    def encode(self, message: Message) -> bytes:
        return msgspec.json.encode(message)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.asked.append(request)
        request_number = len(self.asked)
        reply = self._next(request, request_number)
        for piece in _pieces(reply, request_number):
            # Even without a pause other tasks can run between pieces, as with a network.
            await self._sleep(reply.pause)
            yield piece
        if reply.hold is not None:
            await reply.hold()
        if reply.error is not None:
            raise reply.error
        stop = reply.stop or ("tool_calls" if reply.calls else "stop")
        yield Finished(stop, reply.usage, self._name, reply.cost)

    def _next(self, request: ModelRequest, number: int) -> ScriptedReply:
        if callable(self._script):
            return self._script(request)
        if number > len(self._script):
            raise ModelError(
                "bad_response",
                f"the script of {self._name} has {len(self._script)} replies and is over",
                "give it one reply for each step",
            )
        return self._script[number - 1]


def named_model(name: str) -> ScriptedModel:
    """Return the model of the tour, or one that always says the same."""
    if name == "scripted:tour":
        tour: ScriptedModel = importlib.import_module("keryx.models.tour").tour_model()
        return tour
    reply = ScriptedReply(text="This is the scripted model: it says this, whatever it is asked.")

    def script(request: ModelRequest) -> ScriptedReply:
        del request
        return reply

    return ScriptedModel(script, name=name)


def history_of(request: ModelRequest) -> list[Message]:
    """Return the history of a request to a scripted model, as messages."""
    return [_decode(encoded) for encoded in request.history]


def _pieces(reply: ScriptedReply, number: int) -> list[Piece]:
    pieces: list[Piece] = [ReasoningPiece(text) for text in _cut(reply.reasoning, reply.piece)]
    pieces += [TextPiece(text) for text in _cut(reply.text, reply.piece)]
    for index, call in enumerate(reply.calls):
        pieces.append(CallPiece(index, f"scripted_{number}_{index}", call.tool))
        pieces += [CallPiece(index, arguments=text) for text in _cut(call.text, reply.piece)]
    return pieces


def _cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
