"""`read_file`: what is shown of a file, and what is said of what cannot be shown."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from keryx.messages import Image, Text
from keryx.tools.files import content, reading, safe_open
from tests.tools.files.file_session import FileSession

pytestmark = pytest.mark.promise("tools.6")

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


async def test_a_text_is_shown_as_it_is_with_its_number_of_lines(session: FileSession) -> None:
    session.put("a.txt", "one\n  two\n\nfour\n")
    outcome = await session.call("read_file", path="a.txt")
    assert outcome.content == (Text("one\n  two\n\nfour"), Text("[4 lines]"))


async def test_a_range_says_where_it_is_and_how_to_read_on(session: FileSession) -> None:
    session.put("a.txt", "".join(f"line {number}\n" for number in range(1, 11)))
    shown = await session.done("read_file", path="a.txt", start=3, lines=2)
    assert shown == "line 3\nline 4\n[lines 3-4 of 10; read on with start=5]"
    assert await session.done("read_file", path="a.txt", start=9) == (
        "line 9\nline 10\n[lines 9-10 of 10]"
    )


async def test_lines_can_be_numbered(session: FileSession) -> None:
    session.put("a.txt", "a\nb\nc")
    shown = await session.done("read_file", path="a.txt", start=2, numbered=True)
    assert shown == "2\tb\n3\tc\n[lines 2-3 of 3]"


async def test_a_long_file_is_shown_in_pages(session: FileSession) -> None:
    session.put("a.txt", "".join(f"{number}\n" for number in range(1, 5_001)))
    shown = await session.done("read_file", path="a.txt")
    assert shown.endswith("2000\n[lines 1-2000 of 5000; read on with start=2001]")


@pytest.mark.parametrize("numbered", [False, True])
async def test_no_page_is_larger_than_a_result_may_be(session: FileSession, numbered: bool) -> None:
    lines = [f"{number} {'x' * 90}" for number in range(1, 5_001)]
    session.put("a.txt", "\n".join(lines))
    read: list[str] = []
    while len(read) < len(lines):
        outcome = await session.call(
            "read_file", path="a.txt", start=len(read) + 1, lines=5_000, numbered=numbered
        )
        assert outcome.outcome == "completed"
        assert len(outcome.text) < 100_000
        page = outcome.content[0]
        assert isinstance(page, Text)
        read += [line.split("\t")[-1] for line in page.text.split("\n")]
    assert read == lines


async def test_one_endless_line_is_cut_and_said_to_be(session: FileSession) -> None:
    session.put("a.txt", "x" * 1_000_000)
    shown = await session.done("read_file", path="a.txt")
    assert len(shown) < 100_000
    assert "longer than can be shown" in shown


async def test_an_empty_file_is_said_to_be_empty(session: FileSession) -> None:
    session.put("a.txt", "")
    assert await session.done("read_file", path="a.txt") == "[empty file]"


async def test_a_start_past_the_end_says_how_many_lines_there_are(session: FileSession) -> None:
    session.put("a.txt", "one\ntwo\n")
    said = await session.refused("read_file", path="a.txt", start=3)
    assert said == "start=3 is past the end: a.txt has only 2 lines"
    assert "past the end" in await session.refused("read_file", path="a.txt", start=4)


@pytest.mark.parametrize("arguments", [{"start": 0}, {"lines": 0}, {"start": -1}])
async def test_lines_count_from_one(session: FileSession, arguments: dict[str, int]) -> None:
    session.put("a.txt", "one")
    assert ">= 1" in await session.refused("read_file", path="a.txt", **arguments)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("grün\n".encode("utf-8-sig"), "grün\n[1 line; encoding utf-8-sig]"),
        ("grün\nrot".encode("utf-16"), "grün\nrot\n[2 lines; encoding utf-16]"),
        ("green\nred".encode("utf-16-le"), "green\nred\n[2 lines; encoding utf-16-le]"),
        ("green\nred".encode("utf-16-be"), "green\nred\n[2 lines; encoding utf-16-be]"),
        ("grün".encode("utf-32"), "grün\n[1 line; encoding utf-32]"),
        ("grün\n".encode("latin-1"), "grün\n[1 line; encoding latin-1]"),
        (b"caf\xe9 \x80 is not UTF-8", "café \x80 is not UTF-8\n[1 line; encoding latin-1]"),
        (b"a\r\nb\r\n", "a\nb\n[2 lines; lines end in CRLF]"),
        (b"\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n[1 line]"),
    ],
)
async def test_encodings_are_found_and_named(session: FileSession, data: bytes, shown: str) -> None:
    session.put("a.txt", data)
    assert await session.done("read_file", path="a.txt") == shown


async def test_bytes_that_are_not_utf8_behind_the_sample_are_shown_too(
    session: FileSession,
) -> None:
    session.put("a.txt", b"x\n" * content.SAMPLE + b"caf\xe9\n")
    shown = await session.done("read_file", path="a.txt", start=content.SAMPLE + 1)
    assert shown.startswith("café\n")
    assert "latin-1" in shown


async def test_a_character_on_the_border_of_the_sample_is_whole(session: FileSession) -> None:
    session.put("a.txt", "x" * (content.SAMPLE - 1) + "ü" + "\nend\n")
    assert "latin-1" not in await session.done("read_file", path="a.txt")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x7fELF\x02\x01\x01\0\0\0", "an ELF program or library of 10 bytes"),
        (b"%PDF-1.7\n\0\xff", "a PDF document"),
        (b"PK\x03\x04\0\0", "a ZIP archive"),
        (b"SQLite format 3\0", "an SQLite database"),
        (bytes(range(256)) * 8, "binary data of 2.0 KB"),
        (bytes([1, 2, 3, 4, 200, 201]) * 50, "binary data"),
        (b"\0", "binary data of 1 bytes"),
    ],
)
async def test_binary_data_is_named_not_shown(session: FileSession, data: bytes, kind: str) -> None:
    session.put("a.bin", data)
    said = await session.refused("read_file", path="a.bin")
    assert said.startswith(f"a.bin is {kind}")
    assert "not text" in said


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "image/jpeg"),
        (b"GIF89a" + bytes(20), "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
async def test_an_image_is_an_image(session: FileSession, data: bytes, kind: str) -> None:
    session.put("picture", data)
    outcome = await session.call("read_file", path="picture")
    image = outcome.content[0]
    assert isinstance(image, Image)
    assert (image.media_type, image.name) == (kind, "picture")
    assert session.ledger.blobs[image.blob] == data


async def test_an_image_that_nobody_could_take_is_refused(session: FileSession) -> None:
    path = session.put("a.png", PNG)
    os.truncate(path, reading.MAX_IMAGE + 1)
    assert "make a smaller copy" in await session.refused("read_file", path="a.png")


async def test_of_a_sparse_file_of_10_gb_only_the_beginning_is_read(session: FileSession) -> None:
    path = session.put("a.bin", "")
    os.truncate(path, 10 << 30)
    assert await session.refused("read_file", path="a.bin") == (
        "a.bin is binary data of 10.0 GB, not text; use a program that knows the format"
    )


async def test_the_beginning_of_a_huge_text_can_be_read(session: FileSession) -> None:
    path = session.put("a.log", "first\nsecond\n" + "x\n" * content.SAMPLE)
    os.truncate(path, 10 << 30)
    shown = await session.done("read_file", path="a.log", lines=2)
    assert shown == "first\nsecond\n[lines 1-2 of many; read on with start=3]"
    said = await session.refused("read_file", path="a.log", start=10_000_000)
    assert "lies beyond its first 256.0 MB" in said
    hole = await session.refused("read_file", path="a.log", start=content.SAMPLE + 3)
    assert "binary data here" in hole


async def test_a_large_file_can_be_read_to_its_end(session: FileSession) -> None:
    session.put("a.log", b"0123456\n" * (safe_open.MAX_WHOLE // 8) + b"the end")
    shown = await session.done("read_file", path="a.log", start=safe_open.MAX_WHOLE // 8)
    assert shown.startswith("0123456\nthe end\n[lines ")
    assert "fewer lines" in await session.refused("read_file", path="a.log", start=3_000_000)


async def test_a_large_wide_text_is_refused(session: FileSession) -> None:
    session.put("a.txt", ("x" * (safe_open.MAX_WHOLE // 2 + 1)).encode("utf-16"))
    assert "convert it to UTF-8 first" in await session.refused("read_file", path="a.txt")


async def test_a_damaged_wide_text_is_refused(session: FileSession) -> None:
    session.put("a.txt", "text".encode("utf-16") + b"\x00\xd8")
    assert "is damaged" in await session.refused("read_file", path="a.txt")


async def test_a_folder_is_to_be_listed(session: FileSession) -> None:
    (session.root / "src").mkdir()
    assert await session.refused("read_file", path="src") == (
        "src is a folder, not a file; use list_files to see what is in it"
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("src/maim.py", "src/maim.py does not exist; did you mean src/main.py?"),
        ("scr/main.py", "and neither does the folder scr; did you mean src?"),
        ("src/main.py/x", "src/main.py is a file, not a folder"),
        ("src/zzz", "src/zzz does not exist; see list_files"),
    ],
)
async def test_what_is_missing_is_told_with_what_is_near(
    session: FileSession, path: str, said: str
) -> None:
    session.put("src/main.py", "x")
    assert said in await session.refused("read_file", path=path)


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 300, "/".join(["deep"] * 2000)])
async def test_impossible_names_are_refused(session: FileSession, path: str) -> None:
    for tool in ("read_file", "list_files"):
        said = await session.refused(tool, path=path)
        assert "Error" not in said


async def test_a_circle_of_links_is_named(session: FileSession) -> None:
    (session.root / "one").symlink_to("two")
    (session.root / "two").symlink_to("one")
    assert "lead in a circle" in await session.refused("read_file", path="one")
    await session.refused("read_file", path="one/below")
    assert "lead in a circle" in await session.refused("write_file", path="one", content="x")
    await session.refused("list_files", path="one")
    await session.refused("search_files", pattern="x", path="one")


async def test_pipes_sockets_and_devices_are_refused_without_waiting(session: FileSession) -> None:
    os.mkfifo(session.root / "pipe")
    assert await session.refused("read_file", path="pipe") == "pipe is a pipe, not a file"
    assert "is a pipe" in await session.refused("write_file", path="pipe", content="x")
    with socket.socket(socket.AF_UNIX) as listening:
        place = os.open(session.root, os.O_RDONLY)
        try:
            listening.bind(f"/proc/self/fd/{place}/socket")
        finally:
            os.close(place)
        assert await session.refused("read_file", path="socket") == "socket is a socket, not a file"
    await session.grant(readable=[Path("/dev")])
    assert "is a device" in await session.refused("read_file", path="/dev/zero")
