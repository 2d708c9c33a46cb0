"""Report 003, hermes-agent pull request #5103: `honcho_conclude` fails while `sync_turn` runs.

There, a background thread and a tool shared one plain dictionary of remote sessions. Thirteen
conclusions in a row lost two at random, and the fix joins the thread for five seconds and goes on.
Here nothing is shared: what is accepted is in the log, and one owner delivers it in order.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.memory import Memory, TurnMemory
from keryx.tools.memory.memory_tools import memory_tools
from tests.memory import shelf
from tests.memory.conftest import home
from tests.memory.honcho_home import honcho_server
from tests.memory.honcho_server.process import KEY, HonchoServer
from tests.server.served_host import in_thread

assert home  # a fixture

PATIENCE = 30.0
SYNCING = "POST .*/messages$"
CONCLUSIONS = [f"Conclusion {number}." for number in range(13)]


def concluding() -> ScriptedModel:
    """A model that says something first, and then concludes thirteen times in one turn."""
    calls = [ScriptedCall("conclude", {"text": text}) for text in CONCLUSIONS]
    return ScriptedModel(
        [
            ScriptedReply(text="A first turn, which is synchronised while the next one runs."),
            *(ScriptedReply(calls=[call]) for call in calls),
            ScriptedReply(text="Concluded."),
        ]
    )


async def conclude_during_sync(app: Keryx, provider: shelf.Shelf) -> None:
    """Run the report's case: the provider is in the middle of a turn while the tool is called.

    The provider is still there when this returns.
    """
    provider.gate = asyncio.Event()
    session = await app.open()
    await (await session.send("Hello")).result()
    await provider.wait_begun(lambda: provider.running == 1)
    await (await session.send("Draw your conclusions")).result()
    outcomes = [
        fact.outcome
        for fact in await app.store.events(session.session_id)
        if isinstance(fact, ev.CallFinished)
    ]
    assert outcomes == ["completed"] * 13
    assert provider.running == 1, "the first turn is still being stored"


def honcho_home(folder: Path, server: HonchoServer) -> Path:
    folder.mkdir()
    (folder / "config.toml").write_text(
        '[memory]\nproviders = ["honcho"]\nwait = 0.2\n'
        f'[memory.honcho]\nurl = "{server.url}"\napi_key = "{KEY}"\n'
    )
    return folder


async def conclude_at_honcho(
    home: Path, server: HonchoServer, release: Callable[[], Awaitable[object]]
) -> None:
    """Run the report's case with Honcho: the server holds the turn until `release` is done."""
    async with Keryx(model=concluding(), home=home, tools=memory_tools()) as app:
        session = await app.open()
        await (await session.send("Hello")).result()
        name = session.session_id
        await server.wait_until(lambda state: name in state["held"])
        await (await session.send("Draw your conclusions")).result()
        events = await app.store.events(name)
        outcomes = [fact.outcome for fact in events if isinstance(fact, ev.CallFinished)]
        assert outcomes == ["completed"] * 13
        assert name in (await server.state())["held"], "the first turn is still being stored"
        await release()
        await server.wait_until(lambda state: len(texts_of(state, name, "messages")) >= 4)
    state = await server.state()
    assert texts_of(state, name, "conclusions") == CONCLUSIONS
    hello, _, draw, concluded = texts_of(state, name, "messages")
    assert (hello, draw, concluded) == ("Hello", "Draw your conclusions", "Concluded.")
    assert state["refusals"] == []


def texts_of(state: dict[str, Any], session_id: str, table: str) -> list[str]:
    return [row["content"] for row in state[table] if row["session_id"] == session_id]


@pytest.mark.promise("003.2")
async def test_thirteen_conclusions_reach_honcho_while_its_client_sends_a_turn(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(PATIENCE):
        with honcho_server(tmp_path) as server:
            await server.misbehave((SYNCING, "hold"))
            await conclude_at_honcho(
                honcho_home(tmp_path / "home", server), server, server.misbehave
            )
            state = await server.state()
            assert len(state["sessions"]) == 1
            assert state["requests"]["POST /v3/workspaces/{workspace}/sessions"] == 1


@pytest.mark.promise("003.2")
async def test_two_loops_conclude_at_honcho_at_the_same_time(tmp_path: Path) -> None:
    with honcho_server(tmp_path) as server:
        await server.misbehave((SYNCING, "hold"), (SYNCING, "hold"))
        both_have_concluded = threading.Barrier(2)

        async def release() -> None:
            await in_thread(both_have_concluded.wait, PATIENCE)
            await server.misbehave()

        def run(name: str) -> None:
            home = honcho_home(tmp_path / name, server)
            asyncio.run(asyncio.wait_for(conclude_at_honcho(home, server, release), PATIENCE))

        async with asyncio.TaskGroup() as group:
            group.create_task(in_thread(run, "one"))
            group.create_task(in_thread(run, "two"))
        assert len((await server.state())["sessions"]) == 2


@pytest.mark.promise("003.2")
async def test_thirteen_conclusions_in_a_row_while_a_turn_is_synchronised(home: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        async with Keryx(model=concluding(), home=home, tools=memory_tools()) as app:
            provider = shelf.OPENED[-1]
            await conclude_during_sync(app, provider)
            assert provider.gate is not None
            provider.gate.set()
    items = await in_thread(provider.lines)
    assert [item.text for item in items if isinstance(item, Memory)] == CONCLUSIONS
    assert [len(item.texts) for item in items if isinstance(item, TurnMemory)] == [2, 2]
    assert isinstance(items[0], TurnMemory), "in order: the turn came before the conclusions"


@pytest.mark.promise("003.2", "003.4")
async def test_a_sync_that_never_ends_fails_no_conclusion_and_stops_no_shutdown(
    home: Path,
) -> None:
    async with asyncio.timeout(PATIENCE):
        async with Keryx(model=concluding(), home=home, tools=memory_tools()) as app:
            provider = shelf.OPENED[-1]
            await conclude_during_sync(app, provider)
        assert await in_thread(provider.lines) == []
        # The next host finds what the first could not deliver.
        async with Keryx(model=concluding(), home=home, tools=memory_tools()):
            provider = shelf.OPENED[-1]
            while len(await in_thread(provider.ids)) < 15:
                await provider.wait_stored()
    texts = [item.text for item in await in_thread(provider.lines) if isinstance(item, Memory)]
    assert texts == CONCLUSIONS
