"""A broken provider or a damaged file of the memories is reported, and everything else works.

Nothing that sessions remember meanwhile is lost: it is there once and in order when it is mended.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from keryx import events as ev
from keryx.errors import StoreError
from keryx.models.scripted import ScriptedModel
from keryx.ports.memory import Memory
from tests.app.hosts import NOBODY, keryx, one_clear_line, open_folder
from tests.memory import shelf
from tests.memory.broken_memory import (
    BOOM,
    FAILING,
    FILES,
    PROVIDERS,
    break_file,
    configure,
    install_second,
    mend_file,
    noise,
)
from tests.memory.memory_home import MemoryHome
from tests.memory.shelf import Shelf
from tests.memory.taught_sessions import (
    BROKEN,
    CAKE,
    CHESS,
    SONGS,
    TEA,
    check_stored,
    delivered,
    home,
    memories,
    teach,
    teaching,
    warnings,
)
from tests.memory.test_sessions import ask, call, facts, remembering, results, said
from tests.server.served_host import in_thread, served_host

assert home  # a fixture

pytestmark = pytest.mark.promise("003.1", "003.3")

DEMO = "This is the scripted model"


def done(result: subprocess.CompletedProcess[str]) -> str:
    """What a command printed that did its work, whatever it warned of."""
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout


def check_other_commands(home: MemoryHome, reason: str) -> None:
    """A turn runs and says it; sessions are listed; a tool is called, in a session of its own."""
    run = home.keryx("run", "Hello")
    assert done(run).startswith(DEMO)
    (warning,) = run.stderr.splitlines()
    assert warning.startswith("keryx: warning: ")
    assert reason in warning
    listed = home.keryx("sessions", "list")
    assert "Hello" in done(listed)
    assert listed.stderr == ""
    assert done(home.keryx("tools", "call", "list_files", "{}"))


def memory_of_doctor(home: MemoryHome) -> tuple[str, str]:
    """What the doctor says of the memory: its line, and what is to be done."""
    shown = home.keryx("doctor")
    assert "Traceback" not in shown.stderr
    lines = shown.stdout.splitlines()
    (at,) = [at for at, line in enumerate(lines) if line[2:].startswith("memory ")]
    hints = lines[at + 1 :]
    until = next((n for n, line in enumerate(hints) if not line.startswith("  ")), len(hints))
    return lines[at], "\n".join(hints[:until])


# -- every way, with every command


@pytest.mark.parametrize("way", FILES)
def test_a_broken_file_stops_only_the_memory(home: MemoryHome, way: str) -> None:
    done(home.keryx("memory", "add", "The user drinks tea."))
    break_file(home.path, FILES[way])
    file = home.path / "memory.db"
    before = file.read_bytes() if file.is_file() else b""
    check_other_commands(home, str(file))
    for verb in (["lag"], ["add", "The user drinks cake."]):
        refused = home.keryx("memory", *verb)
        assert (refused.returncode, refused.stdout) == (1, "")
        line = one_clear_line(refused.stderr)
        assert str(file) in line
        assert "move memory.db" in line
    line, hints = memory_of_doctor(home)
    assert line.startswith("✗")
    assert str(file) in hints
    # Nothing was made anew, and nothing was thrown away.
    assert (file.read_bytes() if file.is_file() else b"") == before
    mend_file(home.path)
    assert "The user drinks tea." in done(home.keryx("memory", "list"))


@pytest.mark.parametrize("way", PROVIDERS)
def test_a_broken_provider_is_left_out_and_the_others_work(home: MemoryHome, way: str) -> None:
    configure(home, "second", "shelf")
    install_second(home, PROVIDERS[way])
    reason = "the memory provider 'second' (second_provider:create) cannot be used: "
    check_other_commands(home, reason)
    done(home.keryx("memory", "add", "The user drinks tea."))
    assert home.texts() == ["The user drinks tea."]
    lag = home.keryx("memory", "lag")
    assert lag.returncode == 1
    lines = [line.partition(";")[0] for line in lag.stdout.splitlines()]
    assert lines == ["shelf: up to date", "second: left out"]
    assert reason in one_clear_line(lag.stderr)
    assert "boom" in lag.stderr or "UnicodeDecodeError" in lag.stderr
    line, hints = memory_of_doctor(home)
    assert line == "! memory         shelf"
    assert reason in hints
    assert "[memory.settings.second]" in hints


def test_a_provider_that_is_gone_from_its_package_is_left_out(home: MemoryHome) -> None:
    configure(home, "shelf", "second")
    install_second(home, "")
    check_other_commands(home, "AttributeError")
    (home.packages / "second_provider.py").unlink()
    check_other_commands(home, "ModuleNotFoundError")


def test_a_provider_that_fails_in_every_call_is_reported(home: MemoryHome) -> None:
    configure(home, "second", "shelf")
    install_second(home, FAILING)
    done(home.keryx("memory", "add", "The user drinks tea."))
    assert home.texts() == ["The user drinks tea."]
    check_other_commands(home, f"the memory provider 'second' fails ({BOOM})")
    assert BOOM in home.keryx("memory", "lag").stdout
    line, hints = memory_of_doctor(home)
    assert line == "! memory         second, shelf"
    assert BOOM in hints


def test_what_a_called_tool_remembers_while_the_file_is_broken_is_there_later(
    home: MemoryHome,
) -> None:
    break_file(home.path)
    called = home.keryx("tools", "call", "conclude", json.dumps({"text": "The dog is Rex."}))
    assert called.returncode == 1
    assert "remembered as soon as it works again" in called.stdout
    assert "Traceback" not in called.stderr
    assert done(home.keryx("sessions", "list")) == ""
    mend_file(home.path)
    assert "The dog is Rex." in done(home.keryx("memory", "list"))
    assert home.texts() == ["The dog is Rex."]


def test_a_damaged_index_of_vectors_is_left_out_until_it_is_moved(home: MemoryHome) -> None:
    configure(home, "vector", "shelf")
    index = home.path / "vectors.db"
    noise(index)
    before = index.read_bytes()
    check_other_commands(home, str(index))
    done(home.keryx("memory", "add", "The user drinks tea."))
    assert home.texts() == ["The user drinks tea."]
    assert "vector: left out" in home.keryx("memory", "lag").stdout
    line, hints = memory_of_doctor(home)
    assert line.startswith("! memory")
    assert "move vectors.db" in hints
    assert index.read_bytes() == before
    index.rename(index.with_suffix(".away"))
    done(home.keryx("memory", "retry"))
    assert done(home.keryx("memory", "lag")) == "vector: up to date\nshelf: up to date\n"


@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_a_file_that_may_not_be_read_or_written_stops_only_the_memory(mode: int) -> None:
    with open_folder() as folder:
        (folder / "config.toml").write_text(
            'model = "scripted:demo"\n[memory]\nproviders = ["notes"]\n'
        )
        for words in (["run", "Hello"], ["memory", "add", "The user drinks tea."]):
            assert keryx(folder, *words).returncode == 0
        file = folder / "memory.db"
        _give_away_all_but(file, mode)
        run = keryx(folder, "run", "Hello", bereft="without_rights")
        assert (run.returncode, run.stdout[: len(DEMO)]) == (0, DEMO), run.stderr
        assert str(file) in one_clear_line(run.stderr)
        listed = keryx(folder, "sessions", "list", bereft="without_rights")
        assert (listed.returncode, listed.stderr) == (0, "")
        lag = keryx(folder, "memory", "lag", bereft="without_rights")
        assert (lag.returncode, lag.stdout) == (1, "")
        assert str(file) in one_clear_line(lag.stderr)
        shown = keryx(folder, "doctor", bereft="without_rights").stdout
        assert "✗ memory" in shown
        file.chmod(0o644)
        assert "The user drinks tea." in keryx(folder, "memory", "list").stdout


def _give_away_all_but(file: Path, mode: int) -> None:
    file.chmod(mode)
    if os.geteuid() == 0:
        for path in (file.parent, *file.parent.rglob("*")):
            if path != file:
                os.chown(path, NOBODY, NOBODY)


# -- nothing is lost


@pytest.mark.parametrize("restarts", [True, False], ids=["after_a_restart", "in_the_same_host"])
async def test_what_is_remembered_while_the_file_is_broken_is_taken_in_when_it_is_mended(
    home: MemoryHome, restarts: bool
) -> None:
    texts = [TEA, CAKE, CHESS] if restarts else [TEA, CAKE, CHESS, SONGS]
    async with remembering(teaching(TEA), home.path) as app:
        session_id = (session := await app.open()).session_id
        await teach(app, session, TEA)
    await in_thread(break_file, home.path)
    async with remembering(teaching(*texts[1:]), home.path) as app:
        session = await app.open(session_id)
        await teach(app, session, CAKE, CHESS)
        for warned in (await warnings(app, session))[1:]:
            assert "file is not a database" in "".join(warned)
        for result in (await results(app, session))[1:]:
            assert "remembered as soon as it works again" in result
        with pytest.raises(StoreError, match="file is not a database"):
            await app.memory.list()
        if not restarts:
            await in_thread(mend_file, home.path)
            await teach(app, session, SONGS)
            assert (await warnings(app, session))[-1] == ()
            assert await memories(app) == texts
    if restarts:
        await in_thread(mend_file, home.path)
    async with remembering(ScriptedModel([]), home.path) as app:
        assert await memories(app) == texts
        await delivered(app)
    await in_thread(check_stored, home.stored, session_id, *texts)


async def test_a_file_that_breaks_later_is_reported_from_then_on(home: MemoryHome) -> None:
    async with remembering(teaching(TEA, CAKE, CHESS), home.path) as app:
        session = await app.open()
        await teach(app, session, TEA)
        assert await memories(app) == [TEA]
        await in_thread(change_table, home, "applied", "hidden")
        await teach(app, session, CAKE)
        with pytest.raises(StoreError, match="no such table"):
            await app.memory.list()
        await teach(app, session, CHESS)
        (*_, warned) = await warnings(app, session)
        assert "no such table" in "".join(warned)
        await in_thread(change_table, home, "hidden", "applied")
        assert await memories(app) == [TEA, CAKE, CHESS]
        await delivered(app)
    await in_thread(check_stored, home.stored, session.session_id, TEA, CAKE, CHESS)


async def test_a_delivery_that_goes_well_does_not_hide_that_nothing_is_taken_in(
    home: MemoryHome,
) -> None:
    async with remembering(teaching(TEA, CAKE, CHESS), home.path) as app:
        gate = shelf.OPENED[-1].gate = asyncio.Event()
        session = await app.open()
        await teach(app, session, TEA)
        assert await memories(app) == [TEA]
        await in_thread(change_table, home, "applied", "hidden")
        await teach(app, session, CAKE)
        with pytest.raises(StoreError, match="no such table"):
            await app.memory.list()
        gate.set()
        while await in_thread(open_deliveries, home):
            await shelf.OPENED[-1].wait_stored()
        await teach(app, session, CHESS)
        (*_, warned) = await warnings(app, session)
        assert "no such table" in "".join(warned)


def change_table(home: MemoryHome, name: str, other: str) -> None:
    with closing(sqlite3.connect(home.path / "memory.db")) as connection:
        connection.execute(f"ALTER TABLE {name} RENAME TO {other}")


def open_deliveries(home: MemoryHome) -> int:
    with closing(sqlite3.connect(home.path / "memory.db")) as connection:
        query = "SELECT count(*) FROM deliveries WHERE state != 'done'"
        return connection.execute(query).fetchone()[0]


async def test_a_new_file_takes_in_what_waits_if_a_person_moves_the_damaged_one(
    home: MemoryHome,
) -> None:
    await in_thread(noise, home.path / "memory.db")
    async with remembering(teaching(TEA, CAKE), home.path) as app:
        session = await app.open()
        await teach(app, session, TEA, CAKE)
    damaged = await in_thread((home.path / "memory.db").rename, home.path / "damaged")
    async with remembering(ScriptedModel([]), home.path) as app:
        assert await memories(app) == [TEA, CAKE]
        await delivered(app)
    assert damaged.is_file()
    await in_thread(check_stored, home.stored, session.session_id, TEA, CAKE)


# -- what sessions and people are told


async def test_tools_that_need_the_file_fail_with_the_reason(home: MemoryHome) -> None:
    async with remembering(ScriptedModel([]), home.path) as app:
        tea = await app.memory.add(TEA)
    await in_thread(break_file, home.path)
    model = ScriptedModel(
        [
            call("recall", words="tea"),
            call("memory", action="search", text="tea"),
            call("memory", action="replace", id=tea.id, text=CAKE),
            call("memory", action="remove", id=tea.id),
            said(),
        ]
    )
    async with remembering(model, home.path) as app:
        session = await app.open()
        assert await ask(session, "What do I drink?") == "Done."
        finished = await facts(app, session, ev.CallFinished)
        assert [fact.outcome for fact in finished] == ["failed"] * 4
        for result in await results(app, session):
            assert "the memory does not work, so nothing" in result
            assert "file is not a database" in result
    await in_thread(mend_file, home.path)
    async with remembering(ScriptedModel([]), home.path) as app:
        assert await memories(app) == [TEA]


async def test_a_guest_and_a_process_beside_the_owner_say_it_too(home: MemoryHome) -> None:
    await in_thread(break_file, home.path)
    async with (
        remembering(teaching(), home.path),
        remembering(teaching(TEA), home.path) as guest,
    ):
        session = await guest.open()
        await teach(guest, session, TEA)
        (warned,) = await warnings(guest, session)
        assert "file is not a database" in "".join(warned)
        with pytest.raises(StoreError, match=r"move memory\.db"):
            await guest.memory.states()
        beside = await in_thread(home.keryx, "memory", "list")
        assert "move memory.db" in one_clear_line(beside.stderr)
    await in_thread(mend_file, home.path)
    async with remembering(ScriptedModel([]), home.path) as app:
        assert await memories(app) == [TEA]


async def test_what_a_deleted_session_taught_is_forgotten_or_kept_when_the_file_is_mended(
    home: MemoryHome,
) -> None:
    async with remembering(teaching(TEA, CAKE), home.path) as app:
        first, second = await app.open(), await app.open()
        await teach(app, first, TEA)
        await teach(app, second, CAKE)
    await in_thread(break_file, home.path)
    async with remembering(teaching(CHESS), home.path) as app:
        assert await app.delete(first.session_id)
        await teach(app, await app.open(second.session_id), CHESS)
        # What is not taken in yet stays, although the outbox loses the rows of the session.
        assert await app.delete(second.session_id, keep_memory=True)
    await in_thread(mend_file, home.path)
    async with remembering(ScriptedModel([]), home.path) as app:
        assert await memories(app) == [CAKE, CHESS]
        await delivered(app)
    texts = [item.text for item in Shelf(home.stored).active().values() if isinstance(item, Memory)]
    assert texts == [CAKE, CHESS]


async def test_the_server_says_what_does_not_work_and_works(
    home: MemoryHome, tmp_path: Path
) -> None:
    configure(home, "shelf", "second")
    await in_thread(install_second, home, BROKEN)
    async with served_host(tmp_path) as here:
        state = await here.client.get("/api/memory/state")
        shown = {provider["name"]: provider for provider in state["providers"]}
        assert (shown["shelf"]["left_out"], shown["second"]["stuck"]) == (None, True)
        assert BOOM in shown["second"]["left_out"]
    await in_thread(break_file, home.path)
    async with served_host(tmp_path) as here:
        client = here.client
        assert (await client.ask("GET", "/api/health")).status == 200
        session_id = await client.open()
        sent = await client.say(session_id, "Hello")
        await client.finished(session_id, sent["turn_id"])
        state = await client.get("/api/memory/state")
        assert (state["on"], "move memory.db" in state["hint"]) == (False, True)
        refused = await client.ask("GET", "/api/memory")
        assert refused.status < 600
        assert "file is not a database" in refused.body["detail"]


@pytest.mark.parametrize("wrong", ["an unknown name", "a missing setting"])
def test_a_wrong_configuration_stays_an_error(home: MemoryHome, wrong: str) -> None:
    configure(home, "shelf" if wrong == "a missing setting" else "shell")
    config = home.path / "config.toml"
    config.write_text(config.read_text().replace("path =", "folder ="))
    for words in (["sessions", "list"], ["memory", "lag"]):
        refused = home.keryx(*words)
        assert (refused.returncode, refused.stdout) == (1, "")
        line = one_clear_line(refused.stderr)
        assert "did you mean 'shelf'?" in line or "[memory.settings.shelf]" in line
    line, _ = memory_of_doctor(home)
    assert line.startswith("✗ memory")
