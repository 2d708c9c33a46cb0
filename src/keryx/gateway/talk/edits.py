"""Messages that were taken, so that a person's later change of one is understood.

A change of a message that still waits in its session's queue replaces its text; a command before
the text stays the same one. A change of any other message only says that it comes too late.
Blocking code, except `planned`.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from keryx.app.host_client import HostClient
from keryx.errors import DeveloperMustActError
from keryx.gateway.talk.message_parts import text_of, without_command
from keryx.gateway.talk.plans import ChangePlan, Plan, SayPlan
from keryx.messages import Mode, well_formed
from keryx.ports.platform import ReceivedMessage
from keryx.ports.view import QueuedMessage
from keryx.sqlite_file import SqliteFile

TOO_LATE: Final = (
    "I have taken that message already, so the change has no effect. Send what you want to change "
    "as a new message."
)
OTHER_COMMAND: Final = (
    "The message still waits as it was: a change cannot turn it into another command. Send the "
    "command as a new message."
)
EMPTY: Final = "The message still waits as it was: without a text there is nothing to change it to."
WORDS: Final[dict[Mode, tuple[str, ...]]] = {"queue": ("", "queue"), "steer": ("steer",)}
"""The commands, or none, with which a message has this mode."""
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
    file: SqliteFile, host_client: HostClient, account: str, parts: Sequence[ReceivedMessage]
) -> Plan | None:
    """Return what a change does; None: the message was never taken, so it is a new one now."""
    message, (word, said) = parts[0], without_command(parts)
    taken_message = await file.read(partial(_taken_message, account, message))
    if taken_message is None:
        return None
    if taken_message.digest == _digest(message):
        return SayPlan()  # something else than the text has changed
    waiting = await _waiting_message(host_client, taken_message)
    if waiting is None:
        return SayPlan(text=TOO_LATE)
    session_id, queued = waiting
    text = text_of(said)
    if word not in WORDS.get(queued.mode, ()):
        return SayPlan(text=OTHER_COMMAND)
    if not text:
        return SayPlan(text=EMPTY)
    return ChangePlan(session_id=session_id, message_id=queued.message_id, text=well_formed(text))


async def _waiting_message(
    host_client: HostClient, taken_message: TakenMessage
) -> tuple[str, QueuedMessage] | None:
    """Return the session of a message, and the message in its queue; None: it waits no more."""
    session_id = taken_message.session_id
    if session_id is None:
        return None
    try:
        view = await host_client.view(session_id)
    except DeveloperMustActError:  # the session was deleted
        return None
    for queued in view.queue:
        if queued.message_id == taken_message.queued_id:
            return session_id, queued
    return None


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
