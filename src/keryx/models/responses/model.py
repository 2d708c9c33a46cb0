"""A model of the Responses API. The server stores nothing: each request has the whole history."""

from __future__ import annotations

from keryx.models.responses.reply import ResponsesReply
from keryx.models.responses.wire import describe_tool, encode_body, encode_message
from keryx.models.wire.encoding import IMAGES, PDF
from keryx.models.wire.replies import Reply
from keryx.models.wire.streaming import StreamingModel
from keryx.ports.model import ModelRequest


class ResponsesModel(StreamingModel):
    """One model at one address."""

    format = "responses"
    path = "responses"
    media_types = IMAGES | {PDF}
    describe_tool = staticmethod(describe_tool)
    encode_message = staticmethod(encode_message)

    def body(self, request: ModelRequest) -> bytes:
        return encode_body(self.model, request, self._tools)

    def new_reply(self) -> Reply:
        return ResponsesReply(self.signer)
