"""Reads the database of hermes-agent (`state.db`): every session in it, as if it were exported."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

import msgspec

from keryx.app.portable.foreign import hermes
from keryx.app.portable.foreign.message_lists import Conversation
from keryx.store.foreign_database import ForeignDatabase

_SESSION: Final = ("id", "title", "model", "started_at")
_MESSAGE: Final = (
    *("role", "content", "tool_call_id", "tool_calls", "reasoning", "reasoning_content"),
)
_JSON_MARK: Final = "\0json:"
"""What a content begins with that is not a text."""
_SHOWN_ROLES: Final = ("user", "assistant")


def read_database(data: bytes) -> list[Conversation]:
    """Return the sessions, the oldest first. `ValueError` names what cannot be read, and where.

    Messages that a person took back are left out, and sessions without a message.
    """
    with closing(ForeignDatabase(data)) as database:
        if not (
            database.has("sessions", ("id", "started_at"))
            and database.has("messages", ("id", "session_id", "role", "content"))
        ):
            raise ValueError(
                "it is a database, but not one of hermes-agent: it has no tables of sessions and "
                "messages"
            )
        conversations = [
            conversation
            for session in database.rows("sessions", _SESSION, "started_at, id", {})
            if (conversation := _conversation(database, session)) is not None
        ]
    if not conversations:
        raise ValueError("none of its sessions has a message of a person or a model")
    return conversations


def _conversation(database: ForeignDatabase, session: dict[str, Any]) -> Conversation | None:
    place = f"session {session['id']!s:.80}: "
    rows = database.rows("messages", _MESSAGE, "id", {"session_id": session["id"], "active": 1})
    messages = [_message(row, f"{place}messages[{number}]") for number, row in enumerate(rows)]
    if not any(message["role"] in _SHOWN_ROLES for message in messages):
        return None
    return hermes.read_session({**session, "messages": messages}, place)


def _message(row: dict[str, Any], place: str) -> dict[str, Any]:
    content = row["content"]
    if isinstance(content, str) and content.startswith(_JSON_MARK):
        row["content"] = _decoded(content.removeprefix(_JSON_MARK), f"{place}.content")
    if row.get("tool_calls"):
        row["tool_calls"] = _decoded(row["tool_calls"], f"{place}.tool_calls")
    return row


def _decoded(text: str | bytes, place: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"{place} is not valid JSON: {error}") from error
