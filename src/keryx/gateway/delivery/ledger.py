"""The table of outgoing messages: each is named by a key and sent in the order of its chat.

An attempt is written down before it is made (`sending`, `editing`). So after a crash it is known
which sends have an unknown fate. Edits can be repeated; sends cannot. Blocking code.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from keryx.decoding import json_decoder
from keryx.ports.platform import Address, Content

Action = Literal["status", "answer", "send", "edit"]
"""status: shows that a turn runs, and carries its Stop button. answer: replaces the status; without
one it is sent. send: a new message. edit: changes a message that was sent, or does nothing."""

State = Literal["waiting", "sending", "editing", "delivered", "uncertain", "refused", "dropped"]
"""uncertain: it may have arrived, and is not repeated. refused: the platform never takes it."""

_encode: Final = msgspec.json.encode
_content: Final = json_decoder(Content).decode
_address: Final = json_decoder(Address).decode


class NewMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message for the ledger. A key that is there already changes nothing."""

    key: str
    address: Address
    content: Content
    action: Action = "send"
    target: str | None = None
    reply_to: str | None = None


class LedgerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is to be sent. `target_id`: the message to change, on the platform."""

    place: int
    key: str
    action: Action
    state: State
    address: Address
    reply_to: str | None
    content: Content
    attempts: int
    unknown: int
    retry_at: float
    target_id: str | None


def add(
    connection: sqlite3.Connection, account: str, messages: Iterable[NewMessage], at: float
) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO outgoing"
        " (account, key, chat, action, target, address, reply_to, body, state, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'waiting', ?)",
        [
            (
                account,
                message.key,
                message.address.chat,
                message.action,
                message.target,
                _encode(message.address),
                message.reply_to,
                _encode(message.content),
                at,
            )
            for message in messages
        ],
    )


def chats_waiting(connection: sqlite3.Connection, account: str) -> list[str]:
    rows = connection.execute(
        "SELECT chat FROM outgoing WHERE account = ?"
        " AND state IN ('waiting', 'sending', 'editing') GROUP BY chat ORDER BY min(place)",
        (account,),
    )
    return [chat for (chat,) in rows]


def first_waiting(connection: sqlite3.Connection, account: str, chat: str) -> LedgerRow | None:
    """Return the next message of a chat."""
    row = connection.execute(
        "SELECT place, key, action, state, address, reply_to, body, attempts, unknown, retry_at,"
        " (SELECT message_id FROM outgoing AS target WHERE target.key = o.target)"
        " FROM outgoing AS o WHERE account = ? AND chat = ?"
        " AND state IN ('waiting', 'sending', 'editing') ORDER BY place LIMIT 1",
        (account, chat),
    ).fetchone()
    if row is None:
        return None
    return LedgerRow(
        place=row[0],
        key=row[1],
        action=row[2],
        state=row[3],
        address=_address(row[4]),
        reply_to=row[5],
        content=_content(row[6]),
        attempts=row[7],
        unknown=row[8],
        retry_at=row[9],
        target_id=row[10],
    )


def begin(connection: sqlite3.Connection, place: int, state: Literal["sending", "editing"]) -> None:
    """Write down that an attempt is made now."""
    connection.execute(
        "UPDATE outgoing SET state = ?, attempts = attempts + 1 WHERE place = ?", (state, place)
    )


def delivered(connection: sqlite3.Connection, place: int, message_id: str | None) -> None:
    connection.execute(
        "UPDATE outgoing SET state = 'delivered', message_id = ?, error = '' WHERE place = ?",
        (message_id, place),
    )


def retry(connection: sqlite3.Connection, place: int, at: float, error: str) -> None:
    connection.execute(
        "UPDATE outgoing SET state = 'waiting', retry_at = ?, error = ? WHERE place = ?",
        (at, error, place),
    )


def repeat(connection: sqlite3.Connection, place: int, content: Content, error: str) -> None:
    """Send a message of unknown fate once more, with a content that says so."""
    connection.execute(
        "UPDATE outgoing SET state = 'waiting', unknown = unknown + 1, body = ?, error = ?"
        " WHERE place = ?",
        (_encode(content), error, place),
    )


def reword(connection: sqlite3.Connection, place: int, content: Content) -> None:
    """Send another content instead, which certainly has not arrived."""
    connection.execute(
        "UPDATE outgoing SET state = 'waiting', body = ? WHERE place = ?", (_encode(content), place)
    )


def end(
    connection: sqlite3.Connection,
    place: int,
    state: Literal["uncertain", "refused", "dropped"],
    error: str,
) -> None:
    connection.execute(
        "UPDATE outgoing SET state = ?, error = ? WHERE place = ?", (state, error, place)
    )


def release(connection: sqlite3.Connection, place: int) -> None:
    """Let an answer be sent as a new message: the message that it should replace is gone."""
    connection.execute(
        "UPDATE outgoing SET state = 'waiting', target = NULL WHERE place = ?", (place,)
    )


def close_chat(connection: sqlite3.Connection, account: str, chat: str, until: float) -> None:
    """Remember that the platform asks for no call to this chat until then."""
    connection.execute(
        "INSERT OR REPLACE INTO closed_chats VALUES (?, ?, ?)", (account, chat, until)
    )


def closed_chats(
    connection: sqlite3.Connection, account: str, now: float
) -> list[tuple[str, float]]:
    """Return the chats that are closed, and until when."""
    query = "SELECT chat, until FROM closed_chats WHERE account = ? AND until > ?"
    return connection.execute(query, (account, now)).fetchall()


def message_id(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute(
        "SELECT message_id FROM outgoing WHERE key = ? AND state = 'delivered'", (key,)
    ).fetchone()
    return None if row is None else row[0]


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the number of messages by state."""
    return dict(connection.execute("SELECT state, count(*) FROM outgoing GROUP BY state"))
