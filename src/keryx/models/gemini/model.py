"""A model of the Gemini API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar, Final

from keryx.messages import Message
from keryx.models.gemini.generations import Generation
from keryx.models.gemini.reply import GeminiReply
from keryx.models.gemini.wire import describe_tool, encode_body, encode_message
from keryx.models.http import endpoint
from keryx.models.wire.encoding import PDF, LoadBlob, MediaLoader
from keryx.models.wire.replies import Reply
from keryx.models.wire.streaming import StreamingModel
from keryx.ports.model import ModelRequest, ToolSpec

TYPES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", PDF})


class GeminiModel(StreamingModel):
    """One model at one address."""

    format: ClassVar[str] = "gemini"
    key_header: ClassVar[str] = "x-goog-api-key"

    @cached_property
    def _generation(self) -> Generation:
        return Generation.of(self.model)

    @staticmethod
    def address(base_url: str, model: str) -> str:
        name = model.removeprefix("models/")
        return endpoint(base_url, f"models/{name}:streamGenerateContent?alt=sse")

    def encoder(self, blobs: LoadBlob | None) -> Callable[[Message], bytes]:
        return partial(
            encode_message,
            media=MediaLoader(blobs, TYPES),
            signer=self.signer,
            generation=self._generation,
        )

    @staticmethod
    def describe_tool(spec: ToolSpec) -> Mapping[str, Any]:
        return describe_tool(spec)

    def body(self, request: ModelRequest) -> bytes:
        return encode_body(self._generation, request, self._tools)

    def new_reply(self) -> Reply:
        return GeminiReply(self.signer)
