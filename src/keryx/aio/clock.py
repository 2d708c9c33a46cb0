"""Injected time: the real one, or one that a test moves by hand; and the heap of deadlines.

Whoever waits takes a `Clock`. Nothing else in Keryx asks the machine what time it is.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol

Callback = Callable[[], object]


class Timer(Protocol):
    """What `call_at` returns."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """A monotonic time that deadlines count in, and the wall's time that logs show."""

    def monotonic(self) -> float: ...

    def wall(self) -> float: ...

    def call_at(self, when: float, callback: Callback) -> Timer:
        """Run the callback on the running loop once `monotonic()` has reached `when`."""
        ...


class RealClock:
    """The machine's time. asyncio and uvloop both count in `time.monotonic`."""

    # The functions themselves: they are called several times for every event.
    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    def call_at(self, when: float, callback: Callback) -> Timer:
        # uvloop rounds its own idea of now to milliseconds, so the delay is computed here.
        delay = max(0.0, when - time.monotonic())
        return asyncio.get_running_loop().call_later(delay, callback)


class _FakeTimer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callback) -> None:
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    """A time that stands still until `advance` moves it."""

    def __init__(self, start: float = 1000.0, wall: float = 1_700_000_000.0) -> None:
        self._now = start
        self._wall_offset = wall - start
        self._order = itertools.count()
        self._timers: list[tuple[float, int, _FakeTimer]] = []

    def monotonic(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._now + self._wall_offset

    def call_at(self, when: float, callback: Callback) -> Timer:
        timer = _FakeTimer(callback)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Move on, running each timer at its own instant, in order."""
        target = self._now + seconds
        while self._timers and self._timers[0][0] <= target:
            when, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, when)
            if timer.callback is not None:
                timer.callback()
        self._now = target


class Deadlines:
    """All deadlines of one scope tree, in one heap behind one timer of the loop."""

    __slots__ = ("_clock", "_heap", "_order", "_stale", "_timer", "_timer_at")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[Deadline] = []
        self._order = itertools.count()
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._stale = 0

    def __len__(self) -> int:
        return len(self._heap) - self._stale

    @property
    def clock(self) -> Clock:
        return self._clock

    def add(self, when: float, callback: Callback) -> Deadline:
        """Run the callback on the owner loop at `when`, unless it is dropped before."""
        entry = Deadline(when, next(self._order), callback)
        heapq.heappush(self._heap, entry)
        self._arm()
        return entry

    def drop(self, entry: Deadline) -> None:
        """Forget an entry. Most deadlines end so; the heap is swept when half of it is stale."""
        if entry.callback is None:
            return
        entry.callback = None
        self._stale += 1
        if self._stale * 2 > len(self._heap):
            self._heap = [kept for kept in self._heap if kept.callback is not None]
            heapq.heapify(self._heap)
            self._stale = 0
            self._arm()

    def _arm(self) -> None:
        if not self._heap:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            return
        first = self._heap[0].when
        if self._timer is not None:
            if self._timer_at <= first:
                return
            self._timer.cancel()
        self._timer_at = first
        self._timer = self._clock.call_at(first, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        while self._heap and self._heap[0].when <= now:
            entry = heapq.heappop(self._heap)
            callback, entry.callback = entry.callback, None
            if callback is None:
                self._stale -= 1
            else:
                callback()
        self._arm()


class Deadline:
    """One entry of the heap; an entry without callback is stale."""

    __slots__ = ("callback", "order", "when")

    def __init__(self, when: float, order: int, callback: Callback) -> None:
        self.when = when
        self.order = order
        self.callback: Callback | None = callback

    def __lt__(self, other: Deadline) -> bool:
        return (self.when, self.order) < (other.when, other.order)
