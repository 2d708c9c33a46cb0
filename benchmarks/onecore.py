"""What turns cost on one core with asyncio's own loop, against a bare aiohttp + msgspec loop.

The bare loop does the same requests with no agent around it, in the same run and in turn with
Keryx, whose figures include its durable log. The model server runs on another core.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from keryx import Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from parts.floor import USER, Floor, new_client
from parts.machine import model_server
from parts.report import Figure
from turns import COLD, TOOLS, add, bare_turn, cold

REPEATS = 300
NEW = Figure("a new session with one turn", "ms")
TURN = Figure("a turn in an open session", "ms")
TOOL = Figure("a turn with one tool round", "ms")
TOKEN = Figure("until the first token", "ms")
LIMITS = {NEW: 0.0013, TURN: 0.0009, TOOL: 0.0025, TOKEN: 0.0016}
COLD_ABOVE_FLOOR = 0.12
FRESH = 40
"""Turns after which a session is exchanged for a new one, so that its history stays short."""


async def median(
    bare: Callable[[], Awaitable[None]], ours: Callable[[], Awaitable[None]]
) -> tuple[float, float]:
    """Median seconds of both, measured in turn."""
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS):
        for work, seconds in zip((bare, ours), took, strict=True):
            began = time.perf_counter()
            await work()
            seconds.append(time.perf_counter() - began)
    warm = REPEATS // 10
    return statistics.median(took[0][warm:]), statistics.median(took[1][warm:])


class Ours:
    """Keryx, asked as the bare loop is."""

    def __init__(self, app: Keryx) -> None:
        self._app = app
        self._session: SessionHandle | None = None
        self._turns = 0

    async def new_session(self) -> None:
        session = await self._app.open()
        await (await session.send("hi")).result()

    async def turn(self) -> None:
        await (await (await self._opened()).send("hi")).result()

    async def first_token(self) -> float:
        """When the first token of a turn came."""
        arrival = 0.0
        turn = await (await self._opened()).send("hi")
        async with aclosing(turn.events()) as events:
            async for event in events:
                if not arrival and isinstance(event, ev.TextDelta):
                    arrival = time.perf_counter()
        return arrival

    async def _opened(self) -> SessionHandle:
        self._turns += 1
        if self._session is None or self._turns % FRESH == 0:
            self._session = await self._app.open()
        return self._session


async def measure(url: str) -> dict[Figure, tuple[float, float]]:
    os.environ["OPENAI_BASE_URL"] = url
    figures: dict[Figure, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as home:
        async with new_client() as client:
            for figure, model in ((NEW, "answer-5"), (TURN, "answer-5"), (TOOL, "steps-1")):
                async with Keryx(
                    model=f"openai:{model}", tools=[add], home=home, workspace=home
                ) as app:
                    floor, ours = Floor(client, url, model), Ours(app)
                    work = ours.turn if figure is TURN else ours.new_session
                    figures[figure] = await median(lambda floor=floor: bare_turn(floor), work)
            async with Keryx(
                model="openai:answer-5", tools=[add], home=home, workspace=home
            ) as app:
                figures[TOKEN] = await first_tokens(Floor(client, url, "answer-5"), Ours(app))
    return figures


async def first_tokens(floor: Floor, ours: Ours) -> tuple[float, float]:
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS):
        arrivals: list[float] = []
        began = time.perf_counter()
        await floor.exchange(
            [USER], TOOLS, lambda _, arrivals=arrivals: arrivals.append(time.perf_counter())
        )
        took[0].append(arrivals[0] - began)
        began = time.perf_counter()
        took[1].append(await ours.first_token() - began)
    warm = REPEATS // 10
    return statistics.median(took[0][warm:]), statistics.median(took[1][warm:])


def main() -> int:
    with model_server() as server:
        with asyncio.Runner() as runner:
            for figure, (bare, ours) in runner.run(measure(server.url)).items():
                figure.say(bare, ours, LIMITS[figure])
        bare, ours = cold(server.url)
        COLD.say(bare, ours, bare + COLD_ABOVE_FLOOR)
    return 0


if __name__ == "__main__":
    sys.exit(main())
