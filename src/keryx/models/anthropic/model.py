"""A model of the Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from keryx.models.anthropic.capabilities import BINDING_HEADERS, Capabilities
from keryx.models.anthropic.reply import AnthropicReply
from keryx.models.anthropic.wire import describe_tool, encode_body, encode_message
from keryx.models.wire.encoding import IMAGES, PDF
from keryx.models.wire.replies import Reply
from keryx.models.wire.streaming import StreamingModel
from keryx.ports.model import ModelRequest


class AnthropicModel(StreamingModel):
    """One model at one address."""

    format = "anthropic"
    path = "messages"
    media_types = IMAGES | {PDF}
    describe_tool = staticmethod(describe_tool)
    encode_message = staticmethod(encode_message)
    key_header = "x-api-key"

    @cached_property
    def _capabilities(self) -> Capabilities:
        return Capabilities.of(self.model)

    def api_headers(self) -> Mapping[str, str]:
        return {
            "anthropic-version": "2023-06-01",
            **(BINDING_HEADERS if self._capabilities.binds_thinking else {}),
        }

    def body(self, request: ModelRequest) -> bytes:
        return encode_body(self.model, self._capabilities, request, self._tools)

    def new_reply(self) -> Reply:
        return AnthropicReply(self.signer)
