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
STALLED = 8.0


def megabytes() -> float:
    """What this process holds now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def host(home: str) -> Keryx:
    def reply(_: object) -> ScriptedReply:
        return ScriptedReply(text=TEXT, piece=len(TEXT))

    return Keryx(model=ScriptedModel(reply), tools=[], home=home, workspace=home)


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
    """Long sessions that were used once and rest."""
    names = await made(home)
    async with host(home) as app:
        await talk(await app.open(), 5)
        before = megabytes()
        for name in names:
            await talk(await app.open(name), 1)
        return megabytes() - before


async def watched(home: str) -> float:
    """Long sessions that somebody watches and nobody talks to."""
    names = await made(home)
    async with host(home) as app, AsyncExitStack() as stack:
        await talk(await app.open(), 5)
        before = megabytes()
        for name in names:
            row = await app.store.session(name)
            assert row is not None
            events = await app.front.follow(name, after=row.last_seq - 1)
            await anext(await stack.enter_async_context(aclosing(events)))
        return megabytes() - before


async def stalled(home: str) -> float:
    """A reader that reads nothing while much is said."""
    async with host(home) as app:
        session = await app.open()
        await talk(session, 20)
        before = megabytes()
        async with aclosing(await session.follow(0)) as events:
            await anext(events)
            await talk(session, 2_000)
            held = megabytes()
        without = held - before
        async with host(f"{home}/other") as other:
            alone = await other.open()
            await talk(alone, 20)
            before = megabytes()
            await talk(alone, 2_000)
            return without - (megabytes() - before)


async def made(home: str) -> list[str]:
    """Long sessions, made by a process that is over."""
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
    "stalled": ("a reader that has stalled", stalled),
}


def main() -> int:
    if len(sys.argv) > 2 and sys.argv[1] == "make":
        asyncio.run(make(sys.argv[2]))
        return 0
    if len(sys.argv) > 1 and sys.argv[1] in CASES:
        with tempfile.TemporaryDirectory() as home:
            print(asyncio.run(CASES[sys.argv[1]][1](home)))
        return 0
    for name, (what, _) in CASES.items():
        command = [sys.executable, __file__, name, *sys.argv[1:]]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        grown = float(done.stdout)
        limit = f"limit <= {STALLED:.0f} MB" if name == "stalled" else ""
        print(f"{what:<48} {grown:+7.1f} MB  {limit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
