"""Tools for `benchmarks/workers.py`; workers import this module by its name."""

from __future__ import annotations

import signal
import time

from keryx.ports.effects import NO_EFFECTS
from keryx.tools.function import tool

process = tool(isolation="process", effects=NO_EFFECTS)
FOREVER = 1000


def plain(text: str) -> str:
    """Give it back."""
    return text


echo = process(plain)
threaded = tool(isolation="thread", effects=NO_EFFECTS, name="threaded")(plain)


@process
def fail() -> None:
    """Fail, so that the next call needs a new worker."""
    raise RuntimeError


@process
def sleep() -> None:
    """Sleep; a signal ends it."""
    print("hanging")
    time.sleep(FOREVER)


@process
def spin() -> None:
    """Compute for ever."""
    print("hanging")
    while True:
        sum(range(100))


@process
def ignore() -> None:
    """Ignore the signal to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("hanging")
    time.sleep(FOREVER)


@process
def hold() -> None:
    """Compute in C: with the lock of the interpreter held, and deaf to signals."""
    print("hanging")
    sum(range(10**12))


HANGS = (sleep, spin, ignore, hold)
