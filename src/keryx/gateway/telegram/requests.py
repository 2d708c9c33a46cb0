"""One request to the Bot API at a time, with errors that say what is known about its fate."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TypeVar

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


class BadFormatError(MessageRefusedError):
    """Telegram cannot read the formatting; the text alone may go."""


async def checked(request: Awaitable[T]) -> T:
    """Make a request. What aiogram raises becomes an error of the port."""
    from aiogram import exceptions as ex  # noqa: PLC0415 (heavy)

    try:
        return await request
    except ex.TelegramRetryAfter as error:
        raise NotSentError(
            f"Telegram asks to wait {error.retry_after} s",
            retry_after=float(error.retry_after),
            is_flood=True,
        ) from error
    except ex.TelegramNetworkError as error:
        raise _network_error(error) from error
    except ex.TelegramUnauthorizedError as error:
        raise PlatformError(
            "Telegram refuses the token of the bot; set the right one in [gateway.telegram]"
        ) from error
    except ex.TelegramConflictError as error:
        raise PlatformError(
            "another program receives the updates of this bot; stop it, or use another bot"
        ) from error
    except (ex.TelegramServerError, ex.ClientDecodeError) as error:
        raise FateUnknownError(f"the server of Telegram failed: {_short(error)}") from error
    except ex.TelegramAPIError as error:
        raise _refusal(error.message) from error
    except (TimeoutError, OSError) as error:
        raise FateUnknownError(f"the connection to Telegram failed: {_short(error)}") from error


def _network_error(error: Exception) -> NotSentError | FateUnknownError:
    """A connection that was never made carried nothing; all else may have arrived."""
    from aiohttp import ClientConnectorError  # noqa: PLC0415 (heavy)

    if isinstance(error.__cause__, ClientConnectorError):
        return NotSentError(f"Telegram cannot be reached: {_short(error)}")
    return FateUnknownError(f"the connection to Telegram failed: {_short(error)}")


def _refusal(message: str) -> MessageRefusedError:
    text = message.lower()
    if any(words in text for words in GONE):
        return MessageRefusedError(message, is_gone=True)
    if any(words in text for words in UNPARSED):
        return BadFormatError(message)
    return MessageRefusedError(message)


def _short(error: BaseException) -> str:
    # aiogram's texts name the address of the request, which holds the token.
    return type(error.__cause__ or error).__name__
