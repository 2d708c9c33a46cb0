"""What the server has stored: a file of SQLite, which survives the process."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS workspaces (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS peers (workspace TEXT, id TEXT, config TEXT, UNIQUE (workspace, id));
CREATE TABLE IF NOT EXISTS sessions (workspace TEXT, id TEXT, active INTEGER,
  UNIQUE (workspace, id));
CREATE TABLE IF NOT EXISTS messages (no INTEGER PRIMARY KEY, id TEXT, workspace TEXT, session TEXT,
  peer TEXT, content TEXT, metadata TEXT, created_at TEXT);
CREATE INDEX IF NOT EXISTS messages_by_session ON messages (workspace, session);
CREATE TABLE IF NOT EXISTS conclusions (no INTEGER PRIMARY KEY, id TEXT, workspace TEXT,
  session TEXT, observer TEXT, observed TEXT, content TEXT, level TEXT, created_at TEXT);
CREATE INDEX IF NOT EXISTS conclusions_by_session ON conclusions (workspace, session);
"""
MESSAGE_COLUMNS = {"session_id": "session", "peer_id": "peer", "metadata": "metadata"}
CONCLUSION_COLUMNS = {
    "session_id": "session",
    "observer_id": "observer",
    "observed_id": "observed",
    "level": "level",
    "id": "id",
}


class RefusedError(Exception):
    """An answer with an error."""

    def __init__(self, status: int, detail: object) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail


def now() -> str:
    return datetime.now(UTC).isoformat()


class State:
    """The tables. Every change is one transaction."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.executescript(SCHEMA)

    def clear(self) -> None:
        for table in ("workspaces", "peers", "sessions", "messages", "conclusions"):
            self.db.execute(f"DELETE FROM {table}")

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in self.db.execute(query, values)]

    def create(self, table: str, **columns: Any) -> bool:
        """Create a row unless it is there; return whether it was created."""
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        cursor = self.db.execute(
            f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", (*columns.values(),)
        )
        return bool(cursor.rowcount)

    def add(self, table: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add rows in one transaction; return them with their ids and times."""
        created = now()  # one time for one transaction
        added = [
            {"id": secrets.token_urlsafe(16)[:21], "created_at": created, **row} for row in rows
        ]
        self.db.execute("BEGIN")
        for row in added:
            row["created_at"] = row["created_at"] or created
            self.create(table, **row)
        self.db.execute("COMMIT")
        return added

    def require_workspace(self, workspace: str) -> None:
        if not self.rows("SELECT id FROM workspaces WHERE id = ?", workspace):
            raise RefusedError(404, f"Workspace {workspace} not found")

    def require_peers(self, workspace: str, names: Iterable[str]) -> None:
        for name in set(names):
            if not self.rows(
                "SELECT id FROM peers WHERE workspace = ? AND id = ?", workspace, name
            ):
                raise RefusedError(404, f"Peer {name} not found in workspace {workspace}")

    def open_session(self, workspace: str, name: str, peers: Iterable[str]) -> bool:
        """Get or create a session and its peers; refuse one that is being deleted."""
        for peer in peers:
            self.create("peers", workspace=workspace, id=peer, config="{}")
        if self.create("sessions", workspace=workspace, id=name, active=1):
            return True
        self.require_session(workspace, name)
        return False

    def require_session(self, workspace: str, name: str) -> None:
        query = "SELECT id FROM sessions WHERE workspace = ? AND id = ? AND active = 1"
        if not self.rows(query, workspace, name):
            raise RefusedError(404, f"Session {name} not found in workspace {workspace}")


def filtered(
    rows: list[dict[str, Any]], filters: dict[str, Any] | None, columns: dict[str, str]
) -> list[dict[str, Any]]:
    for key, condition in (filters or {}).items():
        if key not in columns:
            raise RefusedError(422, f"Column '{key}' is not allowed to be filtered on")
        if columns[key] == "metadata":
            rows = [row for row in rows if _has(json.loads(row["metadata"]), condition)]
        else:
            rows = [row for row in rows if _matches(row[columns[key]], condition)]
    return rows


def _has(metadata: dict[str, Any], condition: object) -> bool:
    if not isinstance(condition, dict):
        raise RefusedError(422, "a JSONB column takes an object")
    return all(_matches(metadata.get(str(key)), value) for key, value in condition.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _matches(value: Any, condition: Any) -> bool:
    if condition == "*":
        return True
    if isinstance(condition, list):
        return value in condition
    if isinstance(condition, dict):
        if set(condition) != {"in"} or not isinstance(condition["in"], list):  # pyright: ignore[reportUnknownArgumentType]
            raise RefusedError(422, f"unsupported operator(s) {sorted(condition)}")  # pyright: ignore[reportUnknownArgumentType]
        return value in condition["in"]
    return value == condition


def nearest(rows: list[dict[str, Any]], question: str, limit: int) -> list[dict[str, Any]]:
    """Return the rows that share most words with the question; a vector index returns all too."""
    words = set(re.findall(r"\w+", question.casefold()))

    def shared(row: dict[str, Any]) -> int:
        return len(words & set(re.findall(r"\w+", row["content"].casefold())))

    return sorted(rows, key=lambda row: (-shared(row), -row["no"]))[:limit]
