"""The table of updates: what platforms delivered and what is still to be handled. Blocking code.

An update is a member of a set, by its source and its key: one that comes again changes nothing,
whatever its number is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from keryx.ports.platform import Update

REMEMBERED: Final = 3 * 24 * 3600.0
"""Seconds for which a handled update is recognised; platforms repeat one for a day at most."""


class WaitingUpdate(msgspec.Struct, frozen=True):
    """An update that is to be handled. `plan` is what was decided about it before a crash."""

    place: int
    key: str
    number: int
    lane: str
    body: bytes
    plan: bytes | None
    attempts: int


def store(
    connection: sqlite3.Connection, source: str, updates: Sequence[Update], at: float
) -> set[str]:
    """Add updates; return the lanes that have new ones."""
    lanes: set[str] = set()
    for update in updates:
        cursor = connection.execute(
            "INSERT OR IGNORE INTO updates (source, key, number, lane, body, state, at)"
            " VALUES (?, ?, ?, ?, ?, 'waiting', ?)",
            (source, update.key, update.number, update.lane, update.body, at),
        )
        if cursor.rowcount:
            lanes.add(update.lane)
    connection.execute("DELETE FROM updates WHERE state = 'done' AND at < ?", (at - REMEMBERED,))
    return lanes


def lanes_waiting(connection: sqlite3.Connection, source: str) -> list[str]:
    rows = connection.execute(
        "SELECT DISTINCT lane FROM updates WHERE source = ? AND state = 'waiting'", (source,)
    )
    return [lane for (lane,) in rows]


def waiting(
    connection: sqlite3.Connection, source: str, lane: str, limit: int = 1
) -> list[WaitingUpdate]:
    """Return the next updates of a lane, in the platform's order."""
    rows = connection.execute(
        "SELECT place, key, number, lane, body, plan, attempts FROM updates"
        " WHERE source = ? AND lane = ? AND state = 'waiting' ORDER BY number, place LIMIT ?",
        (source, lane, limit),
    )
    return [WaitingUpdate(*row) for row in rows]


def set_plan(connection: sqlite3.Connection, place: int, plan: bytes) -> None:
    """Store what will be done about the update, before it is done."""
    connection.execute("UPDATE updates SET plan = ? WHERE place = ?", (plan, place))


def set_first_plan(connection: sqlite3.Connection, place: int, plan: bytes) -> bytes:
    """Store what will be done about the update, unless that is decided; return what holds."""
    earlier_plan = state_of(connection, place)[1]
    if earlier_plan is None:
        set_plan(connection, place, plan)
    return earlier_plan or plan


def state_of(connection: sqlite3.Connection, place: int) -> tuple[str, bytes | None]:
    """Return the state of an update, and its plan."""
    return connection.execute(
        "SELECT state, plan FROM updates WHERE place = ?", (place,)
    ).fetchone()


def waiting_before(
    connection: sqlite3.Connection, source: str, update: WaitingUpdate, chat: str
) -> list[WaitingUpdate]:
    """Return the updates of a chat that came before this one and are not handled."""
    lanes = f"{chat}/"
    rows = connection.execute(
        "SELECT place, key, number, lane, body, plan, attempts FROM updates"
        " WHERE source = ? AND state = 'waiting' AND substr(lane, 1, ?) = ?"
        " AND (number, place) < (?, ?) ORDER BY number, place",
        (source, len(lanes), lanes, update.number, update.place),
    )
    return [WaitingUpdate(*row) for row in rows]


def finish(connection: sqlite3.Connection, places: Sequence[int]) -> None:
    """Mark updates as handled, and forget what they said."""
    connection.executemany(
        "UPDATE updates SET state = 'done', body = x'', plan = NULL WHERE place = ?",
        [(place,) for place in places],
    )


def count_failure(connection: sqlite3.Connection, place: int, error: str) -> None:
    connection.execute(
        "UPDATE updates SET attempts = attempts + 1, error = ? WHERE place = ?", (error, place)
    )


def give_up(connection: sqlite3.Connection, place: int, error: str) -> None:
    """Keep the update as one that could not be handled; the rest of its lane goes on."""
    connection.execute(
        "UPDATE updates SET state = 'dead', error = ? WHERE place = ?", (error, place)
    )


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the number of updates by state."""
    return dict(connection.execute("SELECT state, count(*) FROM updates GROUP BY state"))
