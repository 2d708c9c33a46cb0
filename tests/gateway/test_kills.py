"""The gateway is killed and the platform misbehaves: each message is answered once, in order."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from keryx import events as ev
from keryx.gateway.delivery.repetition import NOTE
from keryx.testing.modelserver import ModelServer
from tests.gateway.bot_api import BotApi, Fault
from tests.gateway.chat_home import chatting, configure, echo, gateway_processes

SOAK = os.environ.get("KERYX_SOAK") == "1"
WRITES = 10
"""How often the gateway stores something for one message."""
CHATS, EACH, KILLS = (100, 10, 12) if SOAK else (20, 5, 3)
FAULTS: list[Fault] = [
    "hang after",
    "hang before",
    "reset before",
    "reset after",
    "html",
    "flood",
    "500",
]


def answers(api: BotApi, chat: int) -> list[str]:
    return [text for text in api.texts(chat) if "You said" in text]


def finished_answers(api: BotApi, chat: int) -> int:
    """How many answers of a chat are whole: the preview of an answer ends with an ellipsis."""
    return sum(not text.endswith(" …") for text in answers(api, chat))


def closed_chats(home: Path) -> list[str]:
    """The chats that the gateway knows to be asked to wait."""
    with closing(sqlite3.connect(home / "gateway.db")) as connection:
        query = "SELECT chat FROM closed_chats WHERE until > ?"
        return [chat for (chat,) in connection.execute(query, (time.time(),))]


@pytest.mark.promise("chat.1")
async def test_a_kill_at_any_point_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    """Killed after it took an update in, while the model answers, and while it sends."""
    people = range(1, 6)
    async with BotApi() as api, ModelServer(echo) as server:
        configure(tmp_path / "home", api, server, allow=list(people))
        with gateway_processes(tmp_path / "home") as gateways:
            for number, moment in enumerate(("getUpdates", "sendMessage", "editMessageText")):
                for person in people:
                    api.say(person, f"message {number}")
                with gateways.killed_at_the_end():
                    await api.wait(lambda moment=moment: api.calls_of(moment))
                api.calls.clear()
            with gateways.killed_at_the_end():
                await api.wait(lambda: all(finished_answers(api, person) == 3 for person in people))
        for person in people:
            expected = [f"You said: message {number}" for number in range(3)]
            assert answers(api, person) == expected


@pytest.mark.promise("chat.1")
async def test_a_kill_after_each_write_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    """From the update that is stored to the answer that is delivered, and while it recovers."""
    async with BotApi() as api, ModelServer(echo) as server:
        configure(tmp_path / "home", api, server)
        with gateway_processes(tmp_path / "home") as gateways:
            for writes in range(1, WRITES + 1):
                api.say(7, f"message {writes}")
                await gateways.run_for(writes)
            with gateways.killed_at_the_end():
                await api.wait(lambda: finished_answers(api, 7) == WRITES and not api.updates)
        assert answers(api, 7) == [f"You said: message {number + 1}" for number in range(WRITES)]


@pytest.mark.promise("chat.1")
async def test_an_update_that_comes_again_starts_nothing(tmp_path: Path) -> None:
    """Neither in the same gateway nor in the next one."""
    api = BotApi()
    api.repeats = True  # as if no acknowledgement had ever arrived
    api.say(7, "once")
    async with chatting(tmp_path, api=api) as (api, _, _):
        await api.wait(lambda: answers(api, 7))
        await api.wait(lambda: api.requested.count("getUpdates") > 3)
    api.requested.clear()
    async with chatting(tmp_path, api=api) as (api, _, app):
        await api.wait(lambda: api.requested.count("getUpdates") > 3)
        api.repeats = False
        api.say(7, "twice")
        await api.wait(lambda: len(answers(api, 7)) == 2)
        assert answers(api, 7) == ["You said: once", "You said: twice"]
        (row,) = await app.store.sessions()
        events = await app.store.events(row.session_id)
        assert len([event for event in events if isinstance(event, ev.TurnStarted)]) == 2


@pytest.mark.promise("chat.6")
@pytest.mark.timeout(900 if SOAK else 180)
async def test_random_faults_and_kills(tmp_path: Path) -> None:
    """Every message is answered once and in order, whatever the network and the process do."""
    chance = random.Random(20)
    is_calm = False

    def fault(method: str, fields: dict[str, Any]) -> Fault | None:
        if is_calm or method in ("getMe", "deleteWebhook") or chance.random() > 0.06:
            return None
        kind = chance.choice(FAULTS)
        return None if method == "getUpdates" and kind == "flood" else kind

    people = range(1, CHATS + 1)
    async with BotApi(fault=fault) as api, ModelServer(echo, keeps_asked=False) as server:
        configure(tmp_path / "home", api, server, allow=list(people))
        for number in range(EACH):
            batch = [(person, f"message {number}") for person in people]
            chance.shuffle(batch)
            for person, text in batch:
                api.say(person, text)
        total = CHATS * EACH

        def count() -> int:
            return sum(
                len({text.removeprefix(NOTE) for text in answers(api, person)}) for person in people
            )

        with gateway_processes(tmp_path / "home") as gateways:
            for kill in range(1, KILLS + 1):
                with gateways.killed_at_the_end():
                    goal = total * kill // (KILLS + 1)
                    await api.wait(lambda goal=goal: count() >= goal, patience=300)
                # What it was told in its last moment and could not store, the next one cannot know.
                await asyncio.sleep(0.2)  # for requests that it sent, which nobody has read yet
                api.forget_floods(closed_chats(tmp_path / "home"))
            is_calm = True
            with gateways.killed_at_the_end():
                await api.wait(lambda: count() >= total and not api.updates, patience=300)
                await asyncio.sleep(0.5)  # time for what should not come
    for person in people:
        texts = answers(api, person)
        for text in [text for text in texts if text.startswith(NOTE)]:
            # Nobody could know whether it had arrived: it may be there twice, and says so.
            if text.removeprefix(NOTE) in texts:
                texts.remove(text)
        plain = [text.removeprefix(NOTE) for text in texts]
        assert plain == [f"You said: message {number}" for number in range(EACH)]
    assert api.calls_while_closed == 0
