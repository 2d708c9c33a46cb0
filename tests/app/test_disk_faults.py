"""A home that cannot be used, and a disk that fails: said by name, with what to do, and no loss.

Each is met twice: by a program through the library, and by a person at the command line.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.errors import StoreDamagedError, StoreError, StoreTooNewError, UserMustActError
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.testing.modelserver import MODEL, ModelServer, Reply
from tests.app.hosts import (
    NOBODY,
    PATIENCE,
    Answers,
    check_log,
    configure,
    keryx,
    keryx_beside,
    one_clear_line,
    open_folder,
    said_by,
)
from tests.store.store_process import child

pytestmark = pytest.mark.promise("sessions.6")

DEMO = "scripted:demo"


async def fill(home: Path, *texts: str) -> str:
    """A home with one session, in which this was said."""
    async with Keryx(model=DEMO, home=home) as app:
        session = await app.open()
        for text in texts or ("Hello",):
            await (await session.send(text)).result()
        return session.session_id


async def refused(home: Path) -> UserMustActError:
    """Why no host can start there."""
    with pytest.raises(UserMustActError) as caught:
        async with asyncio.timeout(PATIENCE):
            await Keryx(model=DEMO, home=home).__aenter__()
    return caught.value


def refused_by_command(home: Path, bereft: str | None = None) -> str:
    """What both commands say to a person; they must say the same."""
    said = set[str]()
    for words in (("run", "--model", DEMO, "Hello"), ("sessions", "list")):
        result = keryx(home, *words, bereft=bereft)
        assert (result.returncode, result.stdout) == (1, "")
        said.add(one_clear_line(result.stderr))
    (line,) = said
    return line


def said_in(log: list[ev.LoggedEvent]) -> list[str]:
    return [event.text for event in log if isinstance(event, ev.MessageAccepted)]


async def check_answers(home: Path, session_id: str, *said: str) -> None:
    """All that was acknowledged is there, what was left is done, and the session goes on.

    It was made by a program with a model and a tool of its own, so it needs one that has them.
    """

    @tool(effects=NO_EFFECTS)
    async def look() -> str:
        """Look."""
        return "Nothing."

    model = ScriptedModel(lambda _: ScriptedReply(text="Fine."), name=DEMO)
    async with Keryx(model=model, tools=[look], home=home) as app, asyncio.timeout(PATIENCE):
        session = await app.open(session_id)
        assert (await (await session.send("And now?")).result()).outcome == "completed"
        log = await app.store.events(session_id)
    assert said_in(log) == [*said, "And now?"]
    check_log(log)


# -- a home that cannot be


def below_a_file(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "home"


def a_file(folder: Path) -> Path:
    (folder / "home").write_text("")
    return folder / "home"


def too_long(folder: Path) -> Path:
    return folder / ("long" * 100)


def nowhere(folder: Path) -> Path:
    (folder / "home").symlink_to(folder / "gone")
    return folder / "home"


def with_a_folder_for_its_store(folder: Path) -> Path:
    (folder / "keryx.db").mkdir()
    return folder


def with_a_folder_for_its_lock(folder: Path) -> Path:
    (folder / "host.lock").mkdir()
    return folder


@pytest.mark.parametrize(
    "make",
    [
        *(below_a_file, a_file, too_long, nowhere),
        *(with_a_folder_for_its_store, with_a_folder_for_its_lock),
    ],
    ids=lambda make: make.__name__,
)
async def test_a_home_that_cannot_be_made_is_named(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    home = make(tmp_path)
    error = await refused(home)
    assert str(home) in str(error)
    assert refused_by_command(home) == f"keryx: {error}"


# -- what the owner of the machine forbids


@pytest.fixture
def shared() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


def content(home: Path) -> bytes:
    return (home / "keryx.db").read_bytes()


def allow(path: Path, mode: int) -> None:
    path.chmod(mode)


def give_away_all_but(store: Path) -> None:
    if os.geteuid() == 0:
        for path in (store.parent, *store.parent.iterdir()):
            if path != store:
                os.chown(path, NOBODY, NOBODY)


def test_a_home_in_a_read_only_folder_is_named(shared: Path) -> None:
    shared.chmod(0o555)
    home = shared / "home"
    line = refused_by_command(home, "without_rights")
    assert str(home) in line
    assert "Permission denied" in line
    assert "KERYX_HOME" in line


async def test_a_read_only_home_is_named_and_left_as_it_is(shared: Path) -> None:
    session_id = await fill(shared)
    before = content(shared)
    allow(shared, 0o555)
    line = refused_by_command(shared, "without_rights")
    assert str(shared) in line
    assert "Permission denied" in line
    allow(shared, 0o755)
    assert content(shared) == before
    await check_answers(shared, session_id, "Hello")


async def test_a_read_only_store_can_be_read_and_not_written(shared: Path) -> None:
    session_id = await fill(shared)
    store = shared / "keryx.db"
    allow(store, 0o444)
    give_away_all_but(store)
    before = content(shared)
    shown = keryx(shared, "sessions", "show", session_id, bereft="without_rights")
    assert (shown.returncode, shown.stdout.splitlines()[0]) == (0, "> Hello")
    sent = keryx(shared, "run", "--model", DEMO, "Hello", bereft="without_rights")
    assert (sent.returncode, sent.stdout) == (1, "")
    line = one_clear_line(sent.stderr)
    assert line.startswith(f"keryx: {store} cannot be used: it is read-only; make the file")
    assert content(shared) == before
    allow(store, 0o644)
    await check_answers(shared, session_id, "Hello")


# -- damage, and files of others


def without_its_head(store: Path) -> None:
    with store.open("r+b") as file:
        file.write(b"\xff" * 4096)


def cut_in_half(store: Path) -> None:
    os.truncate(store, store.stat().st_size // 2)


def with_a_page_overwritten(store: Path) -> None:
    """Where the log begins; nothing but a look through the file finds that before it is read."""
    with closing(sqlite3.connect(store)) as connection:
        cursor = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'events'")
        (page,) = cursor.fetchone()
    with store.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)


def replaced_by_notes(store: Path) -> None:
    store.write_bytes(b"these are the notes of somebody" * 1000)


@pytest.mark.parametrize(
    "harm",
    [without_its_head, cut_in_half, with_a_page_overwritten, replaced_by_notes],
    ids=lambda harm: harm.__name__,
)
async def test_a_damaged_store_is_named_and_left_as_it_is(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    session_id = await fill(tmp_path)
    store = tmp_path / "keryx.db"
    backup = store.read_bytes()
    harm(store)
    before = content(tmp_path)
    error = await refused(tmp_path)
    assert isinstance(error, StoreDamagedError)
    assert str(error).startswith(f"{store} is damaged")
    assert "Restore a backup" in str(error)
    assert refused_by_command(tmp_path) == f"keryx: {error}"
    assert content(tmp_path) == before
    store.write_bytes(backup)
    await check_answers(tmp_path, session_id, "Hello")


@pytest.mark.parametrize(
    ("change", "kind", "advice"),
    [
        ("PRAGMA user_version = 99", StoreTooNewError, "update Keryx"),
        ("PRAGMA application_id = 7", StoreError, "database of another program"),
    ],
)
async def test_a_store_that_is_not_for_this_version_is_named_and_left_as_it_is(
    tmp_path: Path, change: str, kind: type[StoreError], advice: str
) -> None:
    await fill(tmp_path)
    store = tmp_path / "keryx.db"
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute(change)
    before = content(tmp_path)
    error = await refused(tmp_path)
    assert type(error) is kind
    assert str(store) in str(error)
    assert advice in str(error)
    assert refused_by_command(tmp_path) == f"keryx: {error}"
    assert content(tmp_path) == before


# -- a lock of another program

LOCKED = "another program holds it locked; end that program and try again"


async def test_a_locked_store_is_named_and_works_once_it_is_released(tmp_path: Path) -> None:
    session_id = await fill(tmp_path)
    with child("hold_locked", tmp_path / "keryx.db") as holder:
        assert holder.hear() == "ready"
        error = await refused(tmp_path)
        assert isinstance(error, StoreError)
        assert LOCKED in str(error)
        assert str(tmp_path / "keryx.db") in str(error)
        assert refused_by_command(tmp_path) == f"keryx: {error}"
        holder.go()
        holder.process.wait()
    await check_answers(tmp_path, session_id, "Hello")


async def test_a_lock_that_is_soon_released_is_waited_for(tmp_path: Path) -> None:
    async with Keryx(model=DEMO, home=tmp_path) as app:
        session = await app.open()
        with child("hold_locked", tmp_path / "keryx.db") as holder:
            assert holder.hear() == "ready"
            sending = asyncio.ensure_future(session.send("Hello"))
            await asyncio.sleep(0)
            holder.go()
            turn = await sending
            assert (await turn.result()).outcome == "completed"
            holder.process.wait()


async def test_a_message_to_a_locked_store_is_refused_and_later_ones_are_not(
    tmp_path: Path,
) -> None:
    async with Keryx(model=DEMO, home=tmp_path) as app, asyncio.timeout(PATIENCE):
        session = await app.open()
        await (await session.send("first")).result()
        with child("hold_locked", tmp_path / "keryx.db") as holder:
            assert holder.hear() == "ready"
            with pytest.raises(StoreError, match=LOCKED):
                await session.send("refused")
            holder.go()
            holder.process.wait()
        session = await app.open(session.session_id)
        assert (await (await session.send("second")).result()).outcome == "completed"
        log = await app.store.events(session.session_id)
    assert said_in(log) == ["first", "second"]
    check_log(log)


async def test_a_turn_in_a_locked_store_says_so_and_goes_on_at_the_next_start(
    tmp_path: Path,
) -> None:
    locked = asyncio.Event()
    model = ScriptedModel([ScriptedReply(text="Hm.", hold=locked.wait)], name=DEMO)
    async with Keryx(model=model, home=tmp_path) as app, asyncio.timeout(PATIENCE):
        session = await app.open()
        turn = await session.send("first")
        with child("hold_locked", tmp_path / "keryx.db") as holder:
            assert holder.hear() == "ready"
            locked.set()
            with pytest.raises(StoreError, match=LOCKED):
                await turn.result()
            holder.go()
            holder.process.wait()
    await check_answers(tmp_path, session.session_id, "first")


# -- a disk that is full

NO_SPACE = "the disk"


def names(said: list[list[str]]) -> list[str]:
    return [name for name, _ in said]


async def test_a_disk_that_fills_up_in_a_turn_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    *ways, log, again = said_by("fill_the_disk_in_a_turn", tmp_path)
    result, turn_events, session_events, cancel, send = ways
    assert names([result, turn_events, cancel, send]) == ["StoreError"] * 4
    assert session_events[0] in ("", "StoreError"), "its readers are told, or let go"
    for _, text in (result, cancel, send):
        assert str(tmp_path / "keryx.db") in text
        assert NO_SPACE in text
    assert log[-1] == "call.started", "what was durable before is still there"
    assert again == ["", "NoneType"], "with space again, the same host goes on"
    async with Keryx(home=tmp_path, resume=False) as app:
        (row,) = await app.store.sessions()
    await check_answers(tmp_path, row.session_id, "Look", "And now?")


async def test_a_message_that_finds_the_disk_full_is_refused(tmp_path: Path) -> None:
    (refused, text), again = said_by("fill_the_disk_before_a_send", tmp_path)
    assert refused == "StoreError"
    assert str(tmp_path / "keryx.db") in text
    assert again == ["", "NoneType"], "with space again, the same host goes on"
    async with Keryx(home=tmp_path, resume=False) as app:
        (row,) = await app.store.sessions()
        assert said_in(await app.store.events(row.session_id)) == ["first", "And now?"]


def test_a_host_that_finds_the_disk_full_says_so(tmp_path: Path) -> None:
    ((name, text),) = said_by("start_without_space", tmp_path / "home")
    assert name in ("UserMustActError", "StoreError")
    assert str(tmp_path / "home") in text


async def test_a_command_that_finds_the_disk_full_says_so(tmp_path: Path) -> None:
    session_id = await fill(tmp_path)
    assert str(tmp_path) in refused_by_command(tmp_path, "without_space")
    await check_answers(tmp_path, session_id, "Hello")


async def test_a_command_whose_reply_fills_the_disk_ends_and_says_so(tmp_path: Path) -> None:
    answers = Answers(Reply(text="much " * 100_000, chunk=10_000), always=Reply(text="Enough."))
    async with ModelServer(answers) as server:
        configure(tmp_path, server.url)
        run = ("run", "--model", f"openai:{MODEL}", "Tell")
        code, _, err = await keryx_beside(tmp_path, *run, bereft="with_little_space")
        assert code == 1
        assert str(tmp_path / "keryx.db") in one_clear_line(err)
        async with Keryx(home=tmp_path, resume=False) as app:
            (row,) = await app.store.sessions()
        await check_answers(tmp_path, row.session_id, "Tell")
