"""Many sessions that stream at a reader's pace, with readers of all kinds: two for each session, a
third of whom keep leaving and coming back; and a third one for many, who does not read at all."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.server.served_host import Client, StreamedEvent, parsed
from tests.server.server_process import resident, served

SESSIONS, WORDS = (200, 200) if SOAK else (40, 40)
PATIENCE = 300.0 if SOAK else 50.0
MOST_MEMORY = 150_000_000
"""What so many sessions and readers may add to a server: a reader's bound times their number is
far more, so a server that queued for those who do not read would pass it in the long form."""

pytestmark = [pytest.mark.promise("004.1", "004.3", "server.2"), pytest.mark.timeout(PATIENCE + 20)]


def facts_of(events: list[StreamedEvent]) -> list[int]:
    return [event.id for event in events if event.id is not None]


async def stays(client: Client, session_id: str) -> list[StreamedEvent]:
    return await client.until(session_id, "turn.finished")


async def comes_and_goes(
    client: Client, session_id: str, chance: random.Random
) -> list[StreamedEvent]:
    received: list[StreamedEvent] = []
    while True:
        stay = chance.randrange(1, 20)
        facts = facts_of(received)
        async with client.follow(session_id, facts[-1] if facts else 0) as events:
            async for event in events:
                received.append(event)
                stay -= 1
                if event.type == "turn.finished":
                    return received
                if not stay:
                    break


class Stalled:
    """Opens a stream, and reads nothing of it until it is told to."""

    async def open(self, client: Client, session_id: str) -> None:
        host, _, port = client.url.removeprefix("http://").partition(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port), limit=16_384)
        token = client.http.headers["Authorization"]
        self._writer.write(
            f"GET /api/sessions/{session_id}/events?after=0 HTTP/1.1\r\n"
            f"Host: {host}:{port}\r\nAuthorization: {token}\r\n\r\n".encode()
        )
        await self._writer.drain()

    async def read(self) -> list[int]:
        """The numbers of all facts, now that it reads at last."""
        numbers: list[int] = []
        block = b""
        while True:
            line = (await self._reader.readuntil(b"\n")).replace(b"\r", b"")
            block += line
            if line == b"\n":
                event, block = parsed(block), b""
                if event is not None and event.id is not None:
                    numbers.append(event.id)
                if event is not None and event.type == "turn.finished":
                    self._writer.close()
                    return numbers


async def test_readers_of_all_kinds_miss_nothing_and_slow_nobody(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), served(tmp_path) as (client, process):
        names = [await client.open() for _ in range(SESSIONS)]
        stalled = [Stalled() for _ in names[::3]]
        for name, reader in zip(names[::3], stalled, strict=True):
            await reader.open(client, name)
        before = resident(process)
        async with asyncio.TaskGroup() as group:
            readers = [
                group.create_task(
                    comes_and_goes(client, name, random.Random(name))
                    if number % 3 == 1
                    else stays(client, name)
                )
                for number, name in enumerate(names * 2)
            ]
            for name in names:
                await client.say(name, f"read to me {WORDS}")
        grown = resident(process) - before
        # Every turn has ended, with a third of the streams open and never read.
        for name, task in zip(names * 2, readers, strict=True):
            received = task.result()
            facts = facts_of(received)
            assert facts == list(range(1, len(facts) + 1))
            (replied,) = [event.data["text"] for event in received if event.type == "step.replied"]
            assert replied == "".join(f"{number:05d} " for number in range(WORDS))
            assert {event.data["session_id"] for event in received} == {name}
        for reader in stalled:
            numbers = await reader.read()
            assert numbers == list(range(1, len(numbers) + 1))
        assert grown < MOST_MEMORY
