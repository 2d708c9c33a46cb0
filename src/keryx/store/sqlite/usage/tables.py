"""Changes the tables of usage, in the transaction that appends to the log. Blocking code."""

from __future__ import annotations

import sqlite3
from typing import Final

from keryx.store.table_changes import Projection, ToolEntry, UsageEntry

CREATE: Final = (
    # cost: the known costs; unpriced: the number of requests whose cost is unknown.
    # Session number 0 stands for all deleted sessions.
    # timed: the number of requests whose time to the first token is known, and its sum.
    """CREATE TABLE usage (
        no INTEGER NOT NULL,
        model TEXT NOT NULL,
        purpose TEXT NOT NULL,
        quarter INTEGER NOT NULL,
        requests INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cached_tokens INTEGER NOT NULL,
        reasoning_tokens INTEGER NOT NULL,
        cost REAL NOT NULL,
        unpriced INTEGER NOT NULL,
        timed INTEGER NOT NULL DEFAULT 0,
        first_seconds REAL NOT NULL DEFAULT 0,
        PRIMARY KEY (no, model, purpose, quarter)
    ) WITHOUT ROWID""",
    "CREATE INDEX usage_by_time ON usage (quarter)",
    """CREATE TABLE tool_use (
        no INTEGER NOT NULL,
        tool TEXT NOT NULL,
        quarter INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        seconds REAL NOT NULL,
        PRIMARY KEY (no, tool, quarter)
    ) WITHOUT ROWID""",
)

CREATE_TURNS: Final = """CREATE TABLE turn_counts (
    no INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (no, quarter)
) WITHOUT ROWID"""

_ADD_USAGE: Final = (
    " ON CONFLICT DO UPDATE SET requests = requests + excluded.requests,"
    " input_tokens = input_tokens + excluded.input_tokens,"
    " output_tokens = output_tokens + excluded.output_tokens,"
    " cached_tokens = cached_tokens + excluded.cached_tokens,"
    " reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,"
    " cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced,"
    " timed = timed + excluded.timed, first_seconds = first_seconds + excluded.first_seconds"
)
_TIMES: Final = (("timed", "INTEGER"), ("first_seconds", "REAL"))
_ADD_CALLS: Final = (
    " ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,"
    " failed = failed + excluded.failed, seconds = seconds + excluded.seconds"
)


def add_times(connection: sqlite3.Connection) -> None:
    """Add the columns that a table of an older version lacks."""
    columns = {row[1] for row in connection.execute("PRAGMA table_info(usage)")}
    for name, kind in _TIMES:
        if name not in columns:
            connection.execute(f"ALTER TABLE usage ADD COLUMN {name} {kind} NOT NULL DEFAULT 0")


def add(connection: sqlite3.Connection, no: int, changes: Projection) -> None:
    """Add what the events of one commit used."""
    for usage in changes.usages:
        _add_usage(connection, no, usage)
    for call in changes.tools:
        _add_call(connection, no, call)


def add_turns(connection: sqlite3.Connection, no: int, changes: Projection) -> None:
    """Count the turns that ended in one commit."""
    for turn in changes.turns:
        connection.execute(
            "INSERT INTO turn_counts VALUES (?, ?, 1, ?)"
            " ON CONFLICT DO UPDATE SET turns = turns + 1, failed = failed + excluded.failed",
            (no, turn.quarter, int(turn.failed)),
        )


def move_to_deleted(connection: sqlite3.Connection, no: int) -> None:
    """Keep the sums of a session that is deleted, without its name."""
    connection.execute(
        "INSERT INTO usage SELECT 0, model, purpose, quarter, requests, input_tokens,"  # noqa: S608 (texts of ours)
        " output_tokens, cached_tokens, reasoning_tokens, cost, unpriced, timed, first_seconds"
        " FROM usage WHERE no = ?" + _ADD_USAGE,
        (no,),
    )
    connection.execute("DELETE FROM usage WHERE no = ?", (no,))
    connection.execute("DELETE FROM tool_use WHERE no = ?", (no,))
    connection.execute("DELETE FROM turn_counts WHERE no = ?", (no,))


def _add_usage(connection: sqlite3.Connection, no: int, entry: UsageEntry) -> None:
    connection.execute(
        "INSERT INTO usage VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)" + _ADD_USAGE,  # noqa: S608 (texts of ours)
        (
            *(no, entry.model, entry.purpose, entry.quarter),
            *(entry.usage.input_tokens, entry.usage.output_tokens),
            *(entry.usage.cached_tokens, entry.usage.reasoning_tokens),
            *(entry.cost or 0.0, int(entry.cost is None)),
            *(int(entry.first_token is not None), entry.first_token or 0.0),
        ),
    )


def _add_call(connection: sqlite3.Connection, no: int, entry: ToolEntry) -> None:
    connection.execute(
        "INSERT INTO tool_use VALUES (?, ?, ?, 1, ?, ?)" + _ADD_CALLS,  # noqa: S608 (texts of ours)
        (no, entry.tool, entry.quarter, int(entry.failed), entry.seconds),
    )
