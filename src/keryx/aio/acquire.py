"""Takes things in a thread that have to be given back: locks, open files, temporary folders.

A thread cannot be stopped. If its caller is cancelled while it takes something, what it takes would
belong to nobody: a home would stay locked, a folder would stay on the disk.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from keryx.aio.bridge import Bridge
from keryx.errors import ScopeClosedError

T = TypeVar("T")

PATIENCE: Final = 5.0
"""How long a cancelled caller waits for its thread. After that the thread gives it back alone."""


async def acquire(
    bridge: Bridge, take: Callable[[], T], give_back: Callable[[T], object], *, name: str = "take"
) -> T:
    """Run `take` in a thread. If the caller is cancelled meanwhile, the thing is given back first.

    Both functions are blocking. `give_back` gets only what nobody else has got.
    """
    # Whoever takes the thing out of the list has it. Taking it out is atomic.
    handover: list[T] = []
    is_given_up = threading.Event()

    def work() -> None:
        handover.append(take())
        if is_given_up.is_set():
            give_back_the_rest()

    def give_back_the_rest() -> None:
        try:
            thing = handover.pop()
        except IndexError:
            return
        give_back(thing)

    taking = bridge.start_thread(work, name=name).future
    try:
        await asyncio.shield(taking)
    except asyncio.CancelledError:
        is_given_up.set()
        ends = [taking]
        if handover:  # The thread may have looked at the event before it was set.
            with suppress(ScopeClosedError):
                ends.append(bridge.start_thread(give_back_the_rest, name=name).future)
        if bridge.is_closed:
            give_back_the_rest()
        await asyncio.wait(ends, timeout=PATIENCE)
        raise
    return handover.pop()


async def release(
    bridge: Bridge, give_back: Callable[[], object], *, name: str = "release"
) -> None:
    """Run `give_back` in a thread. A caller that is cancelled meanwhile waits for its end."""
    releasing = bridge.start_thread(give_back, name=name).future
    try:
        await asyncio.shield(releasing)
    except asyncio.CancelledError:
        await asyncio.wait([releasing], timeout=PATIENCE)
        raise
