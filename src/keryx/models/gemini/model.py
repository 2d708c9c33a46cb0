"""A model of the Gemini API."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from keryx.models.gemini.generations import Generation
from keryx.models.gemini.reply import GeminiReply
from keryx.models.gemini.wire import describe_tool, encode_body, encode_message
from keryx.models.http import endpoint
from keryx.models.wire.encoding import PDF
from keryx.models.wire.replies import Reply
from keryx.models.wire.streaming import StreamingModel
from keryx.ports.model import ModelRequest


class GeminiModel(StreamingModel):
    """One model at one address."""

    format = "gemini"
    media_types = frozenset(
        {"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", PDF}
    )
    describe_tool = staticmethod(describe_tool)
    encode_message = staticmethod(encode_message)
    key_header = "x-goog-api-key"

    @cached_property
    def _generation(self) -> Generation:
        return Generation.of(self.model)

    def address(self, base_url: str) -> str:
        name = self.model.removeprefix("models/")
        return endpoint(base_url, f"models/{name}:streamGenerateContent?alt=sse")

    def encoding_options(self) -> Mapping[str, Any]:
        return {"generation": self._generation}

    def body(self, request: ModelRequest) -> bytes:
        return encode_body(self._generation, request, self._tools)

    def new_reply(self) -> Reply:
        return GeminiReply(self.signer)
