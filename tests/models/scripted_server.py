"""A model that asks a scripted server, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from keryx.aio.clock import Clock
from keryx.errors import ModelError
from keryx.messages import Message, Text, UserMessage
from keryx.models.anthropic import AnthropicModel
from keryx.models.gemini import GeminiModel
from keryx.models.http import Clients
from keryx.models.openai import OpenAIModel
from keryx.models.responses import ResponsesModel
from keryx.models.wire.streaming import StreamingModel
from keryx.ports.model import (
    CallPiece,
    Finished,
    Model,
    ModelRequest,
    OpaquePiece,
    Piece,
    ReasoningPiece,
    Retrying,
    Switching,
    TextPiece,
    ToolSpec,
)
from keryx.testing.modelserver import MODEL

PATIENCE = 20.0  # long enough for any machine; only reached by a test that fails
KEY = "sk-very-secret-0123456789"


def user(text: str) -> UserMessage:
    return UserMessage((Text(text),))


def request(model: Model, *messages: Message, **options: Any) -> ModelRequest:
    said = messages or (user("hello"),)
    return ModelRequest(
        system=options.pop("system", "You are a test."),
        history=[model.encode(message) for message in said],
        **options,
    )


def openai_model(
    url: str,
    clients: Clients,
    *,
    clock: Clock | None = None,
    api_key: str | None = KEY,
    model: str = MODEL,
    headers: Mapping[str, str] | None = None,
) -> OpenAIModel:
    return OpenAIModel(
        name=f"openai:{model}",
        model=model,
        base_url=url,
        api_key=api_key,
        clients=clients,
        first_byte=60.0,
        between_bytes=30.0,
        headers=headers,
        clock=clock,
    )


FORMATS: Mapping[str, type[StreamingModel]] = {
    "chat": OpenAIModel,
    "responses": ResponsesModel,
    "anthropic": AnthropicModel,
    "gemini": GeminiModel,
}
FOLDERS = {name: "/v1beta" if name == "gemini" else "/v1" for name in FORMATS}


class NewModel:
    """Creates models of one format."""

    def __init__(self, name: str, clients: Clients) -> None:
        self.format = name
        self._clients = clients

    def __call__(
        self,
        host: str,
        *,
        clock: Clock | None = None,
        api_key: str | None = KEY,
        model: str = MODEL,
        headers: Mapping[str, str] | None = None,
        query: str = "",
        **options: Any,
    ) -> StreamingModel:
        return FORMATS[self.format](
            name=f"{self.format}:{model}",
            model=model,
            base_url=f"{host}{FOLDERS[self.format]}{query}" if host.startswith("http") else host,
            api_key=api_key,
            clients=self._clients,
            first_byte=60.0,
            between_bytes=30.0,
            headers=headers,
            clock=clock,
            **options,
        )


TOOLS: Sequence[ToolSpec] = (
    ToolSpec("look", "Look.", {"type": "object", "properties": {"path": {"type": "string"}}}),
)


@dataclass
class Answer:
    """A reply put together, and the pieces that it came in."""

    text: str = ""
    reasoning: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    """id, tool and arguments."""
    opaque: list[OpaquePiece] = field(default_factory=list[OpaquePiece])
    finished: Finished | None = None
    notices: list[Retrying | Switching] = field(default_factory=list[Retrying | Switching])
    pieces: list[Piece] = field(default_factory=list[Piece])

    def take(self, piece: Piece) -> None:
        assert self.finished is None
        self.pieces.append(piece)
        match piece:
            case TextPiece():
                self.text += piece.text
            case ReasoningPiece():
                self.reasoning += piece.text
            case CallPiece():
                call = self.calls.setdefault(piece.index, ["", "", ""])
                call[0] += piece.call_id
                call[1] += piece.tool
                call[2] += piece.arguments
            case OpaquePiece():
                self.opaque.append(piece)
            case Retrying() | Switching():
                self.notices.append(piece)
                self.text, self.reasoning, self.calls = "", "", {}
            case Finished():
                self.finished = piece


async def ask(model: Model, *messages: Message, **options: Any) -> Answer:
    answer = Answer()
    async with asyncio.timeout(PATIENCE):
        async for piece in model.stream(request(model, *messages, **options)):
            answer.take(piece)
    assert answer.finished is not None
    return answer


async def failure(model: Model, *messages: Message, **options: Any) -> ModelError:
    """How asking fails. The key is in nothing that it says."""
    with pytest.raises(ModelError) as caught:
        await ask(model, *messages, **options)
    error = caught.value
    assert KEY not in f"{error!s} {error!r} {error.message} {error.hint} {error.__cause__!r}"
    assert error.hint
    return error
