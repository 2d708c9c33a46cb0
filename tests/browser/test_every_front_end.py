"""One session in every front end: something is sent from each, and all of it is read in each."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from keryx import Keryx
from keryx import events as ev
from keryx.sync import Keryx as BlockingKeryx
from keryx.testing.modelserver import ModelServer, ReceivedRequest, Reply
from tests.browser.browser_user import person
from tests.browser.page_server import PageServer
from tests.cli.chat.terminal import terminal
from tests.cli.commands import keryx
from tests.gateway.bot_api import TOKEN, BotApi
from tests.gateway.chat_home import ANN, last_text
from tests.server.served_host import in_thread

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("front.1")]

MESSAGES = [
    f"from {name}"
    for name in (
        "the page",
        "the command line",
        "a program",
        "a thread",
        "the terminal",
        "Telegram",
    )
]
REPLIES = [f"You said: {text}" for text in MESSAGES]
CONVERSATION = [text for pair in zip(MESSAGES, REPLIES, strict=True) for text in pair]


def answer(request: ReceivedRequest) -> Reply:
    if not request.body.get("tools"):
        return Reply(text="All of them")  # the title
    return Reply(text=f"You said: {last_text(request)}")


@dataclass(frozen=True)
class Everywhere:
    """`keryx serve` with a gateway, and the servers that it talks to."""

    served: PageServer
    model: ModelServer
    bot: BotApi
    home: Path


@pytest_asyncio.fixture(loop_scope="module")
async def everywhere(tmp_path: Path, page_is_built: None) -> AsyncGenerator[Everywhere]:
    async with ModelServer(answer) as model, BotApi() as bot:
        served = PageServer(tmp_path, model.url)
        served.configure(
            # Of all front ends only the owner's chat shows the sessions of the others.
            f'[gateway.telegram]\ntoken = "{TOKEN}"\napi_url = "{bot.url}"\nowner = [{ANN}]\n'
        )
        await served.start()
        try:
            yield Everywhere(served, model, bot, tmp_path / "home")
        finally:
            await served.stop()


def say_in_a_thread(home: Path, session_id: str) -> str:
    with BlockingKeryx(home=home) as app:
        return app.open(session_id).send(MESSAGES[3]).result().text


def say_in_a_terminal(home: Path, session_id: str) -> str:
    """Return what the terminal has shown, earlier messages included."""
    with terminal(home) as window:
        window.start("chat", "--session", session_id)
        window.wait(REPLIES[3])
        window.type(MESSAGES[4])
        window.keys("Enter")
        return window.wait(REPLIES[4])


async def say_in_telegram(bot: BotApi) -> None:
    bot.say(ANN, "/sessions")
    (listing,) = await bot.wait(lambda: [text for text in bot.texts(ANN) if "All of them" in text])
    (line,) = [line for line in listing.splitlines() if "All of them" in line]
    bot.say(ANN, f"/sessions {line.split()[0]}")
    await bot.wait(lambda: len(bot.texts(ANN)) > 1)
    bot.say(ANN, MESSAGES[5])
    await bot.wait(lambda: REPLIES[5] in bot.texts(ANN))


async def test_one_session_in_every_front_end(chromium: Browser, everywhere: Everywhere) -> None:
    home = everywhere.home
    async with person(chromium, everywhere.served.url) as somebody:
        tab = await somebody.opens(everywhere.served.link)
        await tab.begin(MESSAGES[0])
        await expect(tab.replies).to_have_text(REPLIES[:1])
        session_id = tab.session_id
        ran = await in_thread(keryx, home, "run", "--session", session_id, MESSAGES[1])
        assert ran.stdout.strip() == REPLIES[1], ran.stderr
        async with Keryx(home=home) as app:
            turn = await (await app.open(session_id)).send(MESSAGES[2])
            assert (await turn.result()).text == REPLIES[2]
        assert await in_thread(say_in_a_thread, home, session_id) == REPLIES[3]
        shown = await in_thread(say_in_a_terminal, home, session_id)
        assert in_order(shown, CONVERSATION[:10])
        await say_in_telegram(everywhere.bot)

        await expect(tab.said).to_have_text(MESSAGES)
        await expect(tab.replies).to_have_text(REPLIES)
        lines = (await in_thread(keryx, home, "sessions", "export", session_id)).stdout.splitlines()
    async with Keryx(home=home) as app:
        events = await app.store.events(session_id)
    assert [msgspec.json.decode(line) for line in lines] == [
        msgspec.json.decode(msgspec.json.encode(event)) for event in events
    ]
    said = [event.text for event in events if isinstance(event, ev.MessageAccepted)]
    assert said == MESSAGES
    printed = (await in_thread(keryx, home, "sessions", "show", session_id)).stdout
    assert in_order(printed, CONVERSATION)
    await each_was_told_of_all_before(everywhere.model)


async def each_was_told_of_all_before(model: ModelServer) -> None:
    """Whoever sent it: the model gets the whole conversation, in the same order."""
    requests = [request for request in model.asked if request.body.get("tools")]
    for number, request in enumerate(requests):
        texts = [str(message["content"]) for message in request.body["messages"]]
        assert in_order("\n".join(texts), CONVERSATION[: 2 * number + 1])


def in_order(text: str, parts: list[str]) -> bool:
    """Whether the text has these parts, one after the other."""
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            raise AssertionError(f"{part!r} is missing, or stands too early, in\n{text}")
        at += len(part)
    return True
