"""What streams cost in Keryx against bare readers of the same streams: 200 paced, 1,000 at once.

Each stream of Keryx is a turn of a session of its own, logged durably and read by a subscriber of
its own. CPU time is that of the whole process, its store included.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import uvloop

from keryx import Keryx
from keryx.app import SessionHandle
from keryx.events import TextDelta
from parts.floor import USER, Floor, new_client
from parts.machine import Server, model_server
from parts.meter import PACED, RATE, Flood, Meter, OnText, Paced, Stream
from parts.peers import requested_peers
from parts.report import Figure

PACED_STREAMS = 200
FLOOD_STREAMS = 1_000
FLOOD = "flood-300"
ROUNDS = 3

Streams = Callable[[str, int], AbstractAsyncContextManager[list[Stream]]]
"""Makes so many streams of that model."""

CPU = Figure(f"{PACED_STREAMS} x {RATE} tokens/s: CPU per token", "us", digits=2)
MOST_CPU = 1.4
RATE_AT_ONCE = Figure(f"{FLOOD_STREAMS:,} streams at once", "tokens/s", digits=0, at_least=True)
LEAST_RATE = 0.5


async def read_turn(session: SessionHandle, on_text: OnText) -> None:
    turn = await session.send("hi")
    async for event in turn.events():
        if isinstance(event, TextDelta):
            on_text(event.text)


@asynccontextmanager
async def keryx_streams(model: str, count: int) -> AsyncGenerator[list[Stream]]:
    with tempfile.TemporaryDirectory() as home:
        async with Keryx(model=f"openai:{model}", home=home, workspace=home) as app:
            sessions = [await app.open() for _ in range(count)]
            yield [partial(read_turn, session) for session in sessions]


@asynccontextmanager
async def bare_streams(url: str, model: str, count: int) -> AsyncGenerator[list[Stream]]:
    async with new_client() as client:
        floor = Floor(client, url, model)
        yield [lambda on_text: floor.exchange([USER], on_text=on_text) for _ in range(count)]


async def paced(make: Streams) -> Paced:
    async with make(PACED, PACED_STREAMS) as streams:
        meter = Meter(streams)
        result = await meter.paced()
        await meter.wait_ended()
        return result


async def whole() -> float:
    async with keryx_streams(PACED, PACED_STREAMS) as streams:
        return await Meter(streams).whole()


async def flood(make: Streams) -> Flood:
    async with make(FLOOD, FLOOD_STREAMS) as streams:
        return await Meter(streams).flood()


async def measure(server: Server) -> None:
    """Both, each the best of some rounds, in turn with the floor."""
    os.environ["OPENAI_BASE_URL"] = server.url
    bare_make = partial(bare_streams, server.url)
    bare = list[Paced]()
    ours = list[Paced]()
    for _ in range(ROUNDS):
        bare.append(await paced(bare_make))
        ours.append(await paced(keryx_streams))
    best = [
        min(results, key=lambda result: (not result.is_steady, result.cpu_per_token))
        for results in (bare, ours)
    ]
    note = (
        f"  (wall/ideal {1 / best[0].keeps_up:.2f} and {1 / best[1].keeps_up:.2f}, "
        f"tokens at once {best[0].together:.2f} and {best[1].together:.2f})"
    )
    if not all(result.is_steady for result in best):
        note += "  NOT STEADY, the machine is busy: this figure means nothing"
    CPU.say(
        best[0].cpu_per_token, best[1].cpu_per_token, best[0].cpu_per_token * MOST_CPU, note=note
    )
    used = server.cpu_seconds()
    fast = [await flood(make) for _ in range(ROUNDS) for make in (bare_make, keryx_streams)]
    used = server.cpu_seconds() - used
    reads = max(fast[::2], key=lambda result: result.rate)
    turns = max(fast[1::2], key=lambda result: result.rate)
    note = f"  ({turns.together:.1f} tokens in a delta of Keryx; server {used:.1f} s CPU)"
    RATE_AT_ONCE.say(reads.rate, turns.rate, reads.rate * LEAST_RATE, note=note)


def main() -> int:
    peers = requested_peers()
    with (
        model_server() as server,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(measure(server))
        if peers:
            # Peers do not keep up, so all are compared by the whole of the same streams.
            ours = runner.run(whole())
            print(f"the same, turns' starts and ends included: keryx {ours * 1e6:.2f} us")
            CPU.say_peers(peers, "streams", server.url)
    return 0


if __name__ == "__main__":
    sys.exit(main())
