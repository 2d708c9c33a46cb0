"""Files that are damaged, full, locked or not ours: named, explained, and left as they are."""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from keryx.aio.bridge import Bridge
from keryx.errors import SessionDamagedError, StoreDamagedError, StoreError, StoreTooNewError
from keryx.ports.store import Commit
from keryx.store.sqlite import SqliteStore, files
from keryx.store.sqlite.faults import as_store_error
from keryx.testing.event_factory import EventFactory
from tests.store.store_process import child, said_by
from tests.store.store_program import NOBODY

pytestmark = pytest.mark.promise("sessions.6")

PAGE = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def make(path: Path, bridge: Bridge, events: int = 200) -> None:
    """A store with one session of some length."""
    facts = EventFactory()
    store = await SqliteStore.open(path, bridge)
    epoch = await store.claim("s")
    written = tuple(facts.replied("text " * 100) for _ in range(events))
    await store.append(Commit(session_id="s", epoch=epoch, events=written))
    await store.close()


def pages_of(path: Path, table: str) -> int:
    """The page where the table begins."""
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
        return row.fetchone()[0]


def content(path: Path) -> bytes:
    return path.read_bytes()


def cut(path: Path, part: float) -> None:
    os.truncate(path, int(path.stat().st_size * part))


def overwrite(path: Path, at: int, data: bytes) -> None:
    path.touch()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


async def refused(path: Path, bridge: Bridge) -> StoreError:
    """Why it cannot be opened, for writing and for reading; nothing of it may change."""
    before = content(path)
    with pytest.raises(StoreError):
        await SqliteStore.open(path, bridge, read_only=True)
    with pytest.raises(StoreError) as caught:
        await SqliteStore.open(path, bridge)
    assert content(path) == before
    assert str(path) in str(caught.value)
    return caught.value


# -- damage


async def test_a_file_that_is_no_database_is_named_and_kept(path: Path, bridge: Bridge) -> None:
    overwrite(path, 0, b"these are the notes of somebody" * 1000)
    error = await refused(path, bridge)
    assert isinstance(error, StoreDamagedError)
    assert "backup" in str(error)
    assert "keryx sessions repair" in str(error)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
async def test_a_file_that_was_cut_is_named_and_kept(
    path: Path, bridge: Bridge, part: float
) -> None:
    await make(path, bridge)
    cut(path, part)
    assert isinstance(await refused(path, bridge), StoreDamagedError)


async def test_overwritten_pages_are_found_when_the_file_is_opened(
    path: Path, bridge: Bridge
) -> None:
    await make(path, bridge)
    overwrite(path, (pages_of(path, "events") - 1) * PAGE, random.Random(3).randbytes(PAGE))
    assert isinstance(await refused(path, bridge), StoreDamagedError)


async def test_damage_found_while_reading_ends_all_writing(
    path: Path, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FULL_CHECK_SIZE", 0)  # as if the file were too large for that
    await make(path, bridge)
    overwrite(path, (pages_of(path, "events") - 1) * PAGE, random.Random(3).randbytes(PAGE))
    before = content(path)
    store = await SqliteStore.open(path, bridge)
    with pytest.raises(StoreDamagedError):
        await store.events("s")
    with pytest.raises(StoreDamagedError):
        await store.claim("other")
    assert await store.session("s") is not None
    await store.close()
    assert content(path) == before


async def test_damage_found_while_writing_loses_nothing_that_was_written_before(
    path: Path, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FULL_CHECK_SIZE", 0)
    await make(path, bridge)
    overwrite(path, (pages_of(path, "events") - 1) * PAGE, random.Random(3).randbytes(PAGE))
    before = content(path)
    store = await SqliteStore.open(path, bridge)
    epoch = await store.claim("s")
    commit = Commit(session_id="s", epoch=epoch, events=(EventFactory(last_seq=200).opened(),))
    for _ in range(2):
        with pytest.raises(StoreDamagedError):
            await store.append(commit)
    await store.close()
    assert content(path) == before


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        (b'{"type": "turn.st', SessionDamagedError, "session s is damaged .event 2"),
        (b"\xff\xfe", SessionDamagedError, "session s is damaged .event 2"),
        (b'{"type": "turn.started"}', SessionDamagedError, "session s is damaged .event 2"),
        (b'{"type": "turn.imagined"}', StoreTooNewError, "update Keryx"),
    ],
)
async def test_an_event_that_cannot_be_read_is_named(
    path: Path, bridge: Bridge, body: bytes, error: type[StoreError], said: str
) -> None:
    await make(path, bridge, events=3)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE events SET body = ? WHERE seq = 2", (body,))
    store = await SqliteStore.open(path, bridge)
    with pytest.raises(error, match=said):
        await store.events("s")
    with pytest.raises(error, match=said):
        await store.transcript("s")
    assert len(await store.events("s", after=2)) == 1
    await store.close()


# -- what the machine refuses


async def test_a_folder_is_no_store(tmp_path: Path, bridge: Bridge) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        await SqliteStore.open(tmp_path, bridge)


async def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path, bridge: Bridge) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/store\.db"):
        await SqliteStore.open(tmp_path / "file" / "store.db", bridge)


async def test_there_is_nothing_to_read_where_there_is_no_file(path: Path, bridge: Bridge) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        await SqliteStore.open(path, bridge, read_only=True)
    assert names_in(path.parent) == []


async def test_a_locked_file_is_said_to_be_and_nothing_is_lost(path: Path, bridge: Bridge) -> None:
    facts = EventFactory()
    store = await SqliteStore.open(path, bridge)
    epoch = await store.claim("s")
    await store.append(Commit(session_id="s", epoch=epoch, events=(facts.opened(),)))
    commit = Commit(session_id="s", epoch=epoch, events=(facts.accepted(),))
    with child("hold_locked", path) as holder:
        assert holder.hear() == "ready"
        with pytest.raises(StoreError, match="another program holds it locked"):
            await store.append(commit)
        assert len(await store.events("s")) == 1
        holder.go()
        holder.process.wait()
    await store.append(commit)
    assert [event.seq for event in await store.events("s")] == [1, 2]
    await store.close()


def test_a_disk_that_is_full_refuses_all_that_was_to_be_written_together(path: Path) -> None:
    outcomes, said, during, after = said_by("fill_the_disk", path)
    assert outcomes == ["int", "StoreError", "StoreError", "StoreError"]
    assert str(path) in said
    assert during == [1, 1, 0, 0]
    assert after == [1, 1, 0, 1]


def test_what_sqlite_says_of_a_full_disk_tells_what_to_do(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA max_page_count = 3")
        connection.execute("CREATE TABLE t (x)")
        with pytest.raises(sqlite3.Error) as caught:
            connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
    error = as_store_error(path, caught.value)
    assert str(path) in str(error)
    assert "free some space" in str(error)


# -- what the owner of the machine forbids


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that a user without rights can come to, for root may write everywhere."""
    with tempfile.TemporaryDirectory(prefix="store-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def names_in(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]


def make_read_only(path: Path) -> None:
    path.chmod(0o444)
    path.parent.chmod(0o555)


def give_away(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)


def test_a_folder_that_is_read_only_is_named(shared: Path) -> None:
    shared.chmod(0o555)
    (said,) = said_by("open_only", shared / "store.db", "nobody")
    assert said.startswith(f"StoreError: {shared}/store.db")
    assert "permission" in said.lower()


async def test_a_file_that_may_not_be_read_is_named(shared: Path, bridge: Bridge) -> None:
    path = shared / "store.db"
    await make(path, bridge)
    give_away(path)
    path.chmod(0)
    (said,) = said_by("open_only", path, "nobody")
    assert said.startswith(f"StoreError: {path}")


async def test_a_store_in_a_read_only_home_can_be_read_and_not_written(
    shared: Path, bridge: Bridge
) -> None:
    path = shared / "store.db"
    await make(path, bridge)
    make_read_only(path)
    before = content(path)
    (said,) = said_by("open_only", path, "nobody")
    assert said.startswith(f"StoreError: {path}")
    assert "read-only" in said
    assert said_by("open_only", path, "nobody", "read_only") == [["s"]]
    assert content(path) == before
    assert names_in(shared) == ["store.db"]
