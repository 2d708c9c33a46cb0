"""Reads the tables of usage. Blocking code."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeVar

from keryx.ports.usage import Spent, ToolUse, TurnCount, UsageCell, UsageRow
from keryx.store.sqlite.readers import Readers, snapshot
from keryx.store.table_changes import QUARTER

_FAMILY: Final = (
    "WITH RECURSIVE family(no, id) AS (SELECT no, session_id FROM sessions WHERE session_id=?1"
    " UNION SELECT s.no, s.session_id FROM sessions s JOIN family ON s.parent = family.id) "
)
"""A session and its child agents, theirs and so on."""
_WITHIN: Final = (
    " WHERE (?1 IS NULL OR no IN (SELECT no FROM family)) AND quarter >= ?2 AND quarter < ?3"
)
_FOREVER: Final = 1 << 40

Cell = TypeVar("Cell", UsageRow, UsageCell, ToolUse, TurnCount)


def _within(session_id: str | None, since: float | None, until: float | None) -> tuple[object, ...]:
    first = 0 if since is None else int(since // QUARTER)
    return session_id, first, _FOREVER if until is None else -int(-until // QUARTER)


def _cell(kind: type[Cell], row: Sequence[Any]) -> Cell:
    """Return a row of a table; its columns have the types of the fields, and their order."""
    fields = dict(zip(kind.__struct_fields__, row, strict=True))
    if "at" in fields:
        fields["at"] = float(fields["at"] * QUARTER)
    return kind(**fields)


def usage(
    connection: sqlite3.Connection, session_id: str | None, since: float | None
) -> list[UsageRow]:
    # One unknown cost makes the sum unknown: a sum of the others would look complete.
    rows = connection.execute(
        _FAMILY  # noqa: S608 (texts of ours)
        + "SELECT s.session_id, u.model, sum(input_tokens), sum(output_tokens), sum(cached_tokens),"
        " sum(reasoning_tokens), CASE WHEN sum(unpriced) = 0 THEN sum(cost) END"
        " FROM usage u JOIN sessions s USING (no)"
        + _WITHIN
        + " GROUP BY no, u.model ORDER BY no, u.model",
        _within(session_id, since, None),
    )
    return [_cell(UsageRow, row) for row in rows]


def usage_cells(
    connection: sqlite3.Connection,
    session_id: str | None,
    since: float | None,
    until: float | None,
) -> list[UsageCell]:
    rows = connection.execute(
        _FAMILY  # noqa: S608 (texts of ours)
        + "SELECT coalesce(s.session_id, ''), u.model, u.purpose, u.quarter, requests,"
        " input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, unpriced,"
        " timed, first_seconds FROM usage u LEFT JOIN sessions s USING (no)"
        + _WITHIN
        + " ORDER BY no, u.model, u.purpose, u.quarter",
        _within(session_id, since, until),
    )
    return [_cell(UsageCell, row) for row in rows]


def tool_use(
    connection: sqlite3.Connection,
    session_id: str | None,
    since: float | None,
    until: float | None,
) -> list[ToolUse]:
    rows = connection.execute(
        _FAMILY  # noqa: S608 (texts of ours)
        + "SELECT s.session_id, u.tool, u.quarter, calls, failed, seconds"
        " FROM tool_use u JOIN sessions s USING (no)" + _WITHIN + " ORDER BY no, u.tool, u.quarter",
        _within(session_id, since, until),
    )
    return [_cell(ToolUse, row) for row in rows]


def turn_counts(
    connection: sqlite3.Connection,
    session_id: str | None,
    since: float | None,
    until: float | None,
) -> list[TurnCount]:
    rows = connection.execute(
        _FAMILY  # noqa: S608 (texts of ours)
        + "SELECT s.session_id, u.quarter, turns, failed"
        " FROM turn_counts u JOIN sessions s USING (no)" + _WITHIN + " ORDER BY no, u.quarter",
        _within(session_id, since, until),
    )
    return [_cell(TurnCount, row) for row in rows]


def spent(
    connection: sqlite3.Connection,
    session_id: str | None,
    since: float | None,
    logs: Sequence[str],
) -> Spent:
    with snapshot(connection):
        cost, tokens, unpriced = connection.execute(
            _FAMILY  # noqa: S608 (texts of ours)
            + "SELECT total(cost), coalesce(sum(input_tokens + output_tokens), 0),"
            " coalesce(sum(unpriced), 0) FROM usage" + _WITHIN,
            _within(session_id, since, None),
        ).fetchone()
        last = [
            connection.execute(
                "SELECT session_id, last_seq FROM sessions WHERE session_id = ?", (log,)
            ).fetchone()
            for log in logs
        ]
    ends = {str(row[0]): int(row[1]) for row in last if row is not None}
    return Spent(cost=cost, tokens=tokens, unpriced=unpriced, logs=ends)


class SqliteUsage:
    """The sums of a store in a SQLite file."""

    _readers: Readers

    async def usage(
        self, session_id: str | None = None, *, since: float | None = None
    ) -> list[UsageRow]:
        return await self._readers.submit(partial(usage, session_id=session_id, since=since))

    async def usage_cells(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> list[UsageCell]:
        return await self._readers.submit(
            partial(usage_cells, session_id=session_id, since=since, until=until)
        )

    async def tool_use(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> list[ToolUse]:
        return await self._readers.submit(
            partial(tool_use, session_id=session_id, since=since, until=until)
        )

    async def turn_counts(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> list[TurnCount]:
        return await self._readers.submit(
            partial(turn_counts, session_id=session_id, since=since, until=until)
        )

    async def spent(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        logs: Sequence[str] = (),
    ) -> Spent:
        return await self._readers.submit(
            partial(spent, session_id=session_id, since=since, logs=logs)
        )
