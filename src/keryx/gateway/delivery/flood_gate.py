"""When the next call to a chat may be made: one gate for sends, edits and previews.

A platform that says "too many requests" closes the gate for as long as it says. A closed gate lets
nothing through: another call would make the wait longer.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from keryx.aio.clock import Clock


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How fast a platform may be used. The defaults are the limits that Telegram publishes."""

    private_interval: float = 1.0
    """Seconds between calls to one person, after a few calls at once."""
    group_interval: float = 3.0
    burst: int = 3
    """Calls that may be made at once after a pause."""
    everywhere_interval: float = 1 / 30
    """Seconds between calls to all chats together."""
    preview_interval: float = 1.5
    """Seconds between two previews of an answer in one chat; twice that in groups."""
    backoff: float = 1.0
    """Seconds before a second attempt; doubled with each further one."""
    longest_backoff: float = 60.0

    def backoff_after(self, attempts: int) -> float:
        """Return the seconds to wait after that many attempts."""
        return min(self.backoff * 2.0 ** min(attempts, 10), self.longest_backoff)


DEFAULT_PACE: Final = Pace()


class FloodGate:
    """The gate of one chat, or of a whole account. It changes state synchronously."""

    def __init__(self, interval: float, burst: int) -> None:
        self._interval = interval
        self._burst = burst
        self._earliest = 0.0
        """When the gate would be open if it had let calls through evenly."""
        self._closed_until = 0.0

    def delay(self, now: float) -> float:
        """Return the seconds until the next call may be made."""
        allowance = self._interval * (self._burst - 1)
        return max(0.0, self._closed_until - now, self._earliest - allowance - now)

    def count(self, now: float) -> None:
        """Count a call that is made now."""
        self._earliest = max(self._earliest, now) + self._interval

    def close(self, now: float, seconds: float) -> None:
        self._closed_until = max(self._closed_until, now + seconds)


def gate_of(chat: str, pace: Pace) -> FloodGate:
    """Return a new gate for a chat; the ids of groups are negative."""
    interval = pace.group_interval if chat.startswith("-") else pace.private_interval
    return FloodGate(interval, pace.burst)


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait on this clock."""
    future = asyncio.get_running_loop().create_future()
    timer = clock.call_at(
        clock.monotonic() + seconds, lambda: future.done() or future.set_result(None)
    )
    try:
        await future
    finally:
        timer.cancel()
