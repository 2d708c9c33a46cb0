"""Telegram as a platform: the bot, its limits, and how its messages are sent."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from keryx.aio.clock import Clock
from keryx.errors import KeryxError, UserMustActError
from keryx.gateway.delivery.flood_gate import sleep
from keryx.gateway.formatting.markdown import parse
from keryx.gateway.formatting.splitting import plain, split
from keryx.gateway.telegram import rendering
from keryx.gateway.telegram.polling import Polling, backoff
from keryx.gateway.telegram.requests import NOT_MODIFIED, checked
from keryx.gateway.telegram.updates import read
from keryx.ports.platform import (
    Abilities,
    Content,
    FateUnknownError,
    Incoming,
    MessageRefusedError,
    NotSentError,
    PlatformError,
    Press,
    ReceivedFile,
    Sending,
    Take,
)

if TYPE_CHECKING:
    import aiohttp
    from aiogram import Bot, types
    from aiogram.client.session.aiohttp import AiohttpSession

API: Final = "https://api.telegram.org"
T = TypeVar("T")

LONGEST_TEXT: Final = 4000
"""UTF-16 units of one message. Telegram takes 4,096; the rest is for a note."""
LARGEST_DOWNLOAD: Final = 20 * 1024 * 1024
ToThread = Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]
_log: Final = logging.getLogger("keryx.gateway")


class Receiver(Protocol):
    """Another way to get updates than long polling."""

    async def receive(self, take: Take) -> None: ...


class Telegram:
    """One bot. Belongs to one loop."""

    name: str = "telegram"
    abilities: Abilities = Abilities(
        edits=True, drafts=True, largest_download=LARGEST_DOWNLOAD, longest_text=LONGEST_TEXT
    )

    def __init__(
        self,
        token: str,
        clock: Clock,
        to_thread: ToThread,
        *,
        api_url: str = API,
        timeout: float = 20.0,
        wait: float = 30.0,
        pause: float = 1.0,
    ) -> None:
        """`timeout`: of a request; `wait`: how long Telegram holds a poll open."""
        self._token = token
        self._clock = clock
        self._to_thread = to_thread
        self._api_url = api_url
        self._timeout = timeout
        self._wait = wait
        self._pause = pause
        self._bot: Bot | None = None
        self._poll_session: AiohttpSession | None = None
        self._me: types.User | None = None
        self.receiver: Receiver | None = None
        """Receives updates; None: by long polling."""

    @property
    def account(self) -> str:
        return f"telegram:{self._token.partition(':')[0]}"

    @property
    def source(self) -> str:
        return f"{self.account}:{hashlib.sha256(self._token.encode()).hexdigest()[:8]}"

    @property
    def bot(self) -> Bot:
        assert self._bot is not None
        return self._bot

    async def start(self) -> None:
        self._bot = await self._to_thread(self._create_bot)
        self._me = await self.until_answered(self.bot.get_me)
        if not self._me.can_read_all_group_messages:
            _log.info("the bot sees only messages in groups that are for it (privacy mode)")

    def _create_bot(self) -> Bot:
        """Load aiogram and its certificates. Blocks."""
        try:
            from aiogram import Bot  # noqa: PLC0415 (heavy; only if Telegram is configured)
            from aiogram.client.session.aiohttp import AiohttpSession  # noqa: PLC0415 (heavy)
            from aiogram.client.telegram import TelegramAPIServer  # noqa: PLC0415 (heavy)
            from aiogram.utils.token import TokenValidationError  # noqa: PLC0415 (heavy)
        except ImportError as error:
            raise UserMustActError(
                "Telegram needs aiogram; install it with: pip install 'keryx[telegram]'"
            ) from error
        api = TelegramAPIServer.from_base(self._api_url)
        # Polling has connections of its own: they can be replaced while messages are sent.
        self._poll_session = AiohttpSession(api=api)
        try:
            return Bot(self._token, session=AiohttpSession(api=api, timeout=self._timeout))
        except TokenValidationError as error:
            raise PlatformError(
                "the token of the Telegram bot is not one; copy it from @BotFather"
            ) from error

    async def receive(self, take: Take) -> None:
        if self.receiver is not None:
            await self.receiver.receive(take)
            return
        # Telegram refuses polls while a webhook is set. What waits there is not dropped.
        await self.until_answered(lambda: self.bot.delete_webhook(drop_pending_updates=False))
        url = self.bot.session.api.api_url(self._token, "getUpdates")
        polling = Polling(self._connect, url, self._clock, wait=self._wait, pause=self._pause)
        await polling.run(take)

    async def until_answered(self, request: Callable[[], Awaitable[T]]) -> T:
        """Make a request that can be repeated, until Telegram answers it."""
        failures = 0
        while True:
            try:
                return await checked(request())
            except (NotSentError, FateUnknownError) as error:
                failures += 1
                _log.warning("Telegram has not answered: %s", error)
                pause = error.retry_after if isinstance(error, NotSentError) else None
                if pause is None:
                    pause = backoff(self._pause, failures)
                await sleep(self._clock, pause)

    async def _connect(self) -> aiohttp.ClientSession:
        """Return a new connection for polling; the one before it is closed."""
        assert self._poll_session is not None
        await self._poll_session.close()
        return await self._poll_session.create_session()

    def read(self, body: bytes) -> Incoming | None:
        assert self._me is not None
        return read(body, self._me)

    def format(self, markdown: str) -> list[Content]:
        # A text that is nothing but markup is sent as it was written.
        contents = split(parse(markdown), LONGEST_TEXT) or plain(markdown, LONGEST_TEXT)
        return contents or [Content(text=rendering.EMPTY)]

    async def send(self, sending: Sending) -> str:
        message = await checked(rendering.send(self.bot, sending))
        return str(message.message_id)

    async def edit(self, sending: Sending, message_id: str) -> None:
        try:
            await checked(rendering.edit(self.bot, sending, int(message_id)))
        except MessageRefusedError as error:
            if NOT_MODIFIED not in str(error).lower():
                raise

    async def show_draft(self, sending: Sending, draft_id: int) -> None:
        await checked(rendering.draft(self.bot, sending, draft_id))

    async def settle(self, press: Press, text: str) -> None:
        if press.press_id:
            with suppress(KeryxError):  # the answer to a press is worth only a moment
                await checked(self.bot.answer_callback_query(press.press_id, text=text[:200]))

    async def download(self, file: ReceivedFile) -> bytes:
        place = await checked(self.bot.get_file(file.id))
        stream = await checked(self.bot.download_file(place.file_path or ""))
        assert stream is not None
        return stream.read()

    async def close(self) -> None:
        for session in (self._poll_session, None if self._bot is None else self._bot.session):
            if session is not None:
                await session.close()

    def webhook_secret(self) -> str:
        """Return what Telegram sends with each webhook request. It follows from the token."""
        return hmac.new(self._token.encode(), b"keryx webhook", hashlib.sha256).hexdigest()
