"""What a host holds: sessions that passed, rest or are watched, and a reader that has stalled.

Each case runs in a process of its own, so that nothing of another one counts. `--whole` lets
10,000 sessions pass instead of 1,000.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

from keryx import Keryx
from keryx.app import SessionHandle
from keryx.models.scripted import ScriptedModel, ScriptedReply

MANY, FEW = (10_000 if "--whole" in sys.argv else 1_000), 100
LARGE, TURNS = 12, 200
TEXT = "A sentence of a reply that is as long as replies are. " * 20
REPLIES, PIECES, PIECE = 30, 40, 46_000
STALLED = 8.0


def megabytes() -> float:
    """What this process holds now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def host(home: str) -> Keryx:
    def reply(_: object) -> ScriptedReply:
        model.asked.clear()  # kept for tests, which look at them
        return ScriptedReply(text=TEXT, piece=len(TEXT))

    model = ScriptedModel(reply)
    return Keryx(model=model, tools=[], home=home, workspace=home)


async def talk(session: SessionHandle, turns: int) -> None:
    for _ in range(turns):
        await (await session.send("hi")).result()


async def passed(home: str, count: int) -> float:
    """How much larger a host is after so many sessions than after the first ones."""
    async with host(home) as app:
        for _ in range(FEW):
            await talk(await app.open(), 1)
        before = megabytes()
        for _ in range(count - FEW):
            await talk(await app.open(), 1)
        return megabytes() - before


async def resting(home: str) -> float:
    """Return the growth by long sessions that were used once and are idle."""
    names = await create_sessions(home)
    async with host(home) as app:
        await talk(await app.open(), 5)
        before = megabytes()
        for name in names:
            await talk(await app.open(name), 1)
        return megabytes() - before


async def watched(home: str) -> float:
    """Return the growth by long sessions that have readers and get no messages."""
    names = await create_sessions(home)
    async with host(home) as app, AsyncExitStack() as stack:
        await talk(await app.open(), 5)
        before = megabytes()
        for name in names:
            row = await app.store.session(name)
            assert row is not None
            events = await app.host_client.follow(name, after=row.last_seq - 1)
            await anext(await stack.enter_async_context(aclosing(events)))
        return megabytes() - before


async def streamed(home: str, *, is_watched: bool) -> float:
    """Return the memory after long replies, with a reader that has stalled or with none."""
    reply = ScriptedReply(text="".join(map(str, range(PIECES * PIECE // 4))), piece=PIECE)
    app = Keryx(model=ScriptedModel([reply] * REPLIES), tools=[], home=home, workspace=home)
    async with app, AsyncExitStack() as stack:
        session = await app.open()
        tracemalloc.start()  # exact: freed memory that the process keeps is not counted
        if is_watched:
            events = await stack.enter_async_context(aclosing(await session.follow(0)))
            await anext(events)
        await talk(session, REPLIES)
        await app.host_client.store.search("0")  # the index holds nothing of this any more
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / 1e6


async def create_sessions(home: str) -> list[str]:
    """Create long sessions in another process, and return their ids."""
    command = [sys.executable, __file__, "make", home]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: ASYNC221 (nothing else runs)
    return done.stdout.split()


async def make(home: str) -> None:
    async with host(home) as app:
        for _ in range(LARGE):
            session = await app.open()
            await talk(session, TURNS)
            print(session.session_id)


CASES: dict[str, tuple[str, Callable[[str], Coroutine[Any, Any, float]]]] = {
    "passed": (f"{MANY:,} sessions passed, against {FEW}", lambda home: passed(home, MANY)),
    "resting": (f"{LARGE} sessions of {TURNS} turns at rest", resting),
    "watched": (f"{LARGE} such sessions, merely watched", watched),
    "unwatched": ("", lambda home: streamed(home, is_watched=False)),
    "stalled": ("a reader that has stalled", lambda home: streamed(home, is_watched=True)),
}


def main() -> int:
    if len(sys.argv) > 2 and sys.argv[1] == "make":
        asyncio.run(make(sys.argv[2]))
        return 0
    if len(sys.argv) > 1 and sys.argv[1] in CASES:
        with tempfile.TemporaryDirectory() as home:
            print(asyncio.run(CASES[sys.argv[1]][1](home)))
        return 0
    grown: dict[str, float] = {}
    for name in CASES:
        command = [sys.executable, __file__, name, *sys.argv[1:]]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        grown[name] = float(done.stdout)
    grown["stalled"] -= grown["unwatched"]
    for name, (what, _) in CASES.items():
        if what:
            limit = f"limit <= {STALLED:.0f} MB" if name == "stalled" else ""
            print(f"{what:<48} {grown[name]:+7.1f} MB  {limit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
