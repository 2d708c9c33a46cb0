"""A model of the Chat Completions API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from keryx.messages import Message
from keryx.models.http import endpoint
from keryx.models.openai.reply import ChatReply
from keryx.models.openai.wire import describe_tool, encode_body, encode_message
from keryx.models.wire.encoding import LoadBlob, MediaLoader
from keryx.models.wire.replies import Reply
from keryx.models.wire.streaming import StreamingModel
from keryx.ports.model import ModelRequest, ToolSpec


class OpenAIModel(StreamingModel):
    """One model at one address."""

    format: ClassVar[str] = "chat"

    @staticmethod
    def address(base_url: str, model: str) -> str:
        del model
        return endpoint(base_url, "chat/completions")

    def encoder(self, blobs: LoadBlob | None) -> Callable[[Message], bytes]:
        return partial(encode_message, media=MediaLoader(blobs, None), signer=self.signer)

    @staticmethod
    def describe_tool(spec: ToolSpec) -> Mapping[str, Any]:
        return describe_tool(spec)

    def body(self, request: ModelRequest) -> bytes:
        return encode_body(self.model, self.quirks, request, self._tools)

    def new_reply(self) -> Reply:
        return ChatReply(self.signer, self.quirks.returned)
