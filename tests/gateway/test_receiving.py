"""How updates come in: by long polling and by webhook, whatever the platform does."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from keryx.aio.clock import FakeClock
from keryx.errors import UserMustActError
from keryx.gateway.gateway import Gateway
from keryx.gateway.telegram.platform import Telegram
from keryx.ports.platform import PlatformError, Update
from tests.gateway.bot_api import TOKEN, BotApi, Fault
from tests.gateway.bot_api.server import message
from tests.gateway.chat_home import ANN, BEN, PATIENCE, chatting, failure_of
from tests.server.served_host import in_thread

WEBHOOK: dict[str, Any] = {"mode": "webhook", "webhook_url": "https://bot.example.com/telegram"}


class Receiving:
    """A bot that receives, and the clock that it looks at."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.updates: list[str] = []
        self.error: PlatformError | None = None

    async def until(self, condition: Callable[[], Any]) -> None:
        """Let the bot's time pass until something is so."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self.clock.advance(1.0)
                await asyncio.sleep(0.001)

    async def take(self, updates: Sequence[Update]) -> None:
        self.updates += [update.key for update in updates]

    async def receive(self, bot: Telegram) -> None:
        try:
            await bot.receive(self.take)
        except PlatformError as error:
            self.error = error


@asynccontextmanager
async def receiving(api: BotApi) -> AsyncGenerator[Receiving]:
    received = Receiving(FakeClock())
    bot = Telegram(TOKEN, received.clock, in_thread, api_url=api.url, wait=1.0)
    await bot.start()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(received.receive(bot))
        yield received
        task.cancel()
    await bot.close()


@pytest.mark.promise("chat.6")
async def test_polling_waits_as_long_as_it_is_asked_to(tmp_path: Path) -> None:
    floods = iter(["flood", "flood"])

    def fault(method: str, _: dict[str, Any]) -> Fault | None:
        return "flood" if method == "getUpdates" and next(floods, None) else None

    async with chatting(tmp_path, api=BotApi(fault=fault)) as (api, _, _):
        api.say(ANN, "Hello")
        await api.wait(lambda: api.texts(ANN) == ["You said: Hello"])
        assert (api.floods, api.calls_while_closed) == (2, 0)


@pytest.mark.promise("chat.6")
@pytest.mark.parametrize("settings", [{}, WEBHOOK])
async def test_a_refused_token_ends_the_gateway_with_what_to_do(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    """Also by webhook, where only sends notice it."""
    async with chatting(tmp_path, extra="[gateway]\nport = 0", **settings) as (api, gateway, _):
        if settings:
            await api.wait(lambda: api.webhook)
            api.is_revoked = True
            assert await deliver(gateway, api.webhook_secret) == 200
        else:
            await api.wait(lambda: "getUpdates" in api.requested)
            api.is_revoked = True
        failure = await failure_of(gateway)
        assert isinstance(failure, UserMustActError)
        assert "set the right one in [gateway.telegram], as @BotFather shows it" in str(failure)
        assert TOKEN not in str(failure)


@pytest.mark.promise("chat.6")
async def test_a_token_that_was_never_right_says_so_at_the_start(tmp_path: Path) -> None:
    async with chatting(tmp_path, token="99:wrong") as (_, gateway, _):
        failure = await failure_of(gateway)
        assert "set the right one in [gateway.telegram]" in str(failure)


@pytest.mark.promise("chat.6")
async def test_a_short_conflict_is_survived_and_a_lasting_one_is_fatal() -> None:
    async with BotApi() as api:
        api.conflicts = 3
        async with receiving(api) as received:
            api.say(ANN, "Hello")
            await received.until(lambda: received.updates)
        assert api.conflicts == 0
        api.conflicts = 1_000_000
        async with receiving(api) as received:
            await received.until(lambda: received.error)
        assert "another program receives the updates of this bot (409)" in str(received.error)
        assert api.conflicts > 1_000_000 - 50


@pytest.mark.promise("chat.6")
async def test_polling_that_stalls_connects_anew_and_then_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    is_down = True

    def fault(method: str, _: dict[str, Any]) -> Fault | None:
        return "reset before" if is_down and method == "getUpdates" else None

    async with BotApi(fault=fault) as api:
        async with receiving(api) as received:
            await received.until(lambda: "connecting anew" in caplog.text)
            is_down = False
            api.say(ANN, "Hello")
            await received.until(lambda: received.updates)
        is_down = True
        caplog.clear()
        async with receiving(api) as received:
            await received.until(lambda: "connecting anew" in caplog.text)
            before = api.requested.count("getUpdates")
            await received.until(lambda: received.error)
        assert "Telegram has not answered for 300 s; check the network" in str(received.error)
        assert api.requested.count("getUpdates") > before
        assert caplog.text.count("connecting anew") == 1


@pytest.mark.promise("chat.1")
async def test_updates_out_of_order_are_handled_in_order_and_numbers_may_begin_anew(
    tmp_path: Path,
) -> None:
    api = BotApi()
    for number in (903, 901, 902):
        api.say(ANN, f"message {number}", update_id=number)
    async with chatting(tmp_path, api=api) as (api, _, _):
        await api.wait(lambda: len(api.sent(ANN)) == 3 and not api.updates)
        await api.wait(lambda: all("You said" in text for text in api.texts(ANN)))
        api.begin_numbers_anew()
        api.say(ANN, "after a week", update_id=17)
        await api.wait(lambda: len(api.sent(ANN)) == 4 and not api.updates)
        await api.wait(lambda: all("You said" in text for text in api.texts(ANN)))
        assert [text.removeprefix("You said: ") for text in api.texts(ANN)] == [
            "message 901",
            "message 902",
            "message 903",
            "after a week",
        ]


@pytest.mark.promise("chat.1")
async def test_a_webhook_is_answered_once_it_is_stored_and_only_with_its_secret(
    tmp_path: Path,
) -> None:
    async with chatting(tmp_path, extra="[gateway]\nport = 0", **WEBHOOK) as (api, gateway, app):
        await api.wait(lambda: api.webhook)
        assert api.webhook is not None
        assert api.webhook["url"] == WEBHOOK["webhook_url"]
        assert "stopped_message_generation" in api.webhook["allowed_updates"]
        for secret in (b"", b"wrong", b"\xff\xfe", None):
            assert await deliver(gateway, secret) == 403
        assert await deliver(gateway, api.webhook_secret, body=b"no update") == 200
        for _ in range(2):  # Telegram repeats what it believes to be lost
            assert await deliver(gateway, api.webhook_secret) == 200
        await api.wait(lambda: api.texts(ANN) == ["You said: Hello"])
        assert "getUpdates" not in api.requested
        assert len(await app.store.sessions()) == 1
    # It was stored: the next process answers what this one had only taken in.
    async with chatting(tmp_path, extra="[gateway]\nport = 0", **WEBHOOK) as (api, gateway, _):
        await api.wait(lambda: api.webhook)
        assert await deliver(gateway, api.webhook_secret) == 200
        assert await deliver(gateway, api.webhook_secret, update_id=6) == 200
        await api.wait(lambda: api.texts(ANN) == ["You said: Hello"])


@contextmanager
def store_that_fails(home: Path) -> Generator[None]:
    """Nothing can be stored meanwhile."""
    with closing(sqlite3.connect(home / "gateway.db", isolation_level=None)) as connection:
        connection.execute("ALTER TABLE updates RENAME TO elsewhere")
        yield
        connection.execute("ALTER TABLE elsewhere RENAME TO updates")


@pytest.mark.promise("chat.1")
async def test_a_webhook_that_cannot_be_stored_is_not_accepted(tmp_path: Path) -> None:
    async with chatting(tmp_path, extra="[gateway]\nport = 0", **WEBHOOK) as (api, gateway, _):
        await api.wait(lambda: api.webhook)
        with store_that_fails(tmp_path / "home"):
            assert await deliver(gateway, api.webhook_secret) == 503
        assert await deliver(gateway, api.webhook_secret) == 200
        await api.wait(lambda: api.texts(ANN) == ["You said: Hello"])


@pytest.mark.promise("chat.1")
async def test_updates_that_cannot_be_stored_are_not_acknowledged(tmp_path: Path) -> None:
    async with chatting(tmp_path) as (api, gateway, _):
        api.say(ANN, "first")
        await api.wait(lambda: "You said: first" in api.texts(ANN) and not api.updates)
        with store_that_fails(tmp_path / "home"):
            api.requested.clear()
            api.say(ANN, "second")
            await api.wait(lambda: api.requested.count("getUpdates") > 2)
            assert api.updates
        await api.wait(lambda: "You said: second" in api.texts(ANN) and not api.updates)
        assert gateway.failure is None


@pytest.mark.promise("chat.6")
async def test_a_file_is_not_asked_for_while_telegram_asks_to_wait(tmp_path: Path) -> None:
    floods = iter(["flood"])

    def fault(method: str, _: dict[str, Any]) -> Fault | None:
        return "flood" if method == "getFile" and next(floods, None) else None

    photo = [{"file_id": "p", "file_unique_id": "p", "width": 1, "height": 1, "file_size": 5}]
    async with chatting(tmp_path, api=BotApi(fault=fault)) as (api, _, _):
        api.files["p"] = b"image"
        api.say(ANN, "", photo=photo, caption="Look")
        await api.wait(lambda: any("You said" in text for text in api.texts(ANN)))
        assert (api.floods, api.calls_while_closed) == (1, 0)


@pytest.mark.promise("chat.6")
async def test_an_update_that_keeps_failing_is_given_up_aloud_and_its_chat_goes_on(
    tmp_path: Path,
) -> None:
    def fault(method: str, _: dict[str, Any]) -> Fault | None:
        return "500" if method == "getFile" else None

    photo = [{"file_id": "p", "file_unique_id": "p", "width": 1, "height": 1, "file_size": 5}]
    async with chatting(tmp_path, api=BotApi(fault=fault)) as (api, _, _):
        api.say(ANN, "", photo=photo, caption="Look")
        api.say(ANN, "Hello")
        api.say(BEN, "Hello")
        await api.wait(lambda: "You said: Hello" in api.texts(ANN))
        assert api.requested.count("getFile") == 6
        assert api.texts(ANN)[0].startswith("I could not take this message: the server of Telegram")
        assert "You said: Hello" in api.texts(BEN)
        with closing(sqlite3.connect(tmp_path / "home" / "gateway.db")) as connection:
            query = "SELECT count(*) FROM updates WHERE state = 'dead'"
            assert connection.execute(query).fetchone() == (1,)


async def deliver(
    gateway: Gateway, secret: bytes | None, *, body: bytes | None = None, update_id: int = 5
) -> int:
    """Post an update as Telegram does, with any bytes as secret; return the status."""
    update = {"update_id": update_id, "message": message(ANN, "Hello", 70 + update_id)}
    content = json.dumps(update).encode() if body is None else body
    lines = [b"POST /telegram HTTP/1.1", b"Host: bot", b"Connection: close"]
    lines.append(b"Content-Length: %d" % len(content))
    if secret is not None:
        lines.append(b"X-Telegram-Bot-Api-Secret-Token: " + secret)
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.listener.port)
    writer.write(b"\r\n".join([*lines, b"", content]))
    response = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(response.split(maxsplit=2)[1])
