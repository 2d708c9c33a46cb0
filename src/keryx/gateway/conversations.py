"""The tables of conversations: which session a chat talks to, and which turns it waits for.

Blocking code. The id of a session is stored before the session is created.
"""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from keryx.decoding import json_decoder
from keryx.ids import new_id
from keryx.ports.platform import Address

_address: Final = json_decoder(Address).decode


class AwaitedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn whose answer belongs into a chat. Its events follow the fact `after`."""

    turn_id: str
    session_id: str
    after: int
    address: Address
    reply_to: str | None
    person: str = ""
    """Who started it, and whose budget it counts against."""


def current(connection: sqlite3.Connection, key: str) -> str | None:
    """Return the session of a conversation, if it has one."""
    row = connection.execute(
        "SELECT session_id FROM conversations WHERE key = ?", (key,)
    ).fetchone()
    return None if row is None else row[0]


def session_of(connection: sqlite3.Connection, key: str, at: float) -> str:
    """Return the session of a conversation; a conversation without one gets a new id."""
    if (session_id := current(connection, key)) is not None:
        return session_id
    session_id = new_id("s")
    switch(connection, key, session_id, at)
    return session_id


def switch(connection: sqlite3.Connection, key: str, session_id: str, at: float) -> None:
    """Let the conversation go on in this session."""
    connection.execute(
        "INSERT OR REPLACE INTO conversations VALUES (?, ?, ?)", (key, session_id, at)
    )
    connection.execute(
        "INSERT OR IGNORE INTO conversation_sessions VALUES (?, ?)", (key, session_id)
    )


def replace(connection: sqlite3.Connection, key: str, session_id: str, at: float) -> str:
    """Give the conversation a new session if it still has this one; return the one it has."""
    if (other := current(connection, key)) not in (None, session_id):
        return other or session_id
    new_session_id = new_id("s")
    switch(connection, key, new_session_id, at)
    return new_session_id


def sessions_of(connection: sqlite3.Connection, key: str) -> set[str]:
    """Return all sessions that this conversation had."""
    rows = connection.execute("SELECT session_id FROM conversation_sessions WHERE key = ?", (key,))
    return {session_id for (session_id,) in rows}


def await_turn(connection: sqlite3.Connection, account: str, turn: AwaitedTurn) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO turns"
        " (turn_id, account, session_id, after, address, reply_to, is_open, person)"
        " VALUES (?, ?, ?, ?, ?, ?, 1, ?)",
        (
            turn.turn_id,
            account,
            turn.session_id,
            turn.after,
            msgspec.json.encode(turn.address),
            turn.reply_to,
            turn.person,
        ),
    )


def awaited_sessions(connection: sqlite3.Connection, account: str) -> list[str]:
    rows = connection.execute(
        "SELECT DISTINCT session_id FROM turns WHERE account = ? AND is_open", (account,)
    )
    return [session_id for (session_id,) in rows]


def awaited_turns(
    connection: sqlite3.Connection, account: str, session_id: str | None = None
) -> list[AwaitedTurn]:
    """Return the turns of a session, or of all, whose answers are still to come."""
    rows = connection.execute(
        "SELECT turn_id, session_id, after, address, reply_to, person FROM turns"
        " WHERE account = ? AND session_id = ifnull(?, session_id) AND is_open",
        (account, session_id),
    )
    return [
        AwaitedTurn(
            turn_id=turn_id,
            session_id=session,
            after=after,
            address=_address(address),
            reply_to=reply_to,
            person=person,
        )
        for turn_id, session, after, address, reply_to, person in rows
    ]


def close_turn(connection: sqlite3.Connection, turn_id: str) -> bool:
    """Wait for this turn no more. False: it was closed before."""
    query = "UPDATE turns SET is_open = 0 WHERE turn_id = ? AND is_open"
    return connection.execute(query, (turn_id,)).rowcount > 0


def chat_of_turn(connection: sqlite3.Connection, turn_id: str) -> tuple[str, Address] | None:
    """Return the session and the address of a turn that a chat started."""
    row = connection.execute(
        "SELECT session_id, address FROM turns WHERE turn_id = ?", (turn_id,)
    ).fetchone()
    return None if row is None else (row[0], _address(row[1]))
