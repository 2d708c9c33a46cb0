"""Reads Telegram's updates: into a lane when they arrive, into typed values when they are handled.

An update that aiogram cannot read is nothing for the gateway; it holds up no other.
"""

from __future__ import annotations

import json
import logging
import mimetypes
from typing import TYPE_CHECKING, Any, Final, cast

from keryx.ports.platform import (
    Address,
    Incoming,
    Person,
    Press,
    ReceivedFile,
    ReceivedMessage,
    Update,
)

if TYPE_CHECKING:
    from aiogram import types
    from aiogram.types.message_generation_stopped import MessageGenerationStopped

ALLOWED: Final = ("message", "edited_message", "callback_query", "stopped_message_generation")
"""The kinds of updates that Telegram is asked for."""
URGENT: Final = ("/stop", "/status")
"""Commands that pass by what waits in their chat."""
HIGHEST_NUMBER: Final = 2**63 - 1
"""Of an update: what the file of the gateway can store."""
UNSUPPORTED: Final = frozenset(
    {
        "animation",
        "checklist",
        "contact",
        "dice",
        "game",
        "location",
        "paid_media",
        "poll",
        "sticker",
        "story",
        "venue",
        "video_note",
    }
)
"""What people send that has neither text nor a file for the agent. All else without them is a note
of Telegram about the chat, such as a pinned message: nobody waits for an answer to it."""
FRAGMENT: Final = 3480
"""Characters from which on a client may have cut a longer text into several messages."""
_log: Final = logging.getLogger("keryx.gateway")


def as_update(raw: object) -> Update | None:
    """Return a raw update with its lane; None if it is not even an update."""
    if not isinstance(raw, dict):
        return None
    fields = cast("dict[str, Any]", raw)
    number = fields.get("update_id")
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > HIGHEST_NUMBER:
        return None
    return Update(str(number), number, _lane(fields), json.dumps(fields).encode())


def _lane(fields: dict[str, Any]) -> str:
    """Return the chat and topic; presses and urgent commands have a lane of their own."""
    press = _object(fields, "callback_query")
    message = (
        _object(press, "message")
        if press
        else _object(fields, "message") or _object(fields, "edited_message")
    )
    stopped = _object(fields, "stopped_message_generation")
    chat = _object(message or stopped, "chat").get("id", "")
    topic = message.get("message_thread_id") if message.get("is_topic_message") else None
    words = str(message.get("text") or "").split(maxsplit=1)
    is_urgent = bool(press or stopped) or (
        bool(words) and words[0].partition("@")[0].lower() in URGENT
    )
    return f"{chat}/{topic or ''}{'!' if is_urgent else ''}"


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def read(body: bytes, me: types.User) -> Incoming | None:
    """Return what an update says, to the bot `me`."""
    from aiogram.types import Update as RawUpdate  # noqa: PLC0415 (heavy)
    from pydantic import ValidationError  # noqa: PLC0415 (comes with aiogram)

    try:
        update = RawUpdate.model_validate_json(body)
    except ValidationError as error:
        # Not the error itself: it quotes what people wrote.
        places = sorted({".".join(map(str, line["loc"])) for line in error.errors()})
        _log.warning("an update of Telegram cannot be read: %s", ", ".join(places))
        return None
    if update.message is not None:
        return _message(update.message, me)
    if update.edited_message is not None:
        return _message(update.edited_message, me, is_edit=True)
    if update.callback_query is not None:
        return _press(update.callback_query)
    if update.stopped_message_generation is not None:
        return _stopped(update.stopped_message_generation)
    return None


def _message(
    message: types.Message, me: types.User, *, is_edit: bool = False
) -> ReceivedMessage | None:
    author = message.from_user
    if author is None or author.is_bot:
        return None
    text, files = message.text or message.caption or "", _files(message)
    if not text and not files and message.content_type not in UNSUPPORTED:
        return None
    is_private = message.chat.type == "private"
    is_addressed = is_private or _mentions(message, me)
    quote = _quote(message, me)
    if message.forward_origin is not None:
        text, quote = "", text
    elif me.username:
        text = _without_name(text, me.username)
    return ReceivedMessage(
        address=_address(message),
        person=Person(str(author.id), author.full_name),
        message_id=str(message.message_id),
        text=text,
        files=files,
        is_addressed=is_addressed,
        album=message.media_group_id,
        is_part=not is_edit and _may_go_on(message, text),
        is_edit=is_edit,
        quote=quote,
    )


def _may_go_on(message: types.Message, text: str) -> bool:
    """Return whether the next message may be a part of this one."""
    return (
        message.media_group_id is not None
        or message.forward_origin is not None
        or len(text) >= FRAGMENT
    )


def _address(message: types.Message | types.InaccessibleMessage) -> Address:
    topic = None
    if getattr(message, "is_topic_message", None):
        topic = str(getattr(message, "message_thread_id", None) or "") or None
    return Address(str(message.chat.id), topic, message.chat.type == "private")


def _mentions(message: types.Message, me: types.User) -> bool:
    """Return whether a message in a group is meant for the bot."""
    reply = message.reply_to_message
    if reply is not None and reply.from_user is not None and reply.from_user.id == me.id:
        return True
    name = f"@{me.username or ''}".lower()
    text = message.text or message.caption or ""
    for entity in (message.entities or []) + (message.caption_entities or []):
        part = _part(text, entity.offset, entity.length).lower()
        if entity.type == "mention" and part == name:
            return True
        if entity.type == "bot_command" and part.endswith(name):
            return True
        if entity.type == "text_mention" and entity.user is not None and entity.user.id == me.id:
            return True
    return False


def _part(text: str, start: int, length: int) -> str:
    """Return a part of a text; places count UTF-16 units, and may be wrong."""
    start, end = max(0, start), max(0, start) + max(0, length)
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le", errors="replace")


def _without_name(text: str, name: str) -> str:
    """Remove the bot's name from the beginning of a message, and from a command."""
    first = text.split(maxsplit=1)[0] if text and not text[0].isspace() else ""
    rest = text[len(first) :]
    if first.lower() == f"@{name}".lower():
        return rest.strip()
    if first.startswith("/") and first.lower().endswith(f"@{name}".lower()):
        return first[: -len(name) - 1] + rest
    return text


def _quote(message: types.Message, me: types.User) -> str:
    """Return the text of somebody else that is replied to, here or in another chat."""
    reply = message.reply_to_message
    if reply is None:
        return "" if message.quote is None else message.quote.text
    if reply.from_user is None or reply.from_user.id == me.id:
        return ""
    return reply.text or reply.caption or ""


def _files(message: types.Message) -> tuple[ReceivedFile, ...]:
    if message.photo:
        best = message.photo[-1]
        name = f"photo-{message.message_id}.jpg"
        return (
            ReceivedFile(id=best.file_id, name=name, media_type="image/jpeg", size=best.file_size),
        )
    for file, stem, default in (
        (message.voice, "voice", "audio/ogg"),
        (message.audio, "audio", "audio/mpeg"),
        (message.video, "video", "video/mp4"),
        (message.document, "document", "application/octet-stream"),
    ):
        if file is not None:
            media_type = file.mime_type or default
            suffix = mimetypes.guess_extension(media_type) or ""
            name = getattr(file, "file_name", None) or f"{stem}-{message.message_id}{suffix}"
            return (
                ReceivedFile(
                    id=file.file_id, name=name, media_type=media_type, size=file.file_size
                ),
            )
    return ()


def _press(press: types.CallbackQuery) -> Press | None:
    if press.message is None or not press.data:
        return None
    return Press(
        address=_address(press.message),
        person=Person(str(press.from_user.id), press.from_user.full_name),
        press_id=press.id,
        data=press.data,
        message_id=str(press.message.message_id),
    )


def _stopped(stopped: MessageGenerationStopped) -> Press:
    """The Stop button of a draft, in a private chat: a press that names the draft."""
    person = Person(str(stopped.chat.id), stopped.chat.full_name)
    return Press(
        address=Address(
            str(stopped.chat.id),
            None if stopped.message_thread_id is None else str(stopped.message_thread_id),
        ),
        person=person,
        press_id="",
        data=f"draft:{stopped.draft_id}",
    )
