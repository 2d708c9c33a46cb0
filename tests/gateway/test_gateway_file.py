"""What an earlier version stored in `gateway.db` stays, and is used."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from keryx.aio.bridge import Bridge
from keryx.aio.clock import RealClock
from keryx.aio.scope import Scope
from keryx.gateway import conversations, people
from keryx.gateway.gateway_file import FILE, SCHEMA
from keryx.sqlite_file import SqliteFile

FIRST_VERSION = """
CREATE TABLE turns (
  turn_id TEXT PRIMARY KEY, account TEXT NOT NULL, session_id TEXT NOT NULL,
  after INTEGER NOT NULL, address BLOB NOT NULL, reply_to TEXT, is_open INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO turns VALUES ('t', 'telegram:1', 's', 4, x'7b2263686174223a2237227d', NULL, 1);
PRAGMA user_version = 1;
"""


@pytest.mark.promise("chat.1")
async def test_a_file_of_the_first_version_opens_and_its_turns_go_on(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.executescript(FIRST_VERSION)
    scope = Scope("test", clock=RealClock())
    bridge = Bridge(scope, threads=2)
    file = SqliteFile(tmp_path / FILE, bridge, SCHEMA)
    try:
        turns = await file.read(lambda con: conversations.awaited_turns(con, "telegram:1", "s"))
        assert [(turn.turn_id, turn.address.chat, turn.person) for turn in turns] == [
            ("t", "7", "")
        ]
        used = people.Spending(turns=1, tokens=2)
        await file.write(lambda con: people.spend(con, "telegram", "7", used, 0.0))
        assert await file.read(lambda con: people.spent(con, "telegram", "7", 5.0)) == used
    finally:
        await file.close()
        await bridge.close()
        scope.close()
