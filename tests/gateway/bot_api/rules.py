"""What the Bot API accepts: fields, lengths, entities and buttons, as it is published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
LONGEST_DATA = 64
KINDS = {"bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote"}
FIELDS = {
    "getMe": set[str](),
    "getUpdates": {"offset", "limit", "timeout", "allowed_updates"},
    "deleteWebhook": {"drop_pending_updates"},
    "setWebhook": {"url", "secret_token", "allowed_updates", "drop_pending_updates"},
    "sendMessage": {
        "chat_id",
        "text",
        "message_thread_id",
        "entities",
        "reply_parameters",
        "reply_markup",
    },
    "editMessageText": {"chat_id", "message_id", "text", "entities", "reply_markup"},
    "sendMessageDraft": {"chat_id", "draft_id", "message_thread_id", "text", "can_stop"},
    "sendPhoto": {"chat_id", "photo", "message_thread_id", "reply_parameters", "caption"},
    "sendVoice": {"chat_id", "voice", "message_thread_id", "reply_parameters", "caption"},
    "sendAudio": {"chat_id", "audio", "message_thread_id", "reply_parameters", "caption"},
    "sendDocument": {"chat_id", "document", "message_thread_id", "reply_parameters", "caption"},
    "answerCallbackQuery": {"callback_query_id", "text", "show_alert"},
    "getFile": {"file_id"},
}


class ApiError(Exception):
    """A refusal in the API's own words."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


@dataclass(slots=True)
class SentMessage:
    """A message of the bot, as a person sees it now."""

    chat: int
    message_id: int
    text: str
    topic: int | None = None
    buttons: dict[str, str] = field(default_factory=dict[str, str])
    """The data by the words of the button."""
    entities: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    file: bytes | None = None
    kind: str = "text"
    reply_to: int | None = None
    edits: int = 0


@dataclass(slots=True)
class ShownDraft:
    """A draft, as a person sees it for a while."""

    chat: int
    draft_id: int
    text: str
    can_stop: bool
    times: int = 1
    """How often it was shown."""


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def checked_fields(method: str, fields: Mapping[str, Any]) -> None:
    allowed = FIELDS.get(method)
    if allowed is None:
        raise ApiError(404, "Not Found")
    # A file has a name of its own, which another field refers to.
    unknown = {
        name
        for name, value in fields.items()
        if name not in allowed and not isinstance(value, bytes)
    }
    assert not unknown, f"{method} got {unknown}: the gateway never sends these"


def checked_text(fields: Mapping[str, Any]) -> str:
    text = str(fields.get("text", ""))
    if not text.strip():
        raise ApiError(400, "Bad Request: message text is empty")
    if utf16(text) > LONGEST_TEXT:
        raise ApiError(400, "Bad Request: message is too long")
    return text


def checked_entities(fields: Mapping[str, Any], text: str) -> list[dict[str, Any]]:
    entities: list[dict[str, Any]] = json.loads(fields.get("entities") or "[]")
    for entity in entities:
        start, length = entity["offset"], entity["length"]
        if entity["type"] not in KINDS or length <= 0 or start < 0:
            raise ApiError(400, "Bad Request: can't parse entities: unsupported entity")
        if start + length > utf16(text):
            raise ApiError(400, "Bad Request: ENTITY_BOUNDS_INVALID")
    for one in entities:
        for other in entities:
            is_code = one["type"] in ("code", "pre") and other["type"] != "blockquote"
            if one is not other and is_code and _overlap(one, other):
                raise ApiError(400, "Bad Request: can't parse entities: nested code")
    return entities


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return (
        one["offset"] < other["offset"] + other["length"]
        and other["offset"] < one["offset"] + one["length"]
    )


def checked_buttons(fields: Mapping[str, Any]) -> dict[str, str]:
    buttons: dict[str, str] = {}
    markup = json.loads(fields.get("reply_markup") or "{}")
    for row in markup.get("inline_keyboard", []):
        for button in row:
            data = button["callback_data"]
            if not 1 <= len(data.encode()) <= LONGEST_DATA:
                raise ApiError(400, "Bad Request: BUTTON_DATA_INVALID")
            buttons[button["text"]] = data
    return buttons
