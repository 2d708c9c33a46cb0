"""The gateway's own SQLite file: updates taken in, messages to send, conversations and people.

A done update keeps only its key, to recognise it when it comes again.
"""

from __future__ import annotations

from typing import Final

from keryx.sqlite_file import Schema

FILE: Final = "gateway.db"

_FIRST: Final = """
CREATE TABLE updates (
  place INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, key TEXT NOT NULL,
  number INTEGER NOT NULL, lane TEXT NOT NULL, body BLOB NOT NULL, state TEXT NOT NULL,
  plan BLOB, attempts INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL, UNIQUE (source, key)
) STRICT;
CREATE INDEX updates_open ON updates (source, lane, number) WHERE state = 'waiting';
CREATE INDEX updates_by_age ON updates (at) WHERE state != 'waiting';
CREATE TABLE conversations (
  key TEXT PRIMARY KEY, session_id TEXT NOT NULL, at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE conversation_sessions (
  key TEXT NOT NULL, session_id TEXT NOT NULL, PRIMARY KEY (key, session_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE turns (
  turn_id TEXT PRIMARY KEY, account TEXT NOT NULL, session_id TEXT NOT NULL,
  after INTEGER NOT NULL, address BLOB NOT NULL, reply_to TEXT, is_open INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX turns_open ON turns (account, session_id) WHERE is_open;
CREATE TABLE outgoing (
  place INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT NOT NULL, key TEXT NOT NULL UNIQUE,
  chat TEXT NOT NULL, action TEXT NOT NULL, target TEXT, address BLOB NOT NULL, reply_to TEXT,
  body BLOB NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
  unknown INTEGER NOT NULL DEFAULT 0, retry_at REAL NOT NULL DEFAULT 0, message_id TEXT,
  error TEXT NOT NULL DEFAULT '', at REAL NOT NULL
) STRICT;
CREATE INDEX outgoing_open ON outgoing (account, chat, place)
  WHERE state IN ('waiting', 'sending', 'editing');
CREATE TABLE people (
  platform TEXT NOT NULL, person TEXT NOT NULL, name TEXT NOT NULL, at REAL NOT NULL,
  PRIMARY KEY (platform, person)
) STRICT, WITHOUT ROWID;
CREATE TABLE codes (
  digest BLOB PRIMARY KEY, expires REAL NOT NULL, attempts INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
"""
_SECOND: Final = """
ALTER TABLE turns ADD COLUMN person TEXT NOT NULL DEFAULT '';
CREATE TABLE spending (
  platform TEXT NOT NULL, person TEXT NOT NULL, day INTEGER NOT NULL,
  turns INTEGER NOT NULL, tokens INTEGER NOT NULL, PRIMARY KEY (platform, person, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE taken_messages (
  account TEXT NOT NULL, chat TEXT NOT NULL, message_id TEXT NOT NULL, session_id TEXT,
  queued_id TEXT, digest BLOB NOT NULL, at REAL NOT NULL, PRIMARY KEY (account, chat, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX taken_by_age ON taken_messages (at);
CREATE TABLE closed_chats (
  account TEXT NOT NULL, chat TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (account, chat)
) STRICT, WITHOUT ROWID;
"""

SCHEMA: Final = Schema(2, _FIRST + _SECOND, "the messages of the gateway", {2: _SECOND})
