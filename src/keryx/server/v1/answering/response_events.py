"""The events of a response's stream: pure, from its progress.

The number of an event is its place in the answer: a reply of the model has a block of numbers, and
within it each character of its text has one. A piece of text has the number of its last character.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from keryx.messages import ToolCall
from keryx.server.v1.answering.progress import (
    BLOCK,
    CallsWait,
    Ended,
    MoreText,
    Piece,
    Progress,
    Reply,
    ReplyEnded,
)
from keryx.server.v1.answering.response_object import (
    call_item,
    message_item,
    reply_items,
    response_of,
    text_part,
)

DONE: Final = b"data: [DONE]\n\n"
_BEFORE_TEXT: Final = 1
"""The numbers of a block before its text: the item, and its part."""
_encode: Final = msgspec.json.Encoder().encode


class ResponseEvents:
    """Writes the events of one response, for one reader who has those up to `after`."""

    def __init__(self, progress: Progress, after: int = -1) -> None:
        self._progress = progress
        self._after = after
        self._indexes: dict[int, int] = {}
        """The index of the first item of each reply, by the number of the reply."""

    def begin(self) -> Iterator[bytes]:
        """Yield the events that come before the first reply."""
        response = response_of(self._progress)
        response |= dict.fromkeys(("usage", "completed_at", "error", "incomplete_details"))
        response["output"] = list[Any]()
        is_queued = response["background"] and self._progress.status == "queued"
        response["status"] = "queued" if is_queued else "in_progress"
        yield from self._event(0, "response.created", response=response)
        response["status"] = "in_progress"
        yield from self._event(1, "response.in_progress", response=response)

    def write(self, piece: Piece) -> Iterator[bytes]:
        """Yield the events for what is new."""
        match piece:
            case MoreText():
                yield from self._text(piece)
            case ReplyEnded():
                yield from self._end_text(piece)
            case CallsWait():
                yield from self._calls(piece.reply)
            case Ended():
                response = response_of(self._progress)
                kind = f"response.{self._progress.status}"
                yield from self._event(self._progress.end_number, kind, response=response)
                yield DONE

    def _event(self, number: int, kind: str, **fields: Any) -> Iterator[bytes]:
        if number > self._after:
            data = _encode({"type": kind, "sequence_number": number, **fields})
            yield b"event: %b\ndata: %b\n\n" % (kind.encode(), data)

    def _index(self, reply: Reply) -> int:
        index = self._indexes.get(reply.number)
        if index is None:
            earlier = (r for r in self._progress.replies if r.number < reply.number)
            # A place is never used twice: clients keep what they saw of a replaced reply.
            index = reply.replaced + sum(len(reply_items("", r)) for r in earlier)
            self._indexes[reply.number] = index
        return index

    def _text(self, piece: MoreText) -> Iterator[bytes]:
        reply, number = piece.reply, piece.reply.number * BLOCK
        index: dict[str, Any] = {"output_index": self._index(reply)}
        place = {**index, "item_id": reply.item_id, "content_index": 0}
        if piece.start == 0:
            item = message_item(reply, "in_progress")
            item["content"] = list[Any]()
            yield from self._event(number, "response.output_item.added", item=item, **index)
            kind, number = "response.content_part.added", number + _BEFORE_TEXT
            yield from self._event(number, kind, part=text_part(""), **place)
        first = reply.number * BLOCK + _BEFORE_TEXT + piece.start
        text = piece.text[max(0, self._after - first) :]
        kind = "response.output_text.delta"
        number = first + len(piece.text)
        yield from self._event(number, kind, delta=text, logprobs=[], **place)

    def _end_text(self, piece: ReplyEnded) -> Iterator[bytes]:
        reply = piece.reply
        if not reply.text:
            return
        number = reply.number * BLOCK + _BEFORE_TEXT + len(reply.text) + 1
        index, part = {"output_index": self._index(reply)}, text_part(reply.text)
        place = {**index, "item_id": reply.item_id, "content_index": 0}
        kind = "response.output_text.done"
        yield from self._event(number, kind, text=reply.text, logprobs=[], **place)
        yield from self._event(number + 1, "response.content_part.done", part=part, **place)
        status = "completed" if reply.is_complete and not piece.void else "incomplete"
        item = message_item(reply, status)
        yield from self._event(number + 2, "response.output_item.done", item=item, **index)

    def _calls(self, reply: Reply) -> Iterator[bytes]:
        number = reply.number * BLOCK + _BEFORE_TEXT + len(reply.text) + 4
        index = self._index(reply) + bool(reply.text)
        for call in reply.calls:
            yield from self._call(call, number, index)
            number, index = number + 4, index + 1

    def _call(self, call: ToolCall, number: int, index: int) -> Iterator[bytes]:
        assert self._progress.begin is not None
        session_id = self._progress.begin.session_id
        item = call_item(session_id, call.call_id, call.tool, call.arguments)
        place = {"output_index": index}
        added = {**item, "arguments": "", "status": "in_progress"}
        yield from self._event(number, "response.output_item.added", item=added, **place)
        named = {**place, "item_id": item["id"]}
        kind = "response.function_call_arguments"
        text = call.arguments
        yield from self._event(number + 1, f"{kind}.delta", delta=text, **named)
        yield from self._event(number + 2, f"{kind}.done", arguments=text, name=call.tool, **named)
        yield from self._event(number + 3, "response.output_item.done", item=item, **place)
