"""`search_files` and `list_files`: what is found, how much of it is shown, and what is left out."""

from __future__ import annotations

import os

import pytest

from keryx.tools.files import listing, searching
from tests.tools.files.file_session import FileSession

pytestmark = pytest.mark.promise("tools.6")


@pytest.fixture
def source(new_session: FileSession) -> FileSession:
    new_session.put("src/main.py", "import os\n\ndef main():\n    return os.getcwd()\n")
    new_session.put("src/other.py", "def other():\n    return None\n")
    new_session.put("docs/Notes.md", "The main function.\n")
    new_session.put("build/main.log", "main\n")
    new_session.put("debug.log", "main\n")
    new_session.put(".hidden/main.txt", "main\n")
    new_session.put(".git/main", "main\n")
    new_session.put(".gitignore", "build/\n*.log\n")
    return new_session


async def test_lines_are_found_and_grouped_by_file(
    session: FileSession, source: FileSession
) -> None:
    assert await session.done("search_files", pattern=r"def \w+\(") == (
        "src/main.py\n  3: def main():\nsrc/other.py\n  1: def other():"
    )


async def test_ignored_and_hidden_files_are_found_if_asked_for(
    session: FileSession, source: FileSession
) -> None:
    assert await session.done("search_files", pattern="main", kind="names") == "src/main.py"
    output = await session.done("search_files", pattern="main", kind="names", hidden=True)
    assert output.split("\n") == [".hidden/main.txt", "build/main.log", "src/main.py"]
    output = await session.done("search_files", pattern="^main$", hidden=True)
    assert "debug.log\n  1: main" in output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "*.py"}, ["src/main.py", "src/other.py"]),
        ({"pattern": "src/**/o*"}, ["src/other.py"]),
        ({"pattern": "src/ma"}, ["src/main.py"]),
        ({"pattern": "*.{md,py}", "path": "docs"}, ["docs/Notes.md"]),
        ({"pattern": "notes", "ignore_case": True}, ["docs/Notes.md"]),
        ({"pattern": "*OTES.md", "ignore_case": True}, ["docs/Notes.md"]),
        ({"pattern": "*.log"}, ["nothing found for '*.log'"]),
        ({"pattern": "*", "literal": True}, ["nothing found for '*'"]),
        ({"pattern": "main", "glob": "!*.py"}, ["nothing found for 'main'"]),
        ({"pattern": "main", "path": "src/main.py"}, ["src/main.py"]),
    ],
)
async def test_files_are_found_by_name(
    session: FileSession, source: FileSession, arguments: dict[str, str], expected: list[str]
) -> None:
    output = await session.done("search_files", kind="names", **arguments)
    assert output.split("\n") == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"pattern": "MAIN FUNC", "ignore_case": True},
            ["docs/Notes.md", "  1: The main function."],
        ),
        ({"pattern": "main()", "literal": True}, ["src/main.py", "  3: def main():"]),
        ({"pattern": "main", "glob": "*.md"}, ["docs/Notes.md", "  1: The main function."]),
        ({"pattern": "main", "glob": "*.log"}, ["nothing found for 'main'"]),
        ({"pattern": "main", "glob": "!*.py"}, ["docs/Notes.md", "  1: The main function."]),
        ({"pattern": "None", "path": "src/other.py"}, ["src/other.py", "  2:     return None"]),
        ({"pattern": "-e"}, ["nothing found for '-e'"]),
        (
            {"pattern": "return None", "around": 1},
            ["src/other.py", "  1- def other():", "  2:     return None"],
        ),
    ],
)
async def test_contents_are_found(
    session: FileSession, source: FileSession, arguments: dict[str, object], expected: list[str]
) -> None:
    output = await session.done("search_files", **arguments)
    assert output.split("\n") == expected


async def test_an_expression_that_is_none_is_told_in_ripgreps_own_words(
    session: FileSession,
) -> None:
    said = await session.refused("search_files", pattern="(open")
    assert said.startswith("ripgrep could not search: ")
    assert "unclosed group" in said
    assert "error parsing glob" in await session.refused("search_files", pattern="x", glob="[")


async def test_no_more_is_shown_than_was_asked_for(session: FileSession) -> None:
    session.put("a.txt", "hit\n" * 50)
    session.put("b.txt", "hit\n")
    output = await session.done("search_files", pattern="hit", limit=10)
    assert output.count(": hit") == 10
    assert output.endswith("[there is more; narrow the pattern, the path or the glob]")
    output = await session.done("search_files", pattern="hit", limit=51)
    assert output.count(": hit") == 51
    assert "there is more" not in output
    around = await session.done("search_files", pattern="hit", limit=10, around=2, path="a.txt")
    assert around.count(": hit") == 10
    names = await session.done("search_files", pattern="*", kind="names", limit=1)
    assert names.count(".txt") == 1
    assert "there is more" in names


async def test_endless_findings_are_stopped_early(session: FileSession) -> None:
    for number in range(40):
        session.put(f"{number}.txt", f"{'hit ' * 1000}\n" * 200)
    output = await session.done("search_files", pattern="hit", limit=2000)
    assert len(output) < 100_000
    assert all(len(line) < searching.MAX_COLUMNS + 100 for line in output.split("\n"))


async def test_a_search_ends_with_its_call(
    session: FileSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a program that never ends in ripgrep's place."""
    program = session.put("rg", f"#!/bin/sh\necho > {session.root}/begun\nsleep 1000 & wait\n")
    program.chmod(0o755)
    os.mkfifo(session.root / "begun")
    monkeypatch.setattr(searching, "_installed", lambda: str(program))
    scope = session.host.scope.child("turn")
    batch = session.host.start(
        session.environment, session.host.call("search_files", pattern="x"), scope=scope
    )
    await session.host.bridge.to_thread((session.root / "begun").read_bytes)
    scope.cancel("interrupt")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.left_over) == ("cancelled", ())


async def test_a_pipe_is_not_searched(session: FileSession) -> None:
    os.mkfifo(session.root / "pipe")
    said = await session.refused("search_files", pattern="x", path="pipe")
    assert said == "pipe is a pipe, not a file"


async def test_what_ripgrep_complains_of_is_told_beside_what_was_found(
    session: FileSession,
) -> None:
    session.put("a.txt", "hit\n")
    session.put(".gitignore", "[\n")
    output = await session.done("search_files", pattern="hit")
    assert output.startswith("a.txt\n  1: hit\n[not everything could be searched: ")
    assert "error parsing glob" in output


async def test_what_is_not_there_is_not_searched(session: FileSession) -> None:
    (session.root / "gone").symlink_to("nowhere")
    for path in ("missing", "gone"):
        said = await session.refused("search_files", pattern="hit", path=path)
        assert "no such file" in said


async def test_binary_and_odd_files_are_no_obstacle(session: FileSession) -> None:
    session.put("a.bin", b"\0hit\0\n")
    session.put("b.txt", "hit\n".encode("utf-16"))
    session.put("c.txt", b"caf\xe9 hit\r\n")
    session.put("with:colon-1-.txt", "hit: 1-2\n")
    (session.root / os.fsdecode(b"caf\xe9.txt")).write_text("hit\n")
    output = await session.done("search_files", pattern="hit")
    assert output.split("\n") == [
        "b.txt",
        "  1: hit",
        "c.txt",
        "  1: caf\ufffd hit",
        "caf\\xe9.txt",
        "  1: hit",
        "with:colon-1-.txt",
        "  1: hit: 1-2",
    ]


async def test_without_ripgrep_it_says_how_to_get_it(
    session: FileSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(name: str, path: str) -> None: ...

    monkeypatch.setattr(searching, "_installed", lambda: None)
    monkeypatch.setattr(searching.shutil, "which", nowhere)
    assert "pip install ripgrep" in await session.refused("search_files", pattern="x")


async def test_names_are_said_once(session: FileSession) -> None:
    said = await session.refused("search_files", pattern="a", kind="names", glob="*.py")
    assert said == "to search for names, say it all in the pattern, without a glob"


async def test_patterns_cannot_hold_what_no_argument_can(session: FileSession) -> None:
    assert "NUL" in await session.refused("search_files", pattern="a\0b")
    assert "NUL" in await session.refused("search_files", pattern="a", glob="a\0b")


async def test_a_folder_is_listed_folders_first(session: FileSession, source: FileSession) -> None:
    (session.root / "link").symlink_to("src/main.py")
    os.mkfifo(session.root / "pipe")
    session.put("large.bin", bytes(3000))
    assert (await session.done("list_files")).split("\n") == [
        "build/",
        "docs/",
        "src/",
        "debug.log  5 bytes",
        "large.bin  2.9 KB",
        "link -> src/main.py",
        "pipe  (not a regular file)",
        "[3 hidden entries not shown; hidden=true shows them]",
    ]


async def test_a_folder_is_listed_as_deep_as_asked(
    session: FileSession, source: FileSession
) -> None:
    assert (await session.done("list_files", depth=2, hidden=True)).split("\n") == [
        ".git/",
        ".hidden/",
        "  main.txt  5 bytes",
        "build/",
        "  main.log  5 bytes",
        "docs/",
        "  Notes.md  19 bytes",
        "src/",
        "  main.py  46 bytes",
        "  other.py  29 bytes",
        ".gitignore  13 bytes",
        "debug.log  5 bytes",
    ]


async def test_a_listing_is_bounded(session: FileSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_ENTRIES", 3)
    monkeypatch.setattr(listing, "MAX_FOLDER_ENTRIES", 5)
    for number in range(9):
        session.put(str(number), "")
    lines = (await session.done("list_files")).split("\n")
    assert len(lines) == 5
    assert lines[3] == "[2 more entries; name a folder below, or a smaller depth]"
    assert lines[4] == "[only the first 5 entries of a folder were looked at]"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("file", "file is not a folder; use read_file to read it"),
        ("missing", "missing: no such file or folder"),
    ],
)
async def test_what_cannot_be_listed_is_told(session: FileSession, path: str, said: str) -> None:
    session.put("file", "")
    assert await session.refused("list_files", path=path) == said


async def test_an_empty_folder_is_said_to_be_empty(session: FileSession) -> None:
    assert await session.done("list_files") == "[empty folder]"
