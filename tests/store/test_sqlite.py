"""What the SQLite store promises beyond the contract: it lasts, commits together, and keeps to
its threads and its file."""

from __future__ import annotations

import asyncio
import stat
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.errors import FencedError, StoreError
from keryx.events import LoggedEvent
from keryx.ports.store import Blob, Commit, InboxRow, OutboxRow, RecordChange, blob_hash
from keryx.store.sqlite import SqliteStore
from keryx.testing.event_factory import EventFactory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest_asyncio.fixture
async def store(path: Path, bridge: Bridge) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(path, bridge)
    yield opened
    await opened.close()


def commit(session_id: str, epoch: int, *events: LoggedEvent) -> Commit:
    return Commit(session_id=session_id, epoch=epoch, events=events)


def transactions(path: Path) -> int:
    """How many the write-ahead log holds: the last frame of each tells the size of the file."""
    log = path.with_name(path.name + "-wal").read_bytes()
    (page,) = struct.unpack(">I", log[8:12])
    frames = range(32, len(log), 24 + page)
    return sum(struct.unpack(">I", log[at + 4 : at + 8])[0] > 0 for at in frames)


# -- it lasts


@pytest.mark.parametrize("durability", ["normal", "full"])
async def test_everything_is_there_when_it_is_opened_again(
    path: Path, bridge: Bridge, durability: str
) -> None:
    facts = EventFactory()
    store = await SqliteStore.open(
        path, bridge, durability="full" if durability == "full" else "normal"
    )
    epoch = await store.claim("s")
    events = (facts.opened("title"), facts.accepted(), facts.delivered(), facts.started())
    await store.append(
        Commit(
            session_id="s",
            epoch=epoch,
            events=events,
            blobs=(Blob(blob_hash(b"data"), b"data"),),
            outbox=(OutboxRow("o", "t", b"body"),),
            records=(RecordChange("r", 0, b"value"),),
        )
    )
    await store.enter("s", InboxRow("k", b"body"))
    row = await store.session("s")
    await store.close()

    again = await SqliteStore.open(path, bridge)
    assert await again.events("s") == list(events)
    assert await again.session("s") == row
    assert await again.unfinished() == ["s"]
    assert await again.pending("s") == [InboxRow("k", b"body")]
    assert await again.blob(blob_hash(b"data")) == b"data"
    assert await again.outbox("t") == [OutboxRow("o", "t", b"body")]
    assert await again.record("r") == (1, b"value")
    assert await again.claim("s") == 2
    await again.close()


async def test_what_was_submitted_is_written_before_the_store_is_closed(
    path: Path, bridge: Bridge
) -> None:
    store = await SqliteStore.open(path, bridge)
    epochs = [await store.claim(str(number)) for number in range(20)]
    async with asyncio.TaskGroup() as group:
        for number, epoch in enumerate(epochs):
            name = str(number)
            group.create_task(store.append(commit(name, epoch, EventFactory(name).opened())))
        await asyncio.sleep(0)
        await store.close()
    again = await SqliteStore.open(path, bridge)
    assert len(await again.sessions()) == 20
    await again.close()


async def test_a_closed_store_leaves_one_file_and_its_index(path: Path, bridge: Bridge) -> None:
    store = await SqliteStore.open(path, bridge)
    await store.append(commit("s", await store.claim("s"), EventFactory().opened()))
    await store.search("words")
    await store.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["search.db", path.name]


async def test_positions_are_never_given_twice(path: Path, bridge: Bridge) -> None:
    store = await SqliteStore.open(path, bridge)
    first = await store.append(commit("a", await store.claim("a"), EventFactory("a").opened()))
    await store.delete("a")
    await store.close()
    store = await SqliteStore.open(path, bridge)
    second = await store.append(commit("b", await store.claim("b"), EventFactory("b").opened()))
    assert second > first
    await store.close()


# -- together


async def test_what_comes_while_a_commit_is_under_way_is_one_transaction(
    store: SqliteStore, path: Path
) -> None:
    names = [str(number) for number in range(11)]
    epochs = {name: await store.claim(name) for name in names}
    before = transactions(path)
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(store.append(commit(name, epochs[name], EventFactory(name).opened())))
    assert transactions(path) == before + 2


async def test_a_text_that_cannot_be_stored_is_refused_alone(store: SqliteStore) -> None:
    epochs = {name: await store.claim(name) for name in "abc"}
    outcomes = await asyncio.gather(
        store.append(commit("a", epochs["a"], EventFactory("a").opened())),
        store.append(commit("b", epochs["b"], EventFactory("b").opened("\ud800"))),
        store.append(commit("c", epochs["c"], EventFactory("c").opened())),
        return_exceptions=True,
    )
    assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, True, False]
    assert [len(await store.events(name)) for name in "abc"] == [1, 0, 1]


@pytest.mark.parametrize("turns_of_the_loop", [1, 2, 3, 10])
async def test_who_is_cancelled_while_it_waits_undoes_nothing(
    store: SqliteStore, turns_of_the_loop: int
) -> None:
    facts = EventFactory()
    epoch = await store.claim("s")
    tasks = [
        asyncio.create_task(store.append(commit("s", epoch, event)))
        for event in (facts.opened(), facts.accepted(), facts.delivered())
    ]
    for _ in range(turns_of_the_loop):
        await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[1].cancel()
    await asyncio.wait(tasks)
    await store.append(commit("s", epoch, facts.started()))
    assert [event.seq for event in await store.events("s")] == [1, 2, 3, 4]


async def test_a_cancelled_reader_gives_its_place_to_the_next(store: SqliteStore) -> None:
    await store.append(commit("s", await store.claim("s"), EventFactory().opened()))
    tasks = [asyncio.create_task(store.events("s")) for _ in range(40)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.wait(tasks)
    assert all(len(task.result()) == 1 for task in tasks[1::2])
    assert len(await store.events("s")) == 1


async def test_opening_that_is_cancelled_lets_go_of_the_file(path: Path, bridge: Bridge) -> None:
    opening = asyncio.create_task(SqliteStore.open(path, bridge))
    await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait([opening])
    store = await SqliteStore.open(path, bridge)
    await store.close()


async def test_a_store_whose_bridge_is_closed_says_so(path: Path, bridge: Bridge) -> None:
    own = Bridge(Scope("own"), threads=2)
    store = await SqliteStore.open(path, own)
    epoch = await store.claim("s")
    await store.close()
    store = await SqliteStore.open(path, own, read_only=True)
    await own.close()
    with pytest.raises(StoreError, match="bridge is closed"):
        await store.events("s")
    assert epoch == 1


# -- two at once


async def test_two_stores_on_one_file_see_each_other_s_commits(
    store: SqliteStore, path: Path, bridge: Bridge
) -> None:
    facts = EventFactory()
    other = await SqliteStore.open(path, bridge)
    old = await store.claim("s")
    await store.append(commit("s", old, facts.opened()))
    assert len(await other.events("s")) == 1
    new = await other.claim("s")
    with pytest.raises(FencedError):
        await store.append(commit("s", old, EventFactory(last_seq=1).accepted()))
    await other.append(commit("s", new, facts.accepted()))
    assert len(await store.events("s")) == 2
    await other.close()


async def test_a_store_for_reading_reads_and_refuses_to_write(
    store: SqliteStore, path: Path, bridge: Bridge
) -> None:
    epoch = await store.claim("s")
    reader = await SqliteStore.open(path, bridge, read_only=True)
    await store.append(commit("s", epoch, EventFactory().opened()))
    assert len(await reader.events("s")) == 1
    with pytest.raises(StoreError, match="reading only"):
        await reader.claim("s")
    await reader.close()


# -- the file


async def test_the_file_and_its_new_folders_are_the_owner_s_alone(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "new" / "folder" / "store.db"
    store = await SqliteStore.open(path, bridge)
    await store.claim("s")
    await store.search("words")
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(list(path.parent.iterdir())) == 6
    await store.close()


async def test_a_path_with_signs_of_its_own_is_taken_as_it_is(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "50% ? & ünï #1.db"
    store = await SqliteStore.open(path, bridge)
    await store.append(commit("s", await store.claim("s"), EventFactory().opened()))
    assert len(await store.events("s")) == 1
    await store.close()
    assert path.stat().st_size > 0
