"""Output in bounded memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.aio.capture import Capture


def test_short_output_is_kept_as_it_came():
    capture = Capture(head=8, tail=8)
    capture.feed("stdout", b"one\n")
    capture.feed("stderr", b"two\n")
    assert capture.text() == "one\ntwo\n"
    assert capture.total == 8
    assert not capture.truncated


def test_output_of_exactly_head_and_tail_is_whole():
    capture = Capture(head=4, tail=4)
    capture.feed("stdout", b"abcdefgh")
    assert capture.text() == "abcdefgh"
    assert not capture.truncated


def test_long_output_keeps_head_and_tail_and_says_what_is_missing(tmp_path: Path):
    spill = tmp_path / "middle"
    capture = Capture(head=4, tail=4, spill=spill)
    capture.feed("stdout", b"abcdefghijkl")
    capture.close()
    assert capture.text() == f"abcd\n[... 4 bytes left out; they are in {spill} ...]\nijkl"
    assert spill.read_bytes() == b"efgh"
    assert capture.truncated


def test_without_a_spill_file_the_middle_is_only_counted():
    capture = Capture(head=3, tail=3)
    capture.feed("stdout", b"a\nb" + b"x" * 1000 + b"c\nd")
    assert capture.text() == "a\nb\n[... 1000 bytes left out ...]\nc\nd"


def test_a_spill_file_is_made_only_when_needed_and_for_its_owner_only(tmp_path: Path):
    spill = tmp_path / "middle"
    capture = Capture(head=4, tail=4, spill=spill)
    capture.feed("stdout", b"abcdefgh")
    assert not spill.exists()
    capture.feed("stdout", b"ijklmnopq")
    capture.close()
    assert spill.stat().st_mode & 0o777 == 0o600


def test_a_spill_file_stops_at_its_limit(tmp_path: Path):
    spill = tmp_path / "middle"
    capture = Capture(head=2, tail=2, spill=spill, spill_limit=5)
    for _ in range(10):
        capture.feed("stdout", b"0123456789")
    capture.close()
    assert spill.read_bytes() == b"23456"
    assert f"96 bytes left out; the first 5 of them are in {spill}" in capture.text()


def test_a_spill_file_that_cannot_be_written_is_named_and_stops_nothing(tmp_path: Path):
    capture = Capture(head=1, tail=1, spill=tmp_path / "missing" / "middle")
    capture.feed("stdout", b"abcdef")
    capture.feed("stdout", b"ghi")
    capture.close()
    assert capture.text().startswith("a\n[... 7 bytes left out; the first 0 of them are in ")
    assert "No such file or directory" in capture.text()


def test_text_may_be_asked_for_while_output_still_comes(tmp_path: Path):
    spill = tmp_path / "middle"
    capture = Capture(head=2, tail=2, spill=spill)
    capture.feed("stdout", b"abcdef")
    assert capture.text().endswith("ef")
    capture.feed("stdout", b"gh")
    capture.close()
    assert capture.text().endswith("gh")
    assert spill.read_bytes() == b"cdef"


def test_what_comes_after_the_end_is_dropped():
    capture = Capture()
    capture.feed("stdout", b"kept")
    capture.close()
    capture.feed("stdout", b" late")
    assert capture.text() == "kept"
    assert capture.total == 4


def test_live_text_is_decoded_per_stream_across_chunks():
    heard: list[tuple[str, str]] = []
    capture = Capture(on_data=lambda stream, text: heard.append((stream, text)))
    euro = "€".encode()
    capture.feed("stdout", b"a" + euro[:1])
    capture.feed("stderr", b"b" + euro[:2])
    capture.feed("stdout", euro[1:])
    capture.feed("stderr", euro[2:] + b"\xf0")
    capture.close()
    assert heard == [
        ("stdout", "a"),
        ("stderr", "b"),
        ("stdout", "€"),
        ("stderr", "€"),
        ("stderr", "\N{REPLACEMENT CHARACTER}"),
    ]


@pytest.mark.parametrize("size", range(1, 9))
def test_a_cut_never_splits_a_character(size: int, tmp_path: Path):
    spill = tmp_path / "middle"
    text = "ä€😀ß" * 20
    capture = Capture(head=size, tail=size, spill=spill)
    for byte in text.encode():
        capture.feed("stdout", bytes([byte]))
    capture.close()
    assert "\N{REPLACEMENT CHARACTER}" not in capture.text()
    head, _, after_head = capture.text().partition("[... ")
    _, _, tail = after_head.partition(" ...]\n")
    assert head.removesuffix("\n") + spill.read_text() + tail == text


@given(chunks=st.lists(st.binary(max_size=40)), head=st.integers(0, 20), tail=st.integers(0, 20))
def test_nothing_is_lost_between_head_file_and_tail(
    chunks: list[bytes], head: int, tail: int, tmp_path_factory: pytest.TempPathFactory
):
    spill = tmp_path_factory.mktemp("capture") / "middle"
    capture = Capture(head=head, tail=tail, spill=spill)
    for chunk in chunks:
        capture.feed("stdout", chunk)
    capture.close()
    output = b"".join(chunks)
    assert capture.total == len(output)
    middle = spill.read_bytes() if spill.exists() else b""
    if middle:
        assert f"[... {len(middle)} bytes left out; they are in {spill} ...]" in capture.text()
        assert middle in output
        assert len(middle) >= len(output) - head - tail
    else:
        assert capture.text() == output.decode(errors="replace")


def test_a_gigabyte_fits_in_little_memory():
    capture = Capture()
    chunk = b"y\n" * (128 * 1024)
    tracemalloc.start()
    for _ in range(4096):
        capture.feed("stdout", chunk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert capture.total == 1 << 30
    assert peak < 4 << 20
    assert len(capture.text()) < 70_000
