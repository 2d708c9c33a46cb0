"""`keryx memory`: looked at, corrected, confirmed, forgotten and exported in the terminal."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from keryx import Keryx
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.testing.modelserver import MODEL, ModelServer, ReceivedRequest, Reply
from keryx.tools.memory.memory_tools import memory_tools
from tests.cli.commands import COMMAND, keryx
from tests.memory import shelf
from tests.memory.memory_home import MemoryHome
from tests.server.served_host import in_thread

pytestmark = pytest.mark.promise("003.5")

PATIENCE = 40.0
MINUTES = 60.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryHome:
    home = MemoryHome(tmp_path)
    monkeypatch.setattr(sys, "path", [str(home.packages), *sys.path])
    return home


def add(home: MemoryHome, *words: str) -> str:
    done = home.keryx("memory", "add", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def listed(home: MemoryHome, *words: str) -> list[str]:
    lines = home.keryx("memory", *words, "--json").stdout.splitlines()
    return [str(json.loads(line)["text"]) for line in lines]


def test_it_is_shown_whose_a_memory_is(home: MemoryHome) -> None:
    add(home, "The user drinks green tea.")
    add(home, "--profile", "default/telegram:42", "Ann drinks coffee.")
    of_ann, own = home.keryx("memory", "list").stdout.splitlines()
    assert of_ann.endswith("Ann drinks coffee.  (of telegram:42)")
    assert own.endswith("The user drinks green tea.")
    assert listed(home, "list", "--profile", "default/telegram:42") == ["Ann drinks coffee."]
    assert listed(home, "list", "--profile", "default") == ["The user drinks green tea."]
    exported = home.keryx("memory", "export", "--markdown").stdout
    assert "# About the user (default/telegram:42)\n\n- Ann drinks coffee." in exported


def test_what_a_person_adds_is_listed_found_corrected_and_exported(home: MemoryHome) -> None:
    tea = add(home, "The user drinks green tea.")
    add(home, "--work", "Tests run with make.")
    assert listed(home, "list") == ["Tests run with make.", "The user drinks green tea."]
    assert listed(home, "list", "--workspace", str(home.path)) == ["The user drinks green tea."]
    assert listed(home, "list", "--profile", "other") == []
    assert listed(home, "search", "GREEN", "te") == ["The user drinks green tea."]
    missed = home.keryx("memory", "search", "green", "coffee")
    assert (missed.returncode, missed.stderr) == (1, "nothing was found\n")
    black = home.keryx("memory", "edit", tea, "The user drinks black tea.").stdout.strip()
    assert listed(home, "search", "tea") == ["The user drinks black tea."]
    assert listed(home, "list", "--ended") == ["The user drinks green tea."]
    late = home.keryx("memory", "edit", tea, "The user drinks coffee.")
    assert late.returncode == 1
    assert black in late.stderr
    assert "nothing was changed" in late.stderr
    exported = home.keryx("memory", "export", "--markdown").stdout
    assert exported.startswith("# About the user\n\n- The user drinks black tea.\n")
    assert f"# {home.path.parent}\n\n- Tests run with make." in exported
    assert listed(home, "export") == ["Tests run with make.", "The user drinks black tea."]
    # Each of these commands owned the home for a moment, and delivered before it ended.
    assert home.texts() == [
        "The user drinks green tea.",
        "Tests run with make.",
        "The user drinks black tea.",
    ]


def test_what_is_forgotten_is_gone_after_a_question(home: MemoryHome) -> None:
    code = add(home, "The door code is 4711.")
    unsure = home.keryx("memory", "forget", code, stdin="no\n")
    assert (unsure.returncode, "nothing was forgotten" in unsure.stderr) == (1, True)
    assert listed(home, "list") == ["The door code is 4711."]
    unknown = home.keryx("memory", "forget", "--yes", code, "mem_0")
    assert (unknown.returncode, "there is no memory 'mem_0'" in unknown.stderr) == (1, True)
    assert listed(home, "list") == ["The door code is 4711."]
    sure = home.keryx("memory", "forget", code, stdin="y\n")
    assert (sure.returncode, sure.stderr) == (0, "")
    assert listed(home, "list") == listed(home, "list", "--ended") == home.texts() == []
    assert b"4711" not in (home.path / "memory.db").read_bytes()


def test_what_remains_at_a_provider_is_said(home: MemoryHome) -> None:
    code = add(home, "The door code is 4711.")
    home.break_provider()
    done = home.keryx("memory", "forget", "--yes", code)
    assert done.returncode == 0
    assert "warning: shelf still has 1 of them, or may have" in done.stderr


def test_a_stuck_sync_is_warned_about_with_its_age(home: MemoryHome) -> None:
    home.break_provider()
    add(home, "The user drinks green tea.")
    young = home.keryx("memory", "lag")
    assert (young.returncode, young.stderr) == (0, "")
    assert "1 waiting, the oldest for" in young.stdout
    assert "failures in a row: " in young.stdout
    home.make_older(12 * MINUTES)
    old = home.keryx("memory", "lag")
    assert old.returncode == 1
    assert "warning: shelf has been stuck for 12 min" in old.stderr
    home.set_up(path=str(home.stored))
    assert home.keryx("memory", "retry").returncode == 0
    assert home.keryx("memory", "lag").stdout == "shelf: up to date\n"
    assert home.texts() == ["The user drinks green tea."]


def test_what_a_provider_refuses_is_shown_until_it_is_sent_again(home: MemoryHome) -> None:
    home.set_up(path=str(home.stored), refuses="tea")
    add(home, "The user drinks green tea.")
    lag = home.keryx("memory", "lag")
    assert (lag.returncode, lag.stdout) == (1, "shelf: 1 refused\n")
    failed = home.keryx("memory", "failed").stdout
    assert "refused" in failed
    assert "after 1 attempts: it is about tea" in failed
    place = failed.split()[0]
    wrong = home.keryx("memory", "retry", "77")
    assert (wrong.returncode, "nothing failed with the number 77" in wrong.stderr) == (1, True)
    assert home.keryx("memory", "retry", "x").returncode == 2
    home.set_up(path=str(home.stored))
    assert home.keryx("memory", "retry", place).stdout == "sent again: 1\n"
    assert home.keryx("memory", "failed").stderr == "nothing has failed\n"
    assert home.texts() == ["The user drinks green tea."]


def test_without_a_provider_every_verb_says_how_to_turn_it_on(tmp_path: Path) -> None:
    for words in (["list"], ["add", "x"], ["forget", "--yes", "mem_1"], ["lag"], ["retry"]):
        done = keryx(tmp_path / "home", "memory", *words)
        assert done.returncode == 1
        assert "memory is off" in done.stderr
        assert '`providers = ["notes"]`' in done.stderr


def test_wrong_input_changes_nothing(home: MemoryHome) -> None:
    empty = home.keryx("memory", "add", " \n")
    assert (empty.returncode, "the text is empty" in empty.stderr) == (1, True)
    long = home.keryx("memory", "add", "x" * 2_001)
    assert (long.returncode, "2,001 characters and may have 2,000" in long.stderr) == (1, True)
    unknown = home.keryx("memory", "confirm", "mem_0")
    assert (unknown.returncode, "`keryx memory list` shows" in unknown.stderr) == (1, True)
    assert home.keryx("memory", "list").stderr == "nothing is remembered yet\n"


# -- merges that a model proposes

TEA = "The user drinks green tea in the morning."
TEA_TOO = "In the morning the user has green tea."


def merging(received: ReceivedRequest) -> Reply:
    """Propose to merge all that it is shown, in two ways: only one of them loses nothing."""
    text = str(received.body["messages"][-1]["content"])
    shown = json.loads(text.rpartition("\n")[2])
    ids = [item["id"] for item in shown if "tea" in item["text"]]
    others = [item["id"] for item in shown if "tea" not in item["text"]]
    proposals = [{"ids": ids, "text": TEA}, {"ids": others, "text": "The server has a port."}]
    return Reply(text=json.dumps({"proposals": proposals}))


async def test_a_model_merges_what_says_the_same_and_it_can_be_undone(home: MemoryHome) -> None:
    texts = [TEA, TEA_TOO, "The server listens on port 8080."]
    async with ModelServer(merging) as server:
        await in_thread(home.set_up_model, server.url)
        for text in texts:
            await in_thread(add, home, text)
        done = await in_thread(home.keryx, "memory", "consolidate")
        assert done.returncode == 0, done.stderr
        assert TEA in done.stdout
        assert "the new text differs in '8080'" in done.stderr
        assert f"asked server:{MODEL}: " in done.stderr
        assert sorted(await in_thread(listed, home, "list")) == sorted([TEA, texts[2]])
        undo = done.stderr.partition("undo with: keryx ")[2].splitlines()[0]
        assert (await in_thread(home.keryx, *undo.split())).returncode == 0
        assert sorted(await in_thread(listed, home, "list")) == sorted(texts)
        again = await in_thread(home.keryx, *undo.split())
        assert (again.returncode, "nothing to undo" in again.stderr) == (1, True)


async def test_a_model_that_talks_instead_changes_nothing(home: MemoryHome) -> None:
    async with ModelServer([Reply(text="Of course! I merged them.")]) as server:
        await in_thread(home.set_up_model, server.url)
        await in_thread(add, home, TEA)
        done = await in_thread(home.keryx, "memory", "consolidate", "--json")
    assert done.returncode == 1
    assert "not the JSON that was asked for" in json.loads(done.stdout)["result"]["error"]
    assert listed(home, "list") == [TEA]


def test_without_a_model_a_consolidation_says_what_to_configure(home: MemoryHome) -> None:
    add(home, TEA)
    done = home.keryx("memory", "consolidate")
    assert done.returncode == 1
    assert "keryx doctor" in done.stderr or "config.toml" in done.stderr, done.stderr


# -- while another process owns the home


def conclude(text: str) -> list[ScriptedReply]:
    call = ScriptedCall("conclude", {"text": text})
    return [ScriptedReply(calls=[call]), ScriptedReply(text="Done.")]


async def test_beside_the_owner_a_change_is_delivered_at_once(home: MemoryHome) -> None:
    model = ScriptedModel(conclude("The user likes tea."))
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=home.path, tools=memory_tools()) as app,
    ):
        session = await app.open()
        await (await session.send("I like tea")).result()
        # What a call remembered a moment ago is listed, although only the owner can take it in.
        assert await in_thread(listed, home, "list") == ["The user likes tea."]
        added = await in_thread(add, home, "The user likes cake.")
        while "The user likes cake." not in await in_thread(home.texts):
            await shelf.OPENED[-1].wait_stored()
        confirmed = await in_thread(home.keryx, "memory", "confirm", added)
        assert confirmed.returncode == 0
        assert (await in_thread(home.keryx, "memory", "forget", "--yes", added)).stderr == ""
        assert "The user likes cake." not in await in_thread(home.texts)
        assert (await in_thread(home.keryx, "memory", "lag")).stdout == "shelf: up to date\n"
        assert not _attempts_of_others(home)


def _attempts_of_others(home: MemoryHome) -> list[int]:
    """Deliveries that were made more than once: two processes delivered."""
    with closing(sqlite3.connect(home.path / "memory.db")) as connection:
        rows = connection.execute("SELECT place FROM deliveries WHERE attempts > 1").fetchall()
    return [place for (place,) in rows]


async def test_a_deleted_session_takes_what_it_taught_along_unless_one_says(
    home: MemoryHome,
) -> None:
    model = ScriptedModel([*conclude("The user likes tea."), *conclude("The user likes cake.")])
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=home.path, tools=memory_tools()) as app,
    ):
        first, second = await app.open(), await app.open()
        for session in (first, second):
            await (await session.send("Remember it")).result()
        assert len(await in_thread(listed, home, "list")) == 2
        delete = ("sessions", "delete")
        done = await in_thread(home.keryx, *delete, "--keep-memory", first.session_id)
        assert done.returncode == 0
        assert (await in_thread(home.keryx, *delete, second.session_id)).returncode == 0
        assert await in_thread(listed, home, "list") == ["The user likes tea."]


def test_what_a_person_edits_in_a_file_of_notes_is_in_the_next_list(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('[memory]\nproviders = ["notes"]\n')
    added = keryx(home, "memory", "add", "I drink green tea.")
    assert added.returncode == 0, added.stderr
    notes = home / "memory" / "default" / "user.md"
    edited = notes.read_text().replace("green", "black") + "- My cat is called Momo.\n"
    notes.write_text(edited)
    lines = keryx(home, "memory", "list", "--json").stdout.splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    assert sorted(texts) == ["I drink black tea.", "My cat is called Momo."]
    ended = keryx(home, "memory", "list", "--ended", "--json").stdout
    assert "green" in ended


def test_a_line_that_a_person_removed_from_the_notes_can_be_brought_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('[memory]\nproviders = ["notes"]\n')
    memory_id = keryx(home, "memory", "add", "I drink green tea.").stdout.strip()
    notes = home / "memory" / "default" / "user.md"
    lines = notes.read_text().splitlines(keepends=True)
    notes.write_text("".join(line for line in lines if memory_id not in line))
    ended = keryx(home, "memory", "list", "--ended")
    assert (memory_id in ended.stdout, "(removed)" in ended.stdout) == (True, True)
    undone = keryx(home, "memory", "undo", memory_id)
    assert undone.returncode == 0, undone.stderr
    assert "green tea" in keryx(home, "memory", "list").stdout
    assert memory_id in notes.read_text()


def test_a_memory_cannot_command_the_terminal_of_who_lists_it(home: MemoryHome) -> None:
    home.set_up(path=str(home.stored), refuses="title")
    text = "A title\x1b]0;owned\x07 and \x1b[2Ja clear screen, \u202ebackwards"
    assert home.keryx("memory", "add", text).returncode == 0
    for verb in (["list"], ["search", "title"], ["export", "--markdown"], ["failed"]):
        shown = home.keryx("memory", *verb)
        assert "clear screen" in shown.stdout, verb
        assert not {"\x1b", "\x07", "\u202e"} & set(shown.stdout + shown.stderr), verb


def test_what_a_called_tool_and_a_script_remember_stays_when_their_session_ends(
    home: MemoryHome, tmp_path: Path
) -> None:
    rex = json.dumps({"action": "add", "text": "The dog is called Rex."})
    called = home.keryx("tools", "call", "memory", rex)
    assert called.returncode == 0, called.stderr
    script = tmp_path / "script.py"
    script.write_text("from keryx_tools import conclude\nconclude('The cat is called Tom.')\n")
    run = home.keryx("exec", str(script))
    assert run.returncode == 0, run.stderr
    assert listed(home, "list") == ["The cat is called Tom.", "The dog is called Rex."]
    assert home.keryx("sessions", "list").stdout == ""


def test_what_was_accepted_before_a_kill_stays_when_the_next_start_deletes_the_session(
    home: MemoryHome, tmp_path: Path
) -> None:
    """The memory cannot take anything in before the kill: another process writes to its file."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    script = tmp_path / "script.py"
    script.write_text(REMEMBERS_LATER)
    with (
        subprocess.Popen(
            [COMMAND, "exec", str(script), "--workspace", str(workspace)],
            env=home.variables(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process,
        closing(sqlite3.connect(home.path / "memory.db", isolation_level=None)) as other,
    ):
        until((workspace / "ready").exists)
        other.execute("BEGIN IMMEDIATE")
        (workspace / "go").touch()
        until(lambda: waiting_rows(home.path / "keryx.db") == 1)
        process.kill()
        process.wait()
        other.execute("ROLLBACK")
    assert waiting_rows(home.path / "keryx.db") == 1
    assert listed(home, "list") == ["The dog is called Rex."]
    assert home.keryx("sessions", "list").stdout == ""


REMEMBERS_LATER = """
import pathlib, time
from keryx_tools import conclude
pathlib.Path("ready").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.02)
conclude("The dog is called Rex.")
"""


def until(is_so: Callable[[], bool]) -> None:
    """Wait until another process has come so far."""
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.02)


def waiting_rows(store: Path) -> int:
    """Return how many rows wait in the outbox of a store."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM outbox").fetchone()[0])
