"""`keryx sessions`: search, fork, undo, export and repair, as a person uses them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.commands import keryx, model_server

pytestmark = pytest.mark.promise("server.7")


WRITE = {
    "tool": "write_file",
    "arguments": {"path": "notes.txt", "content": "by the agent", "overwrite": True},
}


def test_a_title_from_elsewhere_is_one_line_that_no_terminal_obeys(tmp_path: Path) -> None:
    messages = [{"role": "assistant", "content": "needle \x1b[2J\x07 in hay"}]
    title = f"\x1b[31mred {'y' * 9_000}\nmore"
    (tmp_path / "s.json").write_text(json.dumps({"title": title, "messages": messages}))
    home = tmp_path / "home"
    assert keryx(home, "sessions", "import", str(tmp_path / "s.json")).returncode == 0
    for arguments in (("list",), ("search", "needle")):
        (line,) = keryx(home, "sessions", *arguments).stdout.splitlines()
        assert "red yyy" in line
        assert line.isprintable()
        assert len(line) < 300


@pytest.mark.promise("page20.18")
def test_sessions_are_tagged_and_listed_by_tag(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with model_server(home, {"text": "Yes."}):
        assert keryx(home, "run", "Is it tagged?").returncode == 0
    name = only_session(home)
    assert keryx(home, "sessions", "tag", name, " Next week", "work", "WORK").stdout == (
        "Next week\nwork\n"
    )
    assert name in keryx(home, "sessions", "list", "--tag", "Work").stdout
    assert "#work" in keryx(home, "sessions", "list").stdout
    assert keryx(home, "sessions", "list", "--tag", "tea").stdout == ""
    refused = keryx(home, "sessions", "tag", name, "x" * 41)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "at most 40 characters" in refused.stderr
    assert keryx(home, "sessions", "tag", name).stdout == "Next week\nwork\n"
    assert keryx(home, "sessions", "tag", name, "--remove").stdout == ""


def only_session(home: Path) -> str:
    (row,) = keryx(home, "sessions", "list").stdout.splitlines()
    return row.split()[0]


def test_what_was_said_is_found_forked_and_exported(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with model_server(home, {"text": "A herald carries a caduceus."}):
        assert keryx(home, "run", "What does Keryx carry?").returncode == 0
    name = only_session(home)
    hit = keryx(home, "sessions", "search", "caduceus").stdout
    assert name in hit
    assert "carries a caduceus" in hit
    nothing = keryx(home, "sessions", "search", "trident")
    assert (nothing.returncode, nothing.stderr) == (1, "nothing was found\n")
    fork = keryx(home, "sessions", "fork", name).stdout.strip()
    assert "caduceus" in keryx(home, "sessions", "show", fork).stdout
    lines = keryx(home, "sessions", "export", name).stdout.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert keryx(home, "sessions", "delete", name).returncode == 0
    assert keryx(home, "sessions", "search", "caduceus").stdout.split()[0] == fork


def test_a_session_with_an_effort_that_no_longer_exists_still_opens(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with model_server(home, {"text": "Answered."}, repeat=True):
        assert keryx(home, "run", "hello").returncode == 0
        name = only_session(home)
        exported = keryx(home, "sessions", "export", "--format", "json", name).stdout
        assert keryx(home, "sessions", "delete", name).returncode == 0
        file = tmp_path / "old.json"
        file.write_text(exported.replace('"effort":null', '"effort":"banana"'))
        imported = keryx(home, "sessions", "import", str(file))
        assert imported.returncode == 0, imported.stderr
        name = only_session(home)
        assert '"effort":"banana"' in keryx(home, "sessions", "show", "--json", name).stdout
        result = keryx(home, "run", "--session", name, "--model", "scripted:demo", "more")
        assert result.returncode == 0, result.stderr


def test_a_turn_is_undone_with_its_files(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("by hand")
    with model_server(home, {"calls": [WRITE]}, {"text": "Written."}):
        done = keryx(home, "run", "--approve", "never", "--workspace", str(work), "Write it down.")
        assert done.returncode == 0
    assert (work / "notes.txt").read_text() == "by the agent"
    name = only_session(home)
    assert keryx(home, "sessions", "undo", name).returncode == 0
    assert (work / "notes.txt").read_text() == "by hand"
    again = keryx(home, "sessions", "undo", name)
    assert (again.returncode, "no turn to undo" in again.stderr) == (1, True)


def test_what_was_spent_is_told_by_model_and_an_unknown_cost_is_never_nothing(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    assert "no tokens were used yet" in keryx(home, "usage").stderr
    assert "no tokens were used today" in keryx(home, "usage", "--today").stderr
    with model_server(home, {"text": "One."}, {"text": "Two."}):
        for text in ("first", "second"):
            assert keryx(home, "run", text).returncode == 0
    usage_lines = keryx(home, "usage").stdout.splitlines()
    assert usage_lines[1].split() == ["openai:test-model", "20", "0", "10", "0", "unknown"]
    assert keryx(home, "usage", "--today").stdout.splitlines() == usage_lines


@pytest.mark.parametrize("damage", ["truncated", "overwritten"])
def test_a_damaged_store_is_repaired_and_the_old_one_kept(tmp_path: Path, damage: str) -> None:
    home = tmp_path / "home"
    with model_server(home, *[{"text": f"reply {number}"} for number in range(3)]):
        for number in range(3):
            assert keryx(home, "run", f"question {number}").returncode == 0
    store = home / "keryx.db"
    data = bytearray(store.read_bytes())
    if damage == "truncated":
        del data[len(data) * 3 // 4 :]
    else:
        data[:2048] = b"\x00" * 2048
    store.write_bytes(data)
    broken = keryx(home, "sessions", "list")
    assert broken.returncode == 1
    assert "keryx sessions repair" in broken.stderr
    repaired = keryx(home, "sessions", "repair")
    assert repaired.returncode == 0, repaired.stderr
    assert "the damaged store is kept as" in repaired.stdout
    (damaged,) = home.glob("keryx.db.damaged-*[0-9]")
    assert damaged.read_bytes() == bytes(data)
    if damage == "overwritten":
        assert len(keryx(home, "sessions", "list").stdout.splitlines()) == 3
    assert keryx(home, "sessions", "list").returncode == 0


def test_there_must_be_something_to_repair(tmp_path: Path) -> None:
    nothing = keryx(tmp_path / "home", "sessions", "repair")
    assert (nothing.returncode, "there is nothing to repair" in nothing.stderr) == (1, True)


@pytest.mark.promise("mended.16")
def test_a_store_that_is_not_damaged_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert keryx(home, "run", "--model", "scripted:demo", "Hi").returncode == 0
    name = only_session(home)
    before = (home / "keryx.db").read_bytes()
    repaired = keryx(home, "sessions", "repair")
    assert (repaired.returncode, repaired.stderr) == (0, "")
    assert repaired.stdout == "the store is not damaged; nothing was changed\n"
    assert (home / "keryx.db").read_bytes() == before
    assert not list(home.glob("keryx.db.*"))
    assert only_session(home) == name


@pytest.mark.promise("mended.16")
def test_a_store_of_a_newer_version_is_not_repaired(tmp_path: Path) -> None:
    """What this version does not know would be lost."""
    home = tmp_path / "home"
    assert keryx(home, "run", "--model", "scripted:demo", "Hi").returncode == 0
    with closing(sqlite3.connect(home / "keryx.db")) as store:
        store.execute("PRAGMA user_version = 1000")
    repaired = keryx(home, "sessions", "repair")
    assert repaired.returncode == 1
    assert "update Keryx" in repaired.stderr
    assert not list(home.glob("keryx.db.damaged*"))
