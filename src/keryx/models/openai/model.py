"""A model of the Chat Completions API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keryx.models.openai.reply import ChatReply
from keryx.models.openai.wire import describe_tool, encode_body, encode_message
from keryx.models.wire.encoding import IMAGES
from keryx.models.wire.replies import Reply
from keryx.models.wire.streaming import StreamingModel
from keryx.ports.model import ModelRequest


class OpenAIModel(StreamingModel):
    """One model at one address."""

    format = "chat"
    path = "chat/completions"
    media_types = IMAGES
    describe_tool = staticmethod(describe_tool)
    encode_message = staticmethod(encode_message)

    def encoding_options(self) -> Mapping[str, Any]:
        return {"quirks": self.quirks}

    def body(self, request: ModelRequest) -> bytes:
        return encode_body(self.model, self.quirks, request, self._tools)

    def new_reply(self) -> Reply:
        return ChatReply(self.signer, self.quirks)
