"""The database of hermes-agent: read while it is written, whole or not at all, and not believed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from keryx import IN_MEMORY, Keryx
from keryx.app.portable.formats import read_file
from keryx.app.portable.importing import import_file
from keryx.errors import UserMustActError
from keryx.models.scripted import ScriptedModel, ScriptedReply
from tests.app.hosts import check_log
from tests.app.portable.test_foreign import MESSAGES, dots

pytestmark = pytest.mark.promise("model.6")

SCHEMA: Final = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT,
    system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL,
    end_reason TEXT, message_count INTEGER DEFAULT 0, cwd TEXT, title TEXT,
    archived INTEGER NOT NULL DEFAULT 0, FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT,
    timestamp REAL NOT NULL, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT,
    reasoning_details TEXT, observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1,
    compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT
);
CREATE VIRTUAL TABLE messages_fts USING fts5(content, content=messages, content_rowid=id);
"""
"""The columns of version 0.19 that matter here, and its index."""


def write(path: Path, *, wal: bool = False) -> sqlite3.Connection:
    """Write a database with two sessions; return its connection, as the running program has it."""
    database = sqlite3.connect(path)
    if wal:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA wal_autocheckpoint = 0")
    database.executescript(SCHEMA)
    for session_id, title, at in (("b", "Dots", 2.5), ("a", "Empty", 1.5), ("c", None, 1.0)):
        add_session(database, session_id, title, at)
    for message in MESSAGES:
        add(database, "b", message)
    add(database, "b", {"role": "user", "content": "Rewound"}, active=0)
    add(database, "a", {"role": "session_meta", "content": "{}"})
    add(database, "c", {"role": "user", "content": "Hello"})
    database.commit()
    return database


def add_session(
    database: sqlite3.Connection, session_id: str, title: str | None, at: float
) -> None:
    database.execute(
        "INSERT INTO sessions (id, source, model, started_at, title) VALUES (?, 'cli', 'm', ?, ?)",
        (session_id, at, title),
    )


def add(
    database: sqlite3.Connection, session_id: str, message: dict[str, Any], active: int = 1
) -> None:
    content = message["content"]
    row = {
        "session_id": session_id,
        "role": message["role"],
        "content": f"\0json:{json.dumps(content)}" if isinstance(content, list) else content,
        "tool_call_id": message.get("tool_call_id"),
        "tool_calls": json.dumps(calls) if (calls := message.get("tool_calls")) else None,
        # Clocks step back: the order is that of the ids.
        "timestamp": 1.0,
        "reasoning": message.get("reasoning"),
        "active": active,
    }
    marks = ", ".join("?" * len(row))
    columns = ", ".join(row)
    database.execute(f"INSERT INTO messages ({columns}) VALUES ({marks})", [*row.values()])


@pytest.fixture(params=["ended", "running"])
def state(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A database whose program has ended, or is running with the newest rows in a second file."""
    path = tmp_path / "state.db"
    is_running: bool = request.param == "running"
    with closing(write(path, wal=is_running)) as database:
        if not is_running:
            database.close()
        assert (tmp_path / "state.db-wal").exists() == is_running
        before = path.read_bytes()
        yield path
        assert path.read_bytes() == before


async def test_all_sessions_of_a_database_are_imported_and_go_on(state: Path) -> None:
    model = ScriptedModel(lambda _: ScriptedReply(text="Going on."), sees_images=True)
    async with Keryx(home=IN_MEMORY, model=model, workspace=state.parent) as app:
        imported = await import_file(app, state, str(state.parent))
        rows = [await app.store.session(session.session_id) for session in imported]
        assert [row.title for row in rows if row is not None] == ["Hello", "Dots"]
        session = await app.open(imported[-1].session_id)
        assert (await (await session.send("Go on")).result()).text == "Going on."
        check_log(await app.store.events(session.session_id))
    dots(model)


def test_an_uploaded_database_in_wal_mode_is_read(tmp_path: Path) -> None:
    write(tmp_path / "state.db", wal=True).close()
    data = (tmp_path / "state.db").read_bytes()
    assert data[18] == 2, "the file says that a second one may exist"
    assert len(read_file(data, "state.db")) == 2


def test_a_database_of_an_older_version_has_fewer_columns(tmp_path: Path) -> None:
    database = write(tmp_path / "state.db")
    for column in ("active", "reasoning", "reasoning_content"):
        database.execute(f"ALTER TABLE messages DROP COLUMN {column}")
    database.execute("ALTER TABLE sessions DROP COLUMN title")
    database.commit()
    database.close()
    assert len(read_file((tmp_path / "state.db").read_bytes(), "state.db")) == 2


ENDLESS: Final = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
SELECT i AS id, 'b' AS session_id, 'user' AS role, 'x' AS content FROM n
"""
LARGE: Final = "id, session_id, role, content AS (hex(zeroblob(900000000)))"
BROKEN: Final = {
    "tables of another program": ("DROP TABLE messages", "not one of hermes-agent"),
    "a view that never ends": (
        f"DROP TABLE messages; CREATE VIEW messages AS {ENDLESS}",
        "not one of hermes-agent",
    ),
    "a column that is computed": (
        f"DROP TABLE messages; CREATE TABLE messages ({LARGE})",
        "not one of hermes-agent",
    ),
    "no messages": ("DELETE FROM messages", "none of its sessions has a message"),
    "calls that are no JSON": (
        "UPDATE messages SET tool_calls = '[' WHERE tool_calls IS NOT NULL",
        r"session b: messages\[2\].tool_calls is not valid JSON",
    ),
    "contents that are no JSON": (
        "UPDATE messages SET content = char(0) || 'json:[' WHERE session_id = 'b'",
        r"session b: messages\[0\].content is not valid JSON",
    ),
    "a text that is no UTF-8": (
        "UPDATE messages SET content = CAST(x'ff' AS TEXT)",
        "the table messages cannot be read",
    ),
    "bytes as content": ("UPDATE messages SET content = x'00'", "content must be a list"),
    "another role": ("UPDATE messages SET role = 'ghost'", "none of its sessions"),
    "a result without its call": (
        "DELETE FROM messages WHERE tool_calls IS NOT NULL",
        r"session b: messages\[\d\] is the result of the call",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_database_that_cannot_be_read_is_refused_with_the_place(
    name: str, tmp_path: Path
) -> None:
    script, reason = BROKEN[name]
    database = write(tmp_path / "state.db")
    database.executescript(script)
    database.close()
    with pytest.raises(UserMustActError, match=reason) as caught:
        read_file((tmp_path / "state.db").read_bytes(), "state.db")
    assert "nothing was imported" in str(caught.value)


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "state.db").close()
    data = bytearray((tmp_path / "state.db").read_bytes())
    page = int.from_bytes(data[16:18], "big")
    data[page : 3 * page] = b"\xff" * (2 * page)
    with pytest.raises(UserMustActError, match="cannot be read"):
        read_file(bytes(data), "state.db")


async def test_a_database_that_is_half_written_is_refused(tmp_path: Path) -> None:
    """A part of a transaction is in the file already: nobody knows if it will stay."""
    path = tmp_path / "state.db"
    async with Keryx(home=IN_MEMORY, model=ScriptedModel([]), workspace=tmp_path) as app:
        with closing(write(path)) as database:
            database.execute("PRAGMA cache_size = 1")
            database.execute("BEGIN IMMEDIATE")
            for number in range(2_000):
                add(database, "b", {"role": "user", "content": f"never said {number}"})
            assert b"never said" in path.read_bytes()
            with pytest.raises(UserMustActError, match=r"locked; close the program .* try again"):
                await import_file(app, path, str(tmp_path))
            database.rollback()
            assert len(await import_file(app, path, str(tmp_path))) == 2
