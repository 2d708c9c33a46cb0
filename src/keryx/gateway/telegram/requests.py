"""One request to the Bot API at a time, with errors that say what is known about its fate."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TypeVar

from keryx.errors import KeryxError
from keryx.ports.platform import (
    FateUnknownError,
    MessageRefusedError,
    NotSentError,
    PlatformError,
)

T = TypeVar("T")

NOT_MODIFIED: Final = "message is not modified"
GONE: Final = ("message to edit not found", "message can't be edited", "message_id_invalid")
UNPARSED: Final = ("can't parse entities", "entity_", "entities")
UNSHOWN: Final = ("photo_", "image_process_failed", "voice_messages_forbidden", "wrong type of")
"""Telegram cannot show a file as what it is; it may take it as a document."""
FLOOD: Final = "too many requests"
UNSAID_WAIT: Final = 5.0
"""Seconds to wait if Telegram asks to wait and does not say how long."""
REFUSED: Final = (
    "Telegram refuses the token of the bot; set the right one in [gateway.telegram], as @BotFather "
    "shows it"
)
CONFLICT: Final = (
    "another program receives the updates of this bot (409); stop it, or use another bot"
)
_CLIENT_ERRORS: Final = range(400, 500)


async def checked(request: Awaitable[T]) -> T:
    """Make a request. What aiogram and aiohttp raise becomes an error of the port.

    Nothing of the original error is kept but its kind: its text may name the address of the
    request, which holds the token.
    """
    from aiogram.exceptions import AiogramError  # noqa: PLC0415 (heavy)
    from aiohttp import ClientError  # noqa: PLC0415 (heavy)

    try:
        return await request
    except (AiogramError, ClientError, TimeoutError, OSError) as error:
        port_error = _port_error(error)
    raise port_error


def _port_error(error: Exception) -> KeryxError:  # noqa: PLR0911 (one for each kind)
    from aiogram import exceptions as ex  # noqa: PLC0415 (heavy)
    from aiohttp import ClientResponseError  # noqa: PLC0415 (heavy)

    match error:
        case ex.TelegramRetryAfter():
            return NotSentError(
                f"Telegram asks to wait {error.retry_after} s",
                retry_after=float(error.retry_after),
                is_flood=True,
            )
        case ex.TelegramUnauthorizedError() | ex.TelegramNotFound():
            return PlatformError(REFUSED)
        case ex.TelegramConflictError():
            return PlatformError(CONFLICT)
        case ex.TelegramServerError() | ex.ClientDecodeError():
            return FateUnknownError(f"the server of Telegram failed: {_short(error)}")
        case ex.TelegramEntityTooLarge():
            return MessageRefusedError("the file is too large for Telegram")
        case ex.TelegramAPIError() if not isinstance(error, ex.TelegramNetworkError):
            return _refusal(error.message)
        case ClientResponseError() if error.status in _CLIENT_ERRORS:
            return MessageRefusedError("Telegram does not have this file any more; send it again")
        case _:
            return _network_error(error)


def _network_error(error: Exception) -> NotSentError | FateUnknownError:
    """A connection that was never made carried nothing; all else may have arrived."""
    from aiohttp import ClientConnectorError  # noqa: PLC0415 (heavy)

    if isinstance(error.__cause__ or error, ClientConnectorError):
        return NotSentError(f"Telegram cannot be reached: {_short(error)}")
    return FateUnknownError(f"the connection to Telegram failed: {_short(error)}")


def _refusal(message: str) -> MessageRefusedError | NotSentError:
    text = message.lower()
    if FLOOD in text:
        return NotSentError(message, retry_after=UNSAID_WAIT, is_flood=True)
    if any(words in text for words in GONE):
        return MessageRefusedError(message, is_gone=True)
    if any(words in text for words in (*UNPARSED, *UNSHOWN)):
        return MessageRefusedError(message, is_format=True)
    return MessageRefusedError(message)


def _short(error: BaseException) -> str:
    # aiogram's texts name the address of the request, which holds the token.
    return type(error.__cause__ or error).__name__
