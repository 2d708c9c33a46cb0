"""The parser of server-sent events: the same events, however the bytes were cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.models.sse import EventTooLargeError, SseParser

LIMIT = 1 << 20


def parsed(*chunks: bytes) -> list[bytes]:
    parser = SseParser(limit=LIMIT)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.finish()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: one\n\ndata: two\n\n", [b"one", b"two"]),
        (b"data:one\r\n\r\ndata:two\r\n\r\n", [b"one", b"two"]),
        (b"data: one\r\rdata: two\r\r", [b"one", b"two"]),
        (b"data: one\ndata: two\n\n", [b"one\ntwo"]),
        (b"data\ndata\n\n", [b"\n"]),
        (b"data:  two spaces\n\n", [b" two spaces"]),
        (b"\xef\xbb\xbfdata: after a mark\n\n", [b"after a mark"]),
        (b": comment\n\n:\n\ndata: x\n\n", [b"x"]),
        (b"event: e\nid: 1\nretry: 5\ndata: x\n\n", [b"x"]),
        (b"database: no\ndata: yes\n\n", [b"yes"]),
        (b"data: [DONE]\n\n", [b"[DONE]"]),
        (b"data: no end", [b"no end"]),
        (b"data: no end\n", [b"no end"]),
        (b"\n\n\r\n\r\r\n", []),
        (b"", []),
        (b"<html>\n\n</html>\n", []),
        ("data: \u2028 «ü»\x0b\x85 \n\n".encode(), ["\u2028 «ü»\x0b\x85 ".encode()]),
    ],
)
def test_events_are_found(stream: bytes, events: list[bytes]) -> None:
    assert parsed(stream) == events
    assert parsed(*(stream[at : at + 1] for at in range(len(stream)))) == events


lines = st.one_of(
    st.sampled_from([b"", b"", b"data", b"data:", b": c", b"event: x", b"junk", b"\xef\xbb\xbf"]),
    st.binary(max_size=8).map(lambda value: b"data: " + value),
)
streams = st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=30).map(
    lambda pairs: b"".join(line + end for line, end in pairs)
)


@given(stream=streams, cuts=st.lists(st.integers(0, 400), max_size=20))
def test_where_the_bytes_are_cut_changes_nothing(stream: bytes, cuts: list[int]) -> None:
    at = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[start:end] for start, end in itertools.pairwise(at)]
    assert b"".join(chunks) == stream
    assert parsed(*chunks) == parsed(stream)


def test_an_event_is_given_as_soon_as_it_is_complete() -> None:
    parser = SseParser(limit=LIMIT)
    assert parser.feed(b"data: x\r") == []
    assert parser.feed(b"\n\r") == [b"x"]
    assert parser.feed(b"\ndata: y\n\nda") == [b"y"]
    assert parser.finish() == []


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    parser = SseParser(limit=1000)
    parser.feed(b"x" * 600)
    with pytest.raises(EventTooLargeError, match="1000 bytes"):
        parser.feed(b"x" * 600)


def test_a_large_event_in_many_pieces_is_one_event() -> None:
    pieces = [b"data: ", *[b"0123456789" for _ in range(50_000)], b"\n\n"]
    assert parsed(*pieces) == [b"0123456789" * 50_000]
