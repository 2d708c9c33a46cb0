"""Many sessions, many readers, some of whom keep leaving and coming back; and another host's."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import aiohttp

from keryx import Keryx
from keryx.models.scripted import ScriptedReply
from keryx.server.access.tokens import Tokens
from keryx.server.serve import Settings, serving
from tests.server.served_host import (
    PATIENCE,
    Client,
    Gate,
    ServedHost,
    StreamedEvent,
    in_thread,
    scripted,
    served_host,
)

SESSIONS = 10
TURNS = 3
WORDS = "so many words that they come in many pieces, one after the other"


async def read(client: Client, session_id: str, ends: int) -> list[StreamedEvent]:
    """All facts, by one who stays."""
    facts: list[StreamedEvent] = []
    async with client.follow(session_id) as events:
        async for event in events:
            if event.id is not None:
                facts.append(event)
            ends -= event.type == "turn.finished"
            if not ends:
                break
    return facts


async def read_restlessly(
    client: Client, session_id: str, ends: int, chance: random.Random
) -> list[StreamedEvent]:
    """All facts, by one who leaves after a few events and comes back where it was."""
    facts: list[StreamedEvent] = []
    while ends:
        stay = chance.randrange(1, 30)
        async with client.follow(session_id, facts[-1].id or 0 if facts else 0) as events:
            async for event in events:
                stay -= 1
                if event.id is not None:
                    facts.append(event)
                ends -= event.type == "turn.finished"
                if not ends or not stay:
                    break
    return facts


async def talk(here: ServedHost, session_id: str) -> None:
    for number in range(TURNS):
        await here.client.say(session_id, f"{number}")


async def test_no_reader_misses_a_fact_or_sees_one_twice(tmp_path: Path) -> None:
    def reply(text: str) -> ScriptedReply:
        return ScriptedReply(text=WORDS + text, piece=2)

    async with served_host(tmp_path, model=scripted(reply)) as here:
        names = [await here.client.open() for _ in range(SESSIONS)]
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(talk(here, name))
            staying = [group.create_task(read(here.client, name, TURNS)) for name in names]
            restless = [
                group.create_task(read_restlessly(here.client, name, TURNS, random.Random(name)))
                for name in names * 2
            ]
        for task, name in zip(staying + restless, names * 3, strict=True):
            facts = task.result()
            assert [event.id for event in facts] == list(range(1, len(facts) + 1))
            assert {event.data["session_id"] for event in facts} == {name}
        for name, task in zip(names * 2, restless, strict=True):
            whole = staying[names.index(name)].result()
            assert [event.raw for event in task.result()] == [event.raw for event in whole]


async def test_a_server_that_is_not_the_host_shows_the_hosts_sessions(tmp_path: Path) -> None:
    gate = Gate()
    model = scripted(lambda text: ScriptedReply(text=f"You said: {text}", hold=gate.wait))
    home = tmp_path / "home"
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=home, workspace=tmp_path, tools=[]) as host,
        Keryx(home=home, workspace=tmp_path) as app,
        serving(app.host_client, Settings(port=0, workspace=tmp_path)) as server,
    ):
        token = await in_thread(Tokens(home).make, "test")
        session = await host.open()
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
            client = Client(server.url, http)
            name = session.session_id
            sent = await client.say(name, "from afar")
            await gate.reached.wait()
            seen = await client.until(name, "step.snapshot")
            assert seen[-1].data["text"] == "You said: from afar"
            view = await client.get(f"/api/sessions/{name}")
            assert view["turn"]["turn_id"] == sent["turn_id"]
            gate.opened.set()
            assert (await client.finished(name, sent["turn_id"]))["outcome"] == "completed"
            async with client.stream("/api/events?after=0") as events:
                assert (await anext(events)).data["session_id"] == name
