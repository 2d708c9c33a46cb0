"""A deleted session leaves no byte behind."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from keryx.aio.bridge import Bridge
from keryx.ports.store import Blob, Commit, InboxRow, OutboxRow, blob_hash
from keryx.store.sqlite import SqliteStore, writer
from keryx.testing.facts import Facts


def found_in(folder: Path, mark: str) -> int:
    return sum(file.read_bytes().count(mark.encode()) for file in folder.iterdir())


async def fill(store: SqliteStore, names: list[str], chance: random.Random) -> None:
    """Sessions that grow side by side, so that their rows share pages; each marks all it writes."""
    epochs = {name: await store.claim(name) for name in names}
    facts = {name: Facts(name) for name in names}
    for number in range(12 * len(names)):
        name = chance.choice(names)
        mark = f"MARK-{name}-" * chance.choice([1, 10, 100, 1000])
        data = f"{mark}{number}".encode()
        await store.append(
            Commit(
                session_id=name,
                epoch=epochs[name],
                events=(facts[name].renamed(mark[:200]), facts[name].replied(mark)),
                enters=(InboxRow(f"{mark[:100]}{number}", data),),
                claims=(f"{mark[:100]}{number}",),
                blobs=(Blob(blob_hash(data), data),),
                outbox=(OutboxRow(f"{name}{number}", "t", data),),
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
    assert found_in(tmp_path, "MARK-003-") > 0
    gone: list[str] = []
    for name in chance.sample(names, k=6):
        assert await store.delete(name)
        gone.append(name)
        assert [found_in(tmp_path, f"MARK-{each}-") for each in gone] == [0] * len(gone)
    assert len(await store.sessions()) == 2
    await store.close()
    assert [found_in(tmp_path, f"MARK-{each}-") for each in gone] == [0] * len(gone)
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_what_a_large_file_still_holds_goes_when_the_store_is_closed(
    tmp_path: Path, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PURGE_AT_ONCE", 0)
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
