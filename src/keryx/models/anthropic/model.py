"""A model of the Messages API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar

from keryx.messages import Message
from keryx.models.anthropic.capabilities import Capabilities
from keryx.models.anthropic.reply import AnthropicReply
from keryx.models.anthropic.wire import describe_tool, encode_body, encode_message
from keryx.models.http import endpoint
from keryx.models.wire.encoding import IMAGES, PDF, LoadBlob, MediaLoader
from keryx.models.wire.replies import Reply
from keryx.models.wire.streaming import StreamingModel
from keryx.ports.model import ModelRequest, ToolSpec


class AnthropicModel(StreamingModel):
    """One model at one address."""

    format: ClassVar[str] = "anthropic"
    key_header: ClassVar[str] = "x-api-key"
    version_headers: ClassVar[Mapping[str, str]] = {"anthropic-version": "2023-06-01"}

    @cached_property
    def _capabilities(self) -> Capabilities:
        return Capabilities.of(self.model)

    @staticmethod
    def address(base_url: str, model: str) -> str:
        del model
        return endpoint(base_url, "messages")

    def encoder(self, blobs: LoadBlob | None) -> Callable[[Message], bytes]:
        return partial(encode_message, media=MediaLoader(blobs, IMAGES | {PDF}), signer=self.signer)

    @staticmethod
    def describe_tool(spec: ToolSpec) -> Mapping[str, Any]:
        return describe_tool(spec)

    def body(self, request: ModelRequest) -> bytes:
        return encode_body(self.model, self._capabilities, request, self._tools)

    def new_reply(self) -> Reply:
        return AnthropicReply(self.signer)
