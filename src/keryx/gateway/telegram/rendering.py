"""Messages as the Bot API wants them: entities, keyboards, targets and files."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from keryx.ports.platform import Content, Sending

if TYPE_CHECKING:
    from aiogram import Bot, types

LARGEST_PHOTO: Final = 10 * 1024 * 1024
EMPTY: Final = "…"
"""Telegram refuses an empty text."""


def send(bot: Bot, sending: Sending) -> Awaitable[types.Message]:
    """Send a text or a file."""
    if sending.content.file is not None:
        return _send_file(bot, sending)
    return bot.send_message(
        text=sending.content.text or EMPTY,
        reply_markup=_keyboard(sending.content),
        entities=_entities(sending.content),
        **_target(sending),
    )


def edit(bot: Bot, sending: Sending, message_id: int) -> Awaitable[Any]:
    return bot.edit_message_text(
        sending.content.text or EMPTY,
        chat_id=int(sending.address.chat),
        message_id=message_id,
        reply_markup=_keyboard(sending.content),
        entities=_entities(sending.content),
    )


def draft(bot: Bot, sending: Sending, draft_id: int) -> Awaitable[bool]:
    return bot.send_message_draft(
        chat_id=int(sending.address.chat),
        draft_id=draft_id,
        message_thread_id=_thread(sending),
        text=sending.content.text,
        can_stop=True,
    )


def _send_file(bot: Bot, sending: Sending) -> Awaitable[types.Message]:
    from aiogram.types import BufferedInputFile  # noqa: PLC0415 (heavy)

    file, target = sending.content.file, _target(sending)
    assert file is not None
    assert sending.data is not None
    upload = BufferedInputFile(sending.data, file.name)
    if file.media_type in ("image/png", "image/jpeg") and len(sending.data) <= LARGEST_PHOTO:
        return bot.send_photo(photo=upload, **target)
    if file.media_type in ("audio/ogg", "audio/opus"):
        return bot.send_voice(voice=upload, **target)
    if file.media_type.startswith("audio/"):
        return bot.send_audio(audio=upload, **target)
    return bot.send_document(document=upload, **target)


def _target(sending: Sending) -> dict[str, Any]:
    from aiogram.types import ReplyParameters  # noqa: PLC0415 (heavy)

    reply = None
    if sending.reply_to is not None:
        reply = ReplyParameters(message_id=int(sending.reply_to), allow_sending_without_reply=True)
    return {
        "chat_id": int(sending.address.chat),
        "message_thread_id": _thread(sending),
        "reply_parameters": reply,
    }


def _thread(sending: Sending) -> int | None:
    return None if sending.address.topic is None else int(sending.address.topic)


def _entities(content: Content) -> list[types.MessageEntity] | None:
    from aiogram.types import MessageEntity  # noqa: PLC0415 (heavy)

    entities = [
        MessageEntity(
            type=span.kind,
            offset=span.start,
            length=span.length,
            url=span.value if span.kind == "text_link" else None,
            language=(span.value or None) if span.kind == "pre" else None,
        )
        for span in content.spans
    ]
    return entities or None


def _keyboard(content: Content) -> types.InlineKeyboardMarkup | None:
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup  # noqa: PLC0415 (heavy)

    if not content.buttons:
        return None
    return InlineKeyboardMarkup(
        inline_keyboard=[
            [InlineKeyboardButton(text=button.text, callback_data=button.data) for button in row]
            for row in content.buttons
        ]
    )
