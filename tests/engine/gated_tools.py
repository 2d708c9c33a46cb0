"""Tools that wait until a test opens their gate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from keryx.ports.effects import NO_EFFECTS, Effects
from keryx.tools.function import tool


@tool(effects=NO_EFFECTS)
async def echo(text: str) -> str:
    """Say it again."""
    return text


@tool(effects=NO_EFFECTS)
def echo_blocking(text: str) -> str:
    """Say it again, in a thread."""
    return text


class Gates:
    """A tool whose calls wait until the test lets each of them go."""

    def __init__(self, effects: Effects | Callable[[Any], Effects] = NO_EFFECTS) -> None:
        self.running: list[str] = []
        self.order: list[str] = []
        self.changed = asyncio.Event()
        self._gates: dict[str, asyncio.Event] = {}

        @tool(effects=effects)
        async def gate(name: str, path: str = "") -> str:
            """Wait to be let go."""
            self.running.append(name)
            self.order.append(name)
            self.changed.set()
            try:
                await self._gate(name).wait()
            finally:
                self.running.remove(name)
                self.changed.set()
            return name

        self.tool = gate

    async def until_running(self, *names: str) -> None:
        """Wait by event until just these run."""
        while sorted(self.running) != sorted(names):
            self.changed.clear()
            await self.changed.wait()
        await turns()
        assert sorted(self.running) == sorted(names)

    def _gate(self, name: str) -> asyncio.Event:
        return self._gates.setdefault(name, asyncio.Event())

    def open(self, *names: str) -> None:
        for name in names:
            self._gate(name).set()


async def turns(count: int = 10) -> None:
    """Let everything that can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)
