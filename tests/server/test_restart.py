"""A server that is killed in mid-turn and started again: readers go on where they were."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.server.served_host import PATIENCE, StreamedEvent
from tests.server.server_process import served
from tests.server.server_program import WORDS

pytestmark = pytest.mark.promise("004.1")


async def killed_in_mid_turn(path: Path) -> tuple[str, str, list[StreamedEvent]]:
    """A session, its turn, and what a reader had seen when the server was killed."""
    seen: list[StreamedEvent] = []
    async with served(path) as (client, process):
        name = await client.open()
        sent = await client.say(name, "slowly", key="once")
        async with client.follow(name) as events:
            async for event in events:
                seen.append(event)
                if sum(earlier.type == "text.delta" for earlier in seen) == 5:
                    break
            process.kill()
    return name, sent["turn_id"], seen


async def test_a_killed_server_loses_no_fact_and_readers_go_on(tmp_path: Path) -> None:
    name, turn_id, seen = await killed_in_mid_turn(tmp_path)
    facts = [event for event in seen if event.id is not None]
    last = facts[-1].id
    assert last is not None
    async with served(tmp_path) as (client, _):
        rest: list[StreamedEvent] = []
        path = f"/api/sessions/{name}/events"
        headers = {"Last-Event-ID": str(last)}
        async with client.stream(path, headers=headers) as events:
            async for event in events:
                rest.append(event)
                if event.type == "turn.finished":
                    break
        resumed = [event for event in rest if event.id is not None]
        numbers = [event.id for event in facts + resumed]
        assert numbers == list(range(1, len(numbers) + 1))
        whole = await client.until(name, "turn.finished")
        assert [event.raw for event in facts + resumed] == [
            event.raw for event in whole if event.id is not None
        ]
        assert (rest[-1].data["turn_id"], rest[-1].data["outcome"]) == (turn_id, "completed")
        replied = [event.data["text"] for event in whole if event.type == "step.replied"]
        assert replied == [WORDS]
        assert [event.type for event in whole].count("turn.finished") == 1
        again = await client.say(name, "slowly", key="once")
        assert again["turn_id"] == turn_id
        more = await client.say(name, "and now?")
        assert (await client.finished(name, more["turn_id"]))["outcome"] == "completed"


async def test_a_server_that_ends_lets_its_turns_go_on_at_the_next_start(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, process):
        name = await client.open()
        sent = await client.say(name, "slowly")
        async with client.follow(name) as events:
            async for event in events:
                if event.type == "text.delta":
                    break
            assert process.stdin is not None
            process.stdin.close()
            async with asyncio.timeout(PATIENCE):
                async for _ in events:
                    pass
        assert process.wait(PATIENCE) == 0
    async with served(tmp_path) as (client, _):
        assert (await client.finished(name, sent["turn_id"]))["outcome"] == "completed"
