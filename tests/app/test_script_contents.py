"""What a script gets of a tool is what is there: all of it, and nothing that is meant for models.

The contents are generated. Each example is one run of a script, over many files at once.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from keryx import events as ev
from keryx.app import SessionHandle
from keryx.messages import text_of
from tests.app.scripting import Den, call, execute, hosting

pytestmark = pytest.mark.promise("walls.11")

FEW = settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)
"""Each example is a run of its own, with dozens of files."""

LETTERS = st.text(st.characters(codec="utf-8"))
LINES = st.lists(
    st.tuples(
        st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12),
        st.sampled_from(["\n", "\r\n", "\r", ""]),
    ),
    max_size=40,
).map(lambda lines: "".join(text + end for text, end in lines))
NOTES = st.sampled_from(
    ["[1 line]", "[empty file]", "[lines 1-2 of 3; read on with start=3]", "1\ta", "\0", "a\0b\0"]
)
TEXTS = LETTERS | LINES | NOTES
ENCODED = st.one_of(
    TEXTS.map(str.encode),
    TEXTS.map(lambda text: b"\xef\xbb\xbf" + text.encode()),
    TEXTS.map(lambda text: f"\ufeff{text}".encode("utf-16-le")),
    TEXTS.map(lambda text: f"\ufeff{text}".encode("utf-16-be")),
    TEXTS.map(lambda text: f"\ufeff{text}".encode("utf-32-le")),
    TEXTS.map(lambda text: text.encode("utf-16-le")),
    TEXTS.map(lambda text: text.encode("latin-1", errors="replace")),
    st.binary(max_size=200),
)
LARGE = [
    b"",
    b'{"a": 1}',
    b"caf\xe9\n",
    b"\0",
    "".join(f"line {number}\n" for number in range(3_000)).encode(),
    "".join(f"line {number}\r\n" for number in range(3_000)).encode()[:-2],
    json.dumps([{"number": number, "text": "ü" * 20} for number in range(15_000)]).encode(),
    b"x" * 1_500_000,
    bytes(range(256)) * 500,
]


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


PROLOGUE = """
import json, sys
_results = sys.argv.pop()
def give(value):
    with open(_results, "w", encoding="utf-8") as file:
        json.dump(value, file)
"""
"""A result that is shown to a model would be cut; this is not."""


async def over(contents: Sequence[bytes], code: str, *words: str) -> tuple[Any, list[bytes]]:
    """Run the script in a folder with these files; what it gave, and what they hold after it."""
    den = Den()
    try:
        for number, content in enumerate(contents):
            (den.workspace / f"{number:03}").write_bytes(content)
        async with hosting(den, confinement="off") as app:
            handle = await app.open(approvals="never")
            results = den.base / "results"
            shown = await execute(handle, PROLOGUE + code, *words, str(results))
            result = json.loads(results.read_text()) if results.exists() else shown
        return result, [(den.workspace / f"{n:03}").read_bytes() for n in range(len(contents))]
    finally:
        den.close()


def content_of(result: dict[str, Any]) -> bytes:
    if "text" in result:
        return result["text"].encode(result["encoding"])
    return base64.b64decode(result["base64"])


READING = """
import os
from keryx_tools import parallel, read_file, write_file
names = sorted(os.listdir())
results = parallel(read_file, names)
assert not results.failures, results.failures
for name, result in zip(names, results):
    assert not result["truncated"] and result["next"] is None, result.keys()
    if "text" in result:
        assert str(result) == result["text"]
        before = open(name, "rb").read()
        assert write_file(name, result["text"])["changed"] is False
        assert open(name, "rb").read() == before, name
        write_file(name, result["text"] + "!")
        assert open(name, "rb").read() != before, name
        assert write_file(name, result["text"])["encoding"] == result["encoding"]
give([result.value for result in results])
"""


@FEW
@given(st.lists(ENCODED, min_size=20, max_size=40))
@example(LARGE)
def test_a_file_is_read_whole_and_written_back_to_the_byte(contents: list[bytes]) -> None:
    results, after = run(over(contents, READING))
    assert [content_of(result) for result in results] == contents
    assert [result["size"] for result in results] == [len(content) for content in contents]
    assert after == contents


PARTS = """
import sys
from keryx_tools import read_file
name, start, lines = "000", int(sys.argv[1]), int(sys.argv[2])
given = read_file(name, start=start, lines=lines)
pages, following = [], 1
while following is not None:
    page = read_file(name, start=following, lines=lines)
    pages.append(page["text"])
    following = page["next"]
give({"part": given.value, "whole": "".join(pages),
        "numbered": read_file(name, numbered=True)["text"]})
"""


@FEW
@given(LINES.filter(bool), st.integers(1, 60), st.integers(1, 60))
@example("a\r\nb\n\nlast", 2, 2)
def test_lines_that_a_script_asks_for_are_those_lines(text: str, start: int, lines: int) -> None:
    every = [f"{line}\n" for line in text.split("\n")]
    every[-1] = every[-1][:-1]
    every = [line for line in every if line]
    start = min(start, len(every))
    result, _ = run(over([text.encode()], PARTS, str(start), str(lines)))
    part, chosen = result["part"], every[start - 1 : start - 1 + lines]
    assert part["text"] == "".join(chosen)
    assert (part["start"], part["lines"]) == (start, len(chosen))
    assert part["truncated"] == (len(chosen) < len(every))
    assert result["whole"] == text, "reading on gives all of it"
    assert result["numbered"] == "".join(f"{n}\t{line}" for n, line in enumerate(every, 1))


LARGER = """
from keryx_tools import ToolFailedError, read_file
first = read_file("000")
rest = read_file("000", start=first["next"])
try:
    read_file("001")
except ToolFailedError as error:
    refused = str(error)
text = first["text"] + rest["text"]
give([first["truncated"], rest["next"], text == open("000", newline="").read(), refused])
"""


def test_what_is_too_large_at_once_says_so_and_how_to_read_on() -> None:
    lines = "".join(f"{number:099}\n" for number in range(200_000)).encode()
    result, _ = run(over([lines, b"x" * 17_000_000], LARGER))
    truncated, following, equal, refused = result
    assert (truncated, following, equal) == (True, None, True)
    assert "001 has more than 16.0 MB" in refused
    assert "open()" in refused


PRINTING = """
import os, shlex, time
from keryx_tools import process, terminal
def read(name):
    process("wait", name, seconds=30)
    return process("read", name)
results = []
for name in sorted(os.listdir()):
    result = terminal(f"cat {name}; exit 3")
    assert result["exit_code"] == 3
    started = terminal(f"cat {name}", background=True)
    assert list(started) == ["process"], started
    results.append([result.value, read(started["process"]).value])
give(results)
"""


def printed(result: dict[str, Any]) -> bytes:
    assert not result["truncated"]
    return base64.b64decode(result["base64"]) if "base64" in result else result["output"].encode()


@FEW
@given(st.lists(ENCODED, min_size=5, max_size=15))
@example([b"x" * 500_000, "ü".encode() * 100_000, bytes(range(256)) * 300])
def test_what_a_command_prints_arrives_whole(contents: list[bytes]) -> None:
    results, _ = run(over(contents, PRINTING))
    for content, (foreground, background) in zip(contents, results, strict=True):
        assert printed(foreground) == content
        assert printed(background) == content


FLOOD = """
from keryx_tools import terminal
result = terminal("head -c 20000000 /dev/zero | tr '\\\\0' x; printf 'the end'")
give([len(result["output"]), result["truncated"], result["left_out"], result["hint"],
        set(result["output"]) == {"x"}])
"""


def test_more_than_is_passed_at_once_is_cut_at_the_end_and_says_so() -> None:
    (size, truncated, left_out, hint, exact), _ = run(over([], FLOOD))
    assert (truncated, exact) == (True, True)
    assert size == 16 * 1024 * 1024
    assert size + left_out == 20_000_000 + len("the end")
    assert "file" in hint


SPLIT = """
import os
from keryx_tools import process, terminal
os.mkfifo("gate")
name = terminal("printf '\\\\303'; cat gate; printf '\\\\244'", background=True)["process"]
first = process("read", name)
while first["next"] == 0 and not first["output"] and process("list").value[0]["seconds"] < 0.3:
    first = process("read", name)
with open("gate", "w"):
    pass
process("wait", name)
give([first["output"], process("read", name, after=first["next"])["output"]])
"""


def test_half_a_character_is_read_with_its_other_half() -> None:
    (first, rest), _ = run(over([], SPLIT))
    assert (first, rest) == ("", "ä")


SEARCHING = """
import sys
from keryx_tools import search_files
found = search_files("needle", literal=True)
some = search_files("needle", literal=True, limit=2)
names = search_files("*", kind="names", hidden=True)
give([found.value, some.value, names.value])
"""
FOUND = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=900)


@FEW
@given(st.lists(st.lists(FOUND, max_size=20), min_size=1, max_size=20))
@example([[f"{number}" for number in range(3_000)], ["x" * 5_000], ["plain"]])
def test_every_line_that_is_found_is_there_and_whole(files: list[list[str]]) -> None:
    contents = ["".join(f"{line}needle{line}\nhay\n" for line in lines).encode() for lines in files]
    contents = [b"hay\n" + content for content in contents]
    (search, some, names), _ = run(over(contents, SEARCHING))
    expected = [
        (f"{number:03}", 2 + 2 * at, f"{line}needle{line}")
        for number, lines in enumerate(files)
        for at, line in enumerate(lines)
    ]
    assert [
        (match["path"], match["line"], match["text"]) for match in search["matches"]
    ] == expected
    assert search["truncated"] is False
    assert len(some["matches"]) == min(2, len(expected))
    assert some["truncated"] is (len(expected) > 2)
    assert names["paths"] == [f"{number:03}" for number in range(len(files))]


LISTING = """
from keryx_tools import list_files
give(list_files(depth=20, hidden=True).value)
"""
NAME = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20
).filter(lambda name: name not in (".", "..", ".git"))


async def listed(names: dict[str, bytes]) -> tuple[Any, dict[str, Any]]:
    den = Den()
    try:
        expected: dict[str, Any] = {}
        for number, (name, content) in enumerate(names.items()):
            folder = den.workspace / f"folder {number % 3}"
            folder.mkdir(exist_ok=True)
            expected[folder.name] = ("folder", None)
            (folder / name).write_bytes(content)
            expected[f"{folder.name}/{name}"] = ("file", len(content))
            (folder / f"link {number}").symlink_to(name)
            expected[f"{folder.name}/link {number}"] = ("link", None)
        async with hosting(den, confinement="off") as app:
            handle = await app.open(approvals="never")
            results = den.base / "results"
            await execute(handle, PROLOGUE + LISTING, str(results))
            return json.loads(results.read_text()), expected
    finally:
        den.close()


@FEW
@given(st.dictionaries(NAME, st.binary(max_size=30), max_size=30))
@example({f"file {number}": b"x" for number in range(2_500)})
def test_every_entry_of_a_folder_is_there(names: dict[str, bytes]) -> None:
    result, expected = run(listed(names))
    entries = {entry["path"]: (entry["type"], entry.get("size")) for entry in result["entries"]}
    assert entries == expected
    assert result["truncated"] is False


ODD_NAMES = """
import os
from keryx_tools import list_files, search_files
with open(b"bad\\xff", "w") as file:
    file.write("needle")
give([list_files().value, search_files("needle").value])
"""


def test_a_name_that_is_not_utf8_comes_with_its_bytes() -> None:
    (listing, search), _ = run(over([], ODD_NAMES))
    (entry,) = listing["entries"]
    (match,) = search["matches"]
    for one in (entry, match):
        assert one["path"] == "bad\\xff"
        assert base64.b64decode(one["path_base64"]) == b"bad\xff"


WRITING = """
import sys
from keryx_tools import ToolFailedError, patch, read_file, write_file
text = sys.stdin.read() if False else open("000", newline="", encoding="utf-8").read()
new = write_file("new", text)
same = write_file("new", text)
read_file("001")
try:
    write_file("001", "\\u20ac")
except ToolFailedError as error:
    refused = str(error)
added = patch("*** Begin Patch\\n*** Add File: added\\n+a\\n*** End Patch\\n")
give([new.value, same.value, refused, added.value, read_file("new")["text"] == text])
"""


@FEW
@given(TEXTS)
def test_what_is_written_is_what_was_passed(text: str) -> None:
    (new, same, refused, added, equal), _ = run(over([text.encode(), b"caf\xe9"], WRITING))
    assert (new["new"], new["changed"], new["size"]) == (True, True, len(text.encode()))
    assert (same["new"], same["changed"]) == (False, False)
    assert "001 is latin-1 text" in refused
    assert added["files"] == ["added"]
    assert equal


ASKING = """
from keryx_tools import clarify, finish
finish([clarify("Which?").value, clarify("And?").value])
"""


async def test_a_question_gives_the_answer_and_nothing_else(den: Den) -> None:
    async with hosting(den, confinement="off") as app:
        handle = await app.open(approvals="never")
        assert await answer_of(handle, "ü [nobody answered]") == [
            {"text": "ü [nobody answered]", "answered": True},
            {"text": "", "answered": True},
        ]
        run_alone = handle.run("execute_code", json.dumps({"code": ASKING}), attended=False)
        ended = [event async for event in run_alone][-1]
    assert isinstance(ended, ev.CallFinished)
    assert json.loads(text_of(ended.result))["result"] == [{"text": "", "answered": False}] * 2


async def answer_of(handle: SessionHandle, first: str) -> Any:
    answers = [first, ""]
    async for event in handle.run("execute_code", json.dumps({"code": ASKING})):
        if isinstance(event, ev.QuestionAsked):
            await handle.answer_question(event.question_id, answers.pop(0))
        if isinstance(event, ev.CallFinished):
            return json.loads(text_of(event.result))["result"]
    raise AssertionError("the call did not end")


SECRETIVE = """
from keryx_tools import finish, read_file, terminal, write_file
text = read_file("000")["text"]
write_file("000", text.replace("before", "after"))
print(text)
finish([text, terminal("cat 000")["output"]])
"""


def test_a_secret_in_a_file_survives_a_round_trip_and_is_shown_to_nobody() -> None:
    os.environ["OPENAI_API_KEY"] = "sk-0123456789abcdef"
    try:
        result, (after,) = run(over([b"key = sk-0123456789abcdef # before\n"], SECRETIVE))
    finally:
        del os.environ["OPENAI_API_KEY"]
    assert after == b"key = sk-0123456789abcdef # after\n"
    assert "sk-0123456789abcdef" not in json.dumps(result)
    assert "[redacted" in result["output"]
    assert "[redacted" in result["result"][0]


async def test_a_model_is_shown_what_it_was_shown_before(den: Den) -> None:
    """The same calls, made directly: with notes, cuts and sentences."""
    (den.workspace / "lines").write_bytes(b"".join(b"needle\n" for _ in range(3_000)))
    (den.workspace / "one").write_bytes(b'{"a": 1}')
    async with hosting(den, confinement="off") as app:
        handle = await app.open(approvals="never")

        async def text(name: str, **arguments: Any) -> str:
            return text_of((await call(handle, name, **arguments)).result)

        assert await text("read_file", path="one") == '{"a": 1}\n[1 line]'
        assert (await text("read_file", path="lines")).endswith(
            "\n[lines 1-2000 of 3000; read on with start=2001]"
        )
        assert "[there is more; narrow" in await text("search_files", pattern="needle")
        assert (await text("list_files")).splitlines() == ["lines  20.5 KB", "one  8 bytes"]
        assert await text("write_file", path="new", content="a\n") == (
            "new: 1 line, 2 bytes written, new"
        )
        output = json.loads(await text("terminal", command="seq 1 30000"))
        assert list(output) == ["output", "exit_code"]
        assert "bytes left out" in output["output"]
        background = json.loads(await text("terminal", command="true", background=True))
        assert "note" in background
