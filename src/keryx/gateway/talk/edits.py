"""Messages that were taken, so that a person's later change of one is understood.

A change of a message that still waits in its session's queue replaces its text. A change of any
other message only says that it comes too late. Blocking code, except `planned`.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from keryx.gateway.talk.plans import ChangePlan, Plan, SayPlan
from keryx.messages import well_formed
from keryx.ports.platform import ReceivedMessage
from keryx.sqlite_file import SqliteFile

TOO_LATE: Final = (
    "I have taken that message already, so the change has no effect. Send what you want to change "
    "as a new message."
)
CHANGED: Final = "The message still waited; it is changed."
REMEMBERED: Final = 3 * 24 * 3600.0
"""Seconds. Telegram lets people change a message for two days."""


class TakenMessage(msgspec.Struct, frozen=True):
    """A message that was taken. `queued_id`: its id in the session, if it is one message there."""

    session_id: str | None
    queued_id: str | None
    digest: bytes


def remember(
    connection: sqlite3.Connection,
    account: str,
    parts: Sequence[ReceivedMessage],
    queued: tuple[str, str] | None,
    at: float,
) -> None:
    """Remember messages. `queued`: the session and the id there; None if they queued nothing."""
    # What several messages became together cannot be replaced by one of them.
    session_id, queued_id = queued if queued is not None and len(parts) == 1 else (None, None)
    connection.executemany(
        "INSERT OR REPLACE INTO taken_messages VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (account, part.address.chat, part.message_id, session_id, queued_id, _digest(part), at)
            for part in parts
        ],
    )
    connection.execute("DELETE FROM taken_messages WHERE at < ?", (at - REMEMBERED,))


def remember_change(connection: sqlite3.Connection, account: str, message: ReceivedMessage) -> None:
    connection.execute(
        "UPDATE taken_messages SET digest = ? WHERE account = ? AND chat = ? AND message_id = ?",
        (_digest(message), account, message.address.chat, message.message_id),
    )


async def planned(
    file: SqliteFile, account: str, message: ReceivedMessage, text: str
) -> Plan | None:
    """Return what a change does; None: the message was never taken, so it is a new one now."""
    taken_message = await file.read(partial(_taken_message, account, message))
    if taken_message is None:
        return None
    if taken_message.digest == _digest(message):
        return SayPlan()  # something else than the text has changed
    if taken_message.session_id is None or taken_message.queued_id is None or not text:
        return SayPlan(text=TOO_LATE)
    return ChangePlan(
        session_id=taken_message.session_id,
        message_id=taken_message.queued_id,
        text=well_formed(text),
    )


def _taken_message(
    account: str, message: ReceivedMessage, connection: sqlite3.Connection
) -> TakenMessage | None:
    row = connection.execute(
        "SELECT session_id, queued_id, digest FROM taken_messages"
        " WHERE account = ? AND chat = ? AND message_id = ?",
        (account, message.address.chat, message.message_id),
    ).fetchone()
    return None if row is None else TakenMessage(*row)


def _digest(message: ReceivedMessage) -> bytes:
    return hashlib.sha256(message.text.encode(errors="surrogatepass")).digest()
