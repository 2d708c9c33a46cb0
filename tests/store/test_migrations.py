"""The file's shape: every earlier version is brought up to date, a later one is left alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from keryx.aio.bridge import Bridge
from keryx.errors import StoreError, StoreTooNewError
from keryx.events import (
    LoggedEvent,
    MessageAccepted,
    SessionChanged,
    Usage,
    encode,
    type_of,
)
from keryx.ports.store import Commit
from keryx.store.sqlite import SqliteStore
from keryx.store.sqlite.migrations import MIGRATIONS, Migration, migrate, version_of
from keryx.testing.event_factory import EventFactory

# What a future might bring: a column with a default, then a table that is filled from another.
FUTURE: Sequence[Migration] = (
    ("CREATE TABLE events (seq INTEGER PRIMARY KEY, body TEXT)",),
    ("ALTER TABLE events ADD COLUMN type TEXT NOT NULL DEFAULT 'fact'",),
    (
        "CREATE TABLE lengths (seq INTEGER PRIMARY KEY, length INTEGER)",
        "INSERT INTO lengths SELECT seq, length(body) FROM events",
    ),
)


def make(path: Path, version: int, migrations: Sequence[Migration]) -> sqlite3.Connection:
    """A file as the version with that number made it."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    if version:
        migrate(connection, path, migrations[:version])
    return connection


@pytest.mark.parametrize("version", range(len(MIGRATIONS) + 1))
async def test_a_file_of_any_version_is_brought_up_to_date_and_used(
    tmp_path: Path, bridge: Bridge, version: int
) -> None:
    path = tmp_path / "store.db"
    connection = await bridge.to_thread(make, path, version, MIGRATIONS)
    connection.close()
    store = await SqliteStore.open(path, bridge)
    event = EventFactory().opened()
    await store.append(Commit(session_id="s", epoch=await store.claim("s"), events=(event,)))
    assert await store.events("s") == [event]
    await store.close()
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        assert await bridge.to_thread(version_of, connection, path) == len(MIGRATIONS)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_several_steps_at_once_keep_what_is_there(tmp_path: Path, version: int) -> None:
    path = tmp_path / "store.db"
    with closing(make(path, version, FUTURE)) as connection:
        connection.execute("INSERT INTO events (seq, body) VALUES (1, 'kept')")
        if version == 3:
            connection.execute("INSERT INTO lengths VALUES (1, 4)")
        migrate(connection, path, FUTURE)
        assert version_of(connection, path, FUTURE) == 3
        assert connection.execute("SELECT * FROM events").fetchall() == [(1, "kept", "fact")]
        assert connection.execute("SELECT * FROM lengths").fetchall() == [(1, 4)]


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(make(path, 1, FUTURE)) as connection:
        connection.execute("INSERT INTO events (seq, body) VALUES (1, 'kept')")
        broken = (*FUTURE[:2], ("CREATE TABLE good (x)", "CREATE TABLE events (twice)"))
        with pytest.raises(sqlite3.Error):
            migrate(connection, path, broken)
        assert version_of(connection, path, FUTURE) == 1
        assert connection.execute("SELECT * FROM events").fetchall() == [(1, "kept")]
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (1,)


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_file_of_a_newer_version_is_refused_and_not_touched(
    tmp_path: Path, bridge: Bridge, read_only: bool
) -> None:
    path = tmp_path / "store.db"
    with closing(await bridge.to_thread(make, path, len(MIGRATIONS), MIGRATIONS)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(StoreTooNewError) as refused:
        await SqliteStore.open(path, bridge, read_only=read_only)
    said = str(refused.value)
    assert str(path) in said
    assert "version 99" in said
    assert f"up to {len(MIGRATIONS)}" in said
    assert "update Keryx" in said
    assert path.read_bytes() == before


async def test_a_database_of_another_program_is_refused_and_not_touched(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        await SqliteStore.open(path, bridge)
    assert path.read_bytes() == before


async def test_an_earlier_version_cannot_be_read_without_changing_it(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    make(path, 0, MIGRATIONS).execute("VACUUM").connection.close()
    with pytest.raises(StoreError, match="open it once for writing"):
        await SqliteStore.open(path, bridge, read_only=True)


# -- from the first version to the second


def old_row(connection: sqlite3.Connection, no: int, *events: LoggedEvent) -> None:
    """A session with these facts as the first version wrote them."""
    last = events[-1]
    connection.execute(
        "INSERT INTO sessions VALUES (?, ?, 1, ?, ?, 'old title', 'idle', '', ?, ?)",
        (no, last.session_id, last.seq, 10 * no, events[0].at, last.at),
    )
    for event in events:
        connection.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?)",
            (no, event.seq, type_of(event), encode(event)),
        )


def make_first(path: Path) -> None:
    """A file of the first version: three sessions, one of them with a fact that is damaged."""
    with closing(make(path, 1, MIGRATIONS)) as connection:
        plain = EventFactory("plain")
        opened = plain.opened("old title")
        old_row(connection, 1, opened, plain.accepted(text="say zebra"), plain.delivered())
        moved = EventFactory("moved")
        changed = SessionChanged(
            session_id="moved",
            at=1.0,
            seq=2,
            by="you",
            model="other:two",
            workspace="/elsewhere",
            pinned=True,
            archived=True,
        )
        old_row(connection, 2, moved.opened("old title"), changed)
        failed = EventFactory("failed")
        opened = failed.opened("old title")
        turns = (failed.started(), failed.finished(outcome="failed"), failed.renamed("lost"))
        old_row(connection, 3, opened, *turns)
        connection.execute("UPDATE events SET body = x'00' WHERE no = 3 AND seq = 4")
        connection.execute("INSERT INTO transcript VALUES (1, 3, 't1', 2, '')")
        connection.execute("INSERT INTO sessions (no, session_id, epoch) VALUES (9, 'claimed', 1)")


async def test_sessions_of_the_first_version_come_out_as_if_they_were_written_today(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    await bridge.to_thread(make_first, path)
    store = await SqliteStore.open(path, bridge)
    rows = {row.session_id: row for row in await store.sessions(archived=None)}
    assert list(rows) == ["failed", "moved", "plain"]
    assert {(row.title, row.last_seq > 0) for row in rows.values()} == {("old title", True)}
    plain, moved, failed = rows["plain"], rows["moved"], rows["failed"]
    assert (plain.model, plain.workspace) == ("scripted:one", "/w")
    assert (plain.pinned, plain.archived, plain.failed) == (False, False, False)
    assert (moved.model, moved.workspace) == ("other:two", "/elsewhere")
    assert (moved.pinned, moved.archived, moved.failed) == (True, True, False)
    assert failed.failed
    assert [row.session_id for row in await store.sessions()] == ["failed", "plain"]
    assert [hit.session_id for hit in await store.search("zebra")] == ["plain"]
    facts = EventFactory("plain", last_seq=3)
    commit = Commit(session_id="plain", epoch=await store.claim("plain"), events=(facts.started(),))
    assert await store.append(commit) == 31
    assert (await store.sessions(limit=1))[0].session_id == "plain"
    await store.close()


# -- from the second version to the third


def make_second(path: Path) -> None:
    """A file of the second version: a turn that was resumed, and one that was undone."""
    with closing(make(path, 2, MIGRATIONS)) as connection:
        facts = EventFactory("old")
        used = Usage(input_tokens=7)
        log = (
            *(facts.opened(), facts.accepted(text="say zebra"), facts.changed("m1", "say gnu")),
            *(facts.started(), facts.delivered(), facts.resumed(), facts.step("one")),
            *(facts.replied("gnu", usage=used, cost=0.5), facts.finished()),
            *(facts.started("t2"), facts.replied("gone", turn_id="t2", usage=used)),
            *(facts.finished("t2"), facts.undone("t2")),
        )
        connection.execute(
            "INSERT INTO sessions (no, session_id, epoch, last_seq, position)"
            " VALUES (4, 'old', 1, ?, 1)",
            (log[-1].seq,),
        )
        connection.executemany(
            "INSERT INTO events VALUES (4, ?, ?, ?)",
            [(event.seq, type_of(event), encode(event)) for event in log],
        )
        connection.execute("INSERT INTO transcript VALUES (4, 5, 't1', 2, '3')")
        connection.execute("INSERT INTO usage VALUES (4, 'one', 1, 1, 1, 1, 1)")


async def test_transcripts_of_the_second_version_get_their_quiet_lines_and_usage_its_times(
    tmp_path: Path, bridge: Bridge
) -> None:
    path = tmp_path / "store.db"
    await bridge.to_thread(make_second, path)
    store = await SqliteStore.open(path, bridge)
    message, resumed, reply = [row.event for row in await store.transcript("old")]
    assert isinstance(message, MessageAccepted)
    assert (message.text, type_of(resumed), type_of(reply)) == (
        *("say gnu", "turn.resumed", "step.replied"),
    )
    (spent,) = await store.usage("old", since=1000.0 - 100.0)
    assert (spent.model, spent.input_tokens, spent.cost) == ("one", 14, None)
    assert await store.usage("old", since=1000.0 + 900.0) == []
    await store.close()
