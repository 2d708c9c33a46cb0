"""The main part of a peer's program: it measures turns of any package.

It uses the standard library only, and uvloop where the peer's Python has it.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from .meter import PACED, Meter, OnText

Turn = Callable[[str, OnText], Coroutine[Any, Any, object]]
"""Says "hi" to the model of that name, and passes on the text as it streams."""

TURNS: Final = 50
LONG_TURNS: Final = 3
STREAMS: Final = 200


def ignore(text: str) -> None:
    """Drop the text."""


def run_peer(make: Callable[[str], Turn]) -> None:
    """Measure what the command line asks for and print it. `make` gets the server's address."""
    what, url = sys.argv[1:]
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        if what == "cold":
            runner.run(make(url)("answer-5", ignore))
            return
        print(runner.run(_measure(what, make(url))), flush=True)
        # Some streams still run, and some packages would wait for them.
        os._exit(0)


async def _measure(what: str, turn: Turn) -> float:
    if what == "turn":
        return await _median(partial(turn, "answer-5"), TURNS)
    if what == "steps":
        return await _median(partial(turn, "steps-100"), LONG_TURNS)
    # Not a part of the time: no peer here keeps up with so many tokens on one core.
    await turn("answer-5", ignore)
    return await Meter([partial(turn, PACED)] * STREAMS).whole()


async def _median(turn: Callable[[OnText], Coroutine[Any, Any, object]], count: int) -> float:
    took: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        await turn(ignore)
        took.append(time.perf_counter() - began)
    return statistics.median(took[count // 10 :])


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 (the peer's Python may not have it)
    except ImportError:
        return None
    return uvloop.new_event_loop
