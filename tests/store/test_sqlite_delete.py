"""A deleted session leaves no byte behind: not in the store, its index, nor the logs of both."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from keryx.aio.bridge import Bridge
from keryx.events import LoggedEvent
from keryx.messages import Text, ToolCall
from keryx.ports.store import (
    Blob,
    Commit,
    InboxRow,
    OutboxRow,
    RecordChange,
    blob_hash,
    records_of,
)
from keryx.store.sqlite import SqliteStore, writer
from keryx.testing.event_factory import EventFactory

pytestmark = pytest.mark.promise("server.7")


def found_in(folder: Path, mark: str) -> int:
    return sum(content(file).count(mark.encode()) for file in folder.iterdir())


def content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""  # a journal that was only there for a moment


def turn_events(facts: EventFactory, mark: str, number: int) -> tuple[LoggedEvent, ...]:
    """A title, a message, a reply, arguments and a result, all with the mark."""
    turn = f"t{number}"
    call = ToolCall("c", "tool", f'{{"of": "{mark}"}}')
    return (
        facts.renamed(mark[:200]),
        facts.accepted(turn, mark, turn),
        facts.delivered(turn, turn),
        facts.replied(mark, turn_id=turn, calls=(call,)),
        facts.called(turn_id=turn, result=(Text(f"{mark} {secret(facts.session_id)}"),)),
    )


def secret(name: str) -> str:
    """A word of one session, as an index keeps words."""
    return f"secret{name}" * 3


def words_in(folder: Path) -> set[str]:
    """All words that the index holds, whether or not something is still found by them."""
    words: set[str] = set()
    with closing(sqlite3.connect(folder / "search.db")) as index:
        volumes = [row[0] for row in index.execute("SELECT volume FROM volumes")]
        for volume in volumes:
            of = f"'main', 'words_{volume}', 'row'"
            index.execute(f"CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab({of})")
            words |= {row[0] for row in index.execute("SELECT term FROM vocabulary")}
            index.execute("DROP TABLE vocabulary")
    return words


async def fill(store: SqliteStore, names: list[str], chance: random.Random) -> None:
    """Sessions that grow side by side, so that their rows share pages; each marks all it writes."""
    epochs = {name: await store.claim(name) for name in names}
    facts = {name: EventFactory(name) for name in names}
    for number in range(12 * len(names)):
        name = chance.choice(names)
        mark = f"MARK-{name}-" * chance.choice([1, 10, 100, 1000])
        data = f"{mark}{number}".encode()
        await store.append(
            Commit(
                session_id=name,
                epoch=epochs[name],
                events=turn_events(facts[name], mark, number),
                enters=(InboxRow(f"{mark[:100]}{number}", data),),
                claims=(f"{mark[:100]}{number}",),
                blobs=(Blob(blob_hash(data), data),),
                outbox=(OutboxRow(f"{name}{number}", "t", data),),
                records=(RecordChange(f"{records_of(name)}{number}", 0, data),),
            )
        )
        await store.enter(name, InboxRow(f"pending {number}", data))
        if number % 3 == 0:
            await store.sent([f"{name}{number}"])


@pytest.mark.parametrize("seed", range(3))
async def test_the_files_hold_no_byte_of_a_deleted_session(
    tmp_path: Path, bridge: Bridge, seed: int
) -> None:
    chance = random.Random(seed)
    names = [f"{number:03}" for number in range(8)]
    store = await SqliteStore.open(tmp_path / "store.db", bridge)
    await fill(store, names, chance)
    while not (await store.covered()).is_whole:
        await store.search("which lets the index catch up")
    assert found_in(tmp_path, "MARK-003-") > 0
    assert len(await store.search(secret("003"))) > 0
    assert secret("003") in words_in(tmp_path)
    deleted: list[str] = []
    for name in chance.sample(names, k=6):
        assert await store.delete(name)
        deleted.append(name)
        assert [found_in(tmp_path, f"MARK-{id_}-") for id_ in deleted] == [0] * len(deleted)
        assert [found_in(tmp_path, secret(id_)) for id_ in deleted] == [0] * len(deleted)
        assert not words_in(tmp_path) & {secret(id_) for id_ in deleted}
    for name in names:
        assert (await store.search(secret(name)) == []) is (name in deleted)
    assert len(await store.sessions()) == 2
    await store.close()
    assert [found_in(tmp_path, f"MARK-{id_}-") for id_ in deleted] == [0] * len(deleted)
    assert not words_in(tmp_path) & {secret(id_) for id_ in deleted}
    for file in ("store.db", "search.db"):
        with closing(sqlite3.connect(tmp_path / file)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_what_a_large_file_still_holds_goes_when_the_store_is_closed(
    tmp_path: Path, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PURGE_SIZE", 0)
    names = [f"{number:03}" for number in range(8)]
    store = await SqliteStore.open(tmp_path / "store.db", bridge)
    await fill(store, names, random.Random(1))
    for name in names[:4]:
        await store.delete(name)
    assert len(await store.sessions()) == 4
    await store.close()
    assert [found_in(tmp_path, f"MARK-{name}-") for name in names[:4]] == [0] * 4


async def test_who_reads_meanwhile_is_not_disturbed_and_the_rest_goes_later(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path, bridge)
    await fill(store, ["000", "001"], random.Random(2))
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        before = reader.execute("SELECT count(*) FROM events").fetchone()
        assert await store.delete("000")
        assert reader.execute("SELECT count(*) FROM events").fetchone() == before
    assert await store.session("000") is None
    await store.close()
    assert found_in(tmp_path, "MARK-000-") == 0


async def test_who_reads_the_index_meanwhile_is_not_disturbed_and_the_rest_goes_later(
    tmp_path: Path, bridge: Bridge
) -> None:
    store = await SqliteStore.open(tmp_path / "store.db", bridge)
    await fill(store, ["000", "001"], random.Random(2))
    assert await store.search(secret("000"))
    with closing(sqlite3.connect(tmp_path / "search.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        before = reader.execute("SELECT count(*) FROM entries").fetchone()
        assert await store.delete("000")
        assert reader.execute("SELECT count(*) FROM entries").fetchone() == before
    assert await store.search(secret("000")) == []
    assert await store.search(secret("001"))
    await store.close()
    assert found_in(tmp_path, "MARK-000-") == found_in(tmp_path, secret("000")) == 0
    assert secret("000") not in words_in(tmp_path)


async def test_what_an_interrupted_deletion_left_in_the_index_goes_at_the_next_start(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path, bridge)
    await fill(store, ["000", "001"], random.Random(2))
    assert await store.search(secret("000"))
    await store.close()
    before = (tmp_path / "search.db").read_bytes()
    store = await SqliteStore.open(path, bridge)
    await store.delete("000")
    await store.close()
    # As a process leaves it that dies after the store's own commit.
    (tmp_path / "search.db").write_bytes(before)
    assert secret("000") in words_in(tmp_path)
    store = await SqliteStore.open(path, bridge)
    assert await store.search(secret("000")) == []
    assert await store.search(secret("001"))
    assert secret("000") not in words_in(tmp_path)
    await store.close()


async def test_two_sessions_deleted_at_once_are_both_gone_from_the_index(
    tmp_path: Path, bridge: Bridge
) -> None:
    store = await SqliteStore.open(tmp_path / "store.db", bridge)
    await fill(store, ["000", "001", "002"], random.Random(3))
    await store.search("anything")
    async with asyncio.TaskGroup() as group:
        for name in ("000", "001"):
            group.create_task(store.delete(name))
    assert not words_in(tmp_path) & {secret("000"), secret("001")}
    assert found_in(tmp_path, "MARK-000-") == found_in(tmp_path, "MARK-001-") == 0
    assert await store.search(secret("002"))
    await store.close()
