"""A damaged store is read as far as it can be, and what is lost is report."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from keryx.aio.bridge import Bridge
from keryx.errors import StoreError
from keryx.events import LoggedEvent, Usage
from keryx.messages import File
from keryx.ports.store import Blob, Commit, InboxRow, OutboxRow, RecordChange, Store, blob_hash
from keryx.store.sqlite import SqliteStore
from keryx.store.sqlite.recovery.salvage import CutSession, Salvaged, salvage
from keryx.testing.event_factory import EventFactory
from tests.conftest import SOAK
from tests.store.test_migrations import make_first

pytestmark = pytest.mark.promise("server.7")


PAGE = 4096
NAMES = [f"session-{number:02}" for number in range(12)]
LARGE = Blob(blob_hash(b"large" * 20_000), b"large" * 20_000)

Logs = dict[str, list[LoggedEvent]]


def turn(facts: EventFactory, number: int, chance: random.Random) -> tuple[LoggedEvent, ...]:
    name = f"t{number}"
    text = f"{facts.session_id} {number} " * chance.choice([1, 20, 600])
    attached = (File(LARGE.hash, "text/plain"),) if number == 3 else ()
    return (
        facts.accepted(name, text, name, attached),
        facts.delivered(name, name),
        facts.started(name, name),
        facts.step(turn_id=name),
        facts.replied(text, turn_id=name, usage=Usage(input_tokens=number), cost=0.5),
        facts.finished(name, chance.choice(["completed", "failed"])),
    )


async def fill(store: Store, chance: random.Random, turns: int = 8) -> None:
    """Sessions that grow side by side, with everything that a store keeps."""
    facts = {name: EventFactory(name) for name in NAMES}
    epochs = {name: await store.claim(name) for name in NAMES}
    for number in range(turns):
        for name in chance.sample(NAMES, k=len(NAMES)):
            opened = () if number else (facts[name].opened(f"title of {name}"),)
            data = f"{name} {number}".encode()
            await store.append(
                Commit(
                    session_id=name,
                    epoch=epochs[name],
                    events=(*opened, *turn(facts[name], number, chance)),
                    enters=(InboxRow(f"key {number}", data),),
                    claims=(f"claim {number}",),
                    blobs=(LARGE, Blob(blob_hash(data), data)),
                    outbox=(OutboxRow(f"{name} {number}", "topic", data),),
                    records=(RecordChange(f"{name}/{number}", 0, data),),
                )
            )
        await store.enter(NAMES[number % 3], InboxRow(f"pending {number}", b"body"))


async def make(path: Path, bridge: Bridge, seed: int = 1) -> Logs:
    store = await SqliteStore.open(path, bridge)
    await fill(store, random.Random(seed))
    logs = await logs_in(store)
    await store.close()
    return logs


async def logs_in(store: Store) -> Logs:
    rows = await store.sessions(limit=1000, archived=None)
    return {row.session_id: await store.events(row.session_id) for row in rows}


async def all_of(store: Store) -> list[object]:
    """Everything but positions and epochs, which go on from where they were."""
    rows = await store.sessions(limit=1000, archived=None)
    contents: list[object] = [[msgspec.structs.replace(row, position=0) for row in rows]]
    for name in NAMES:
        contents += [await store.events(name), await store.transcript(name, limit=1000)]
        contents += [await store.pending(name), await store.usage(name)]
        contents.append([await store.command(name, f"key {number}") for number in range(8)])
    contents.append(sorted(row.id for row in await store.outbox("topic", limit=1000)))
    contents += [await store.records(""), await store.unfinished()]
    contents.append([await store.blob(blob_hash(f"{name} 2".encode())) for name in NAMES])
    contents.append([await store.names_blob(name, LARGE.hash) for name in NAMES])
    return contents


def check(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def judge(path: Path, bridge: Bridge, logs: Logs) -> Salvaged:
    """Salvage it: whatever is kept is as it was, and whatever is not is report to be lost."""
    into = path.with_name("repaired.db")
    before = await bridge.to_thread(path.read_bytes)
    report = await bridge.to_thread(salvage, path, into)
    assert await bridge.to_thread(path.read_bytes) == before
    await bridge.to_thread(check, into)
    store = await SqliteStore.open(into, bridge)
    saved = await logs_in(store)
    cut = {session.session_id: session for session in report.cut}
    assert sorted(saved) == sorted([*report.complete, *cut])
    for name, log in saved.items():
        assert log == logs[name][: len(log)]
        if name in report.complete:
            assert len(log) == len(logs[name])
        else:
            lost = cut[name].lost
            assert cut[name].saved == len(log)
            assert lost is None or lost <= len(logs[name]) - len(log)
    unsaid = len(logs.keys() - saved.keys() - set(report.lost))
    assert report.unnamed + report.pages_lost >= (1 if unsaid else 0)
    if saved != logs:
        assert not report.is_complete
    # It is a store like any other.
    name = next(iter(saved), "new")
    facts = EventFactory(name, last_seq=len(saved.get(name, [])))
    epoch = await store.claim(name)
    await store.append(Commit(session_id=name, epoch=epoch, events=(facts.renamed("goes on"),)))
    await store.close()
    return report


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def root_of(path: Path, name: str) -> int:
    """Where the first page of a table or index begins."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        return (connection.execute(query, (name,)).fetchone()[0] - 1) * PAGE


# -- nothing lost


async def test_a_store_that_is_not_damaged_comes_out_the_same(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    logs = await make(path, bridge)
    report = await bridge.to_thread(salvage, path, tmp_path / "repaired.db")
    assert report.is_complete
    assert sorted(report.complete) == sorted(logs)
    old = await SqliteStore.open(path, bridge)
    new = await SqliteStore.open(tmp_path / "repaired.db", bridge)
    assert await all_of(new) == await all_of(old)
    (last,) = await old.sessions(limit=1)
    assert (await new.sessions())[-1].position > last.position
    assert await new.claim(NAMES[0]) > await old.claim(NAMES[0])
    await old.close()
    await new.close()


async def test_what_only_stands_in_the_log_of_a_killed_host_is_kept(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path, bridge)
    await fill(store, random.Random(1))
    logs = await logs_in(store)
    killed = tmp_path / "killed"
    killed.mkdir()
    for file in ("store.db", "store.db-wal"):
        shutil.copy(tmp_path / file, killed / file)
    await store.close()
    report = await judge(killed / "store.db", bridge, logs)
    assert sorted(report.complete) == NAMES
    # Of a log that is damaged itself, what stands before the damage.
    overwrite(killed / "store.db-wal", 200_000, b"\x00" * 100)
    (killed / "repaired.db").unlink()
    await judge(killed / "store.db", bridge, logs)


async def test_a_deleted_session_does_not_come_back(tmp_path: Path, bridge: Bridge) -> None:
    path = tmp_path / "store.db"
    await make(path, bridge)
    store = await SqliteStore.open(path, bridge)
    for name in NAMES[:6]:
        await store.delete(name)
    logs = await logs_in(store)
    await store.close()
    overwrite(path, 0, b"\x00" * PAGE)
    report = await judge(path, bridge, logs)
    assert sorted(report.complete) == NAMES[6:]


@pytest.mark.parametrize("name", ["sessions_by_change", "sqlite_autoindex_sessions_1"])
async def test_a_damaged_index_costs_nothing_but_itself(
    tmp_path: Path, bridge: Bridge, name: str
) -> None:
    path = tmp_path / "store.db"
    logs = await make(path, bridge)
    overwrite(path, root_of(path, name), random.Random(2).randbytes(PAGE))
    report = await judge(path, bridge, logs)
    assert sorted(report.complete) == NAMES
    assert report.pages_lost >= 1


async def test_a_file_without_its_first_page_is_read_all_the_same(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    logs = await make(path, bridge)
    overwrite(path, 0, b"\x00" * PAGE)
    report = await judge(path, bridge, logs)
    assert sorted(report.complete) == NAMES
    assert not report.is_complete


async def test_a_file_of_the_first_version_comes_out_as_one_of_today(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    await bridge.to_thread(make_first, path)
    report = await bridge.to_thread(salvage, path, tmp_path / "repaired.db")
    assert sorted(report.complete) == ["moved", "plain"]
    assert report.cut == (CutSession(session_id="failed", saved=3, lost=1),)
    store = await SqliteStore.open(tmp_path / "repaired.db", bridge)
    assert [row.session_id for row in await store.sessions()] == ["failed", "plain"]
    assert (await store.sessions(archived=True))[0].workspace == "/elsewhere"
    assert await store.claim("claimed") > 1
    await store.close()


# -- something lost


async def test_a_session_is_cut_at_the_first_fact_that_cannot_be_read(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    logs = await make(path, bridge)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        query = "UPDATE events SET body = ? WHERE seq = ? AND no ="
        find = " (SELECT no FROM sessions WHERE session_id = ?)"
        connection.execute(query + find, (b'{"type": "turn.st', 20, NAMES[4]))
        connection.execute(query + find, (b"\xff\xfe", 1, NAMES[5]))
        connection.execute("DELETE FROM events WHERE seq = 49 AND no =" + find, (NAMES[6],))
    report = await judge(path, bridge, logs)
    assert len(report.complete) == 9
    assert sorted(report.cut, key=lambda session: session.session_id) == [
        CutSession(session_id=NAMES[4], saved=19, lost=30),
        CutSession(session_id=NAMES[6], saved=48, lost=1),
    ]
    assert report.lost == (NAMES[5],)


async def test_a_session_that_the_list_lost_is_kept_and_its_end_is_not_vouched_for(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    logs = await make(path, bridge)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM sessions WHERE session_id = ?", (NAMES[0],))
    report = await judge(path, bridge, logs)
    assert report.cut == (CutSession(session_id=NAMES[0], saved=49, lost=None),)


async def test_a_blob_that_is_not_what_its_name_says_is_lost(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    await make(path, bridge)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE blobs SET data = x'00' WHERE hash = ?", (LARGE.hash,))
    into = tmp_path / "repaired.db"
    report = await bridge.to_thread(salvage, path, into)
    assert report.blobs_lost == (LARGE.hash,)
    assert len(report.complete) == len(NAMES)


def cut_to(part: float) -> Callable[[Path, random.Random], None]:
    def cut(path: Path, chance: random.Random) -> None:
        os.truncate(path, int(path.stat().st_size * part) - chance.randrange(PAGE))

    return cut


def garbage(times: int, length: int) -> Callable[[Path, random.Random], None]:
    def write(path: Path, chance: random.Random) -> None:
        size = path.stat().st_size
        for _ in range(times):
            overwrite(path, chance.randrange(size - length), chance.randbytes(length))

    return write


def pages(times: int, first: int = 0) -> Callable[[Path, random.Random], None]:
    def write(path: Path, chance: random.Random) -> None:
        count = path.stat().st_size // PAGE
        for number in [*range(first), *chance.sample(range(count), k=times)]:
            overwrite(path, number * PAGE, chance.choice([b"\0" * PAGE, chance.randbytes(PAGE)]))

    return write


@pytest.mark.timeout(120 + 3600 * SOAK)
@pytest.mark.parametrize(
    "damage",
    [
        *(cut_to(0.9), cut_to(0.5), cut_to(0.1), cut_to(0.02)),
        *(garbage(1, 16), garbage(5, 64), garbage(40, 20), garbage(3, 6000)),
        *(pages(1), pages(5), pages(40), pages(3, first=1), pages(2, first=8)),
    ],
)
@pytest.mark.parametrize("seed", range(100 if SOAK else 3))
async def test_wherever_the_damage_is_what_is_kept_is_right_and_what_is_lost_is_said(
    tmp_path: Path,
    bridge: Bridge,
    damage: Callable[[Path, random.Random], None],
    seed: int,
) -> None:
    path = tmp_path / "store.db"
    logs = await make(path, bridge, seed)
    await bridge.to_thread(damage, path, random.Random(seed))
    await judge(path, bridge, logs)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 10_000, b"these are the notes of somebody" * 1000, b"SQLite format 3"],
)
async def test_a_file_with_nothing_of_ours_gives_an_empty_store(
    tmp_path: Path, bridge: Bridge, content: bytes
) -> None:
    path = tmp_path / "store.db"
    await bridge.to_thread(path.write_bytes, content)
    report = await judge(path, bridge, {})
    assert (report.complete, report.cut, report.lost) == ((), (), ())


def test_nothing_is_overwritten_and_nothing_is_made_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no file"):
        salvage(tmp_path / "store.db", tmp_path / "repaired.db")
    for name in ("store.db", "repaired.db"):
        (tmp_path / name).touch()
    with pytest.raises(StoreError, match="choose another name"):
        salvage(tmp_path / "store.db", tmp_path / "repaired.db")
