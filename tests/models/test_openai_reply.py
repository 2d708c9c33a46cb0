"""Chunks of servers that differ from the API, put together into the calls that were meant."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from keryx.events import Usage
from keryx.models.openai.reply import ChatReply as Reply
from keryx.models.wire.replies import StreamFailedError
from keryx.ports.model import CallPiece, ReasoningPiece, TextPiece
from tests.models.scripted_server import Answer


def chunk(**delta: Any) -> bytes:
    return msgspec.json.encode({"choices": [{"delta": delta}]})


def call(index: int | None, id_: str | None, name: str | None, arguments: str | None) -> bytes:
    tool_call: dict[str, Any] = {"function": {"name": name, "arguments": arguments}, "id": id_}
    if index is not None:
        tool_call["index"] = index
    return chunk(tool_calls=[tool_call])


def calls_of(*events: bytes) -> dict[int, list[str]]:
    """The same whether they come at once or one by one."""
    at_once, one_by_one = Answer(), Answer()
    for piece in Reply().add(list(events)):
        at_once.take(piece)
    reply = Reply()
    for event in events:
        for piece in reply.add([event]):
            one_by_one.take(piece)
    assert at_once.calls == one_by_one.calls
    return at_once.calls


@pytest.mark.parametrize(
    "events",
    [
        [call(0, "a", "x", ""), call(0, None, None, "{}"), call(1, "b", "y", "[]")],
        [call(None, "a", "x", "{"), call(None, None, None, "}"), call(None, "b", "y", "[]")],
        [call(0, "a", "x", "{}"), call(0, "b", "y", "[]")],
        [call(0, "a", "x", "{"), call(0, "a", "x", "}"), call(1, "b", "y", "[]")],
        [call(5, "a", "x", "{}"), call(7, "b", "y", "[]")],
        [call(0, "a", None, None), call(0, None, "x", "{}"), call(1, "b", "y", "[]")],
    ],
    ids=["usual", "no index", "index always 0", "id repeated", "gaps", "name later"],
)
def test_calls_are_told_apart(events: list[bytes]) -> None:
    assert calls_of(*events) == {0: ["a", "x", "{}"], 1: ["b", "y", "[]"]}


def test_calls_without_ids_are_told_apart_by_their_names() -> None:
    events = [call(None, None, "x", "{"), call(None, "", None, "}"), call(None, None, "x", "[]")]
    assert calls_of(*events) == {0: ["", "x", "{}"], 1: ["", "x", "[]"]}


def test_pieces_of_one_read_are_merged() -> None:
    events = [
        chunk(reasoning="a"),
        chunk(reasoning_content="b"),
        chunk(content="c"),
        chunk(content="d", refusal=None),
        call(0, "i", "x", "{"),
        call(0, None, None, "}"),
        b'{"choices": [], "id": "x"}',
        b'{"choices": null, "error": null}',
    ]
    assert Reply().add(events) == [
        ReasoningPiece("ab"),
        TextPiece("cd"),
        CallPiece(0, "i", "x", "{}"),
    ]


def test_a_refusal_is_text() -> None:
    assert Reply().add([chunk(refusal="I will not.")]) == [TextPiece("I will not.")]


def test_usage_with_holes_is_counted_as_far_as_it_is_known() -> None:
    reply = Reply()
    reply.add([b'{"usage": {"prompt_tokens": 3, "prompt_tokens_details": null}}'])
    assert reply.usage == Usage(input_tokens=3)


def test_a_reply_is_whole_once_its_end_was_said() -> None:
    reply = Reply()
    assert not reply.is_complete
    reply.add([b'{"choices": [{"delta": {}, "finish_reason": "length"}]}'])
    assert (reply.is_complete, reply.is_done, reply.stop_reason) == (True, False, "length")
    reply.add([b"[DONE]", b"whatever follows"])
    assert reply.is_done


def test_an_error_that_is_a_plain_text_breaks_off_too() -> None:
    with pytest.raises(StreamFailedError, match="out of order"):
        Reply().add([b'{"error": "out of order"}'])


@pytest.mark.parametrize("event", [b"", b"{", b'{"choices": 5}', b'\xff{"a"}', b'{"choices":["'])
def test_what_is_no_chunk_is_refused(event: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        Reply().add([event])
