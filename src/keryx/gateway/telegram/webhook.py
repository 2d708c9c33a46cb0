"""Telegram's webhook: an update is answered with 200 only once it is stored."""

from __future__ import annotations

import asyncio
import hmac
import json
from typing import TYPE_CHECKING, Final

from keryx.gateway.listener import Listener, Posted
from keryx.gateway.telegram.updates import ALLOWED, as_update
from keryx.ports.platform import Take

if TYPE_CHECKING:
    from keryx.gateway.telegram.platform import Telegram

PATH: Final = "/telegram"
HEADER: Final = "x-telegram-bot-api-secret-token"
OK: Final = 200
FORBIDDEN: Final = 403


class TelegramWebhook:
    """Receives the updates of a bot from the listener. Requests without its secret are refused."""

    def __init__(self, bot: Telegram, listener: Listener, url: str) -> None:
        self._bot = bot
        self._listener = listener
        self._url = url

    async def receive(self, take: Take) -> None:
        secret = self._bot.webhook_secret()

        async def handle(posted: Posted) -> int:
            if not hmac.compare_digest(_header(posted), secret.encode()):
                return FORBIDDEN
            try:
                update = as_update(json.loads(posted.body))
            except ValueError:
                update = None
            if update is not None:
                await take([update])
            # Telegram would repeat for ever what cannot be read.
            return OK

        self._listener.add(PATH, handle)
        try:
            await self._bot.until_answered(
                lambda: self._bot.bot.set_webhook(
                    self._url,
                    secret_token=secret,
                    allowed_updates=list(ALLOWED),
                    drop_pending_updates=False,
                )
            )
            await asyncio.get_running_loop().create_future()  # until cancelled
        finally:
            self._listener.remove(PATH)


def _header(posted: Posted) -> bytes:
    # A header may hold any bytes.
    return posted.headers.get(HEADER, "").encode(errors="surrogateescape")
