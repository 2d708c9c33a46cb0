"""One stream to many readers, with replay by sequence number.

Facts are numbered without gaps and every reader gets each of them once, in order. Passing items
have no number and may be lost. A reader that falls behind its bound loses what waits for it, is
told so by an item, and then reads the facts that it missed again. So a slow reader grows no memory
and slows nobody.

The hub knows nothing of what it carries.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from itertools import islice
from typing import Final, Generic, TypeVar

T = TypeVar("T")

# What a reader may have waiting. A screen that is further behind than this is better served by
# the facts themselves than by the deltas that led to them.
READER_ITEMS: Final = 2_000
READER_WEIGHT: Final = 4_000_000
# How many recent facts are kept for readers that come back after a moment, and how much they weigh.
RECENT_FACTS: Final = 256
RECENT_WEIGHT: Final = 1_000_000

Replay = Callable[[int, int], AsyncIterator[tuple[int, T]]]
"""Reads the facts after one number up to and including another, from the log."""


class Hub(Generic[T]):
    """Publishes items to its readers. Belongs to one loop; publishing is synchronous."""

    def __init__(
        self,
        *,
        replay: Replay[T],
        lost: Callable[[], T],
        snapshot: Callable[[], Iterable[T]] = tuple,
        last: int = 0,
        recent: int = RECENT_FACTS,
    ) -> None:
        self._replay = replay
        self._snapshot = snapshot
        self.lost: Final = lost
        """Makes the item that tells a reader that passing items were lost."""
        self._last = last
        self._recent: deque[tuple[int, T, int]] = deque()
        self._most_recent = recent
        self._recent_weight = 0
        self._readers: set[Reader[T]] = set()
        self.on_empty: Callable[[], None] | None = None
        """Called when the last reader has gone."""
        self._end: tuple[BaseException | None] | None = None

    @property
    def last(self) -> int:
        """The number of the newest fact."""
        return self._last

    @property
    def readers(self) -> int:
        return len(self._readers)

    def publish_facts(self, facts: Iterable[tuple[int, T, int]]) -> None:
        """Publish numbered facts after their commit: number, item, weight in bytes.

        The numbers have no gaps.
        """
        for seq, item, weight in facts:
            if seq != self._last + 1:
                raise ValueError(f"fact {seq} does not follow {self._last}: numbers have no gaps")
            self._last = seq
            self._remember(seq, item, weight)
            for reader in self._readers:
                reader.push(seq, item, weight)

    def _remember(self, seq: int, item: T, weight: int) -> None:
        recent = self._recent
        recent.append((seq, item, weight))
        self._recent_weight += weight
        while len(recent) > self._most_recent or self._recent_weight > RECENT_WEIGHT:
            self._recent_weight -= recent.popleft()[2]

    def publish(self, item: T, *, weight: int = 1) -> None:
        """A passing item."""
        for reader in self._readers:
            reader.push(None, item, weight)

    def read(
        self,
        *,
        after: int | None = None,
        items: int = READER_ITEMS,
        weight: int = READER_WEIGHT,
    ) -> Reader[T]:
        """A new reader: facts after that number (default: only what comes), a snapshot, the rest.

        It counts from now, not from the first `async for`.
        """
        reader = Reader(self, self._last if after is None else after, items, weight)
        self._readers.add(reader)
        if self._end is not None:
            reader.end(self._end[0])
        return reader

    def close(self, error: BaseException | None = None) -> None:
        """Nothing more will come: readers end once they have read what there is, or fail."""
        self._end = self._end or (error,)
        for reader in self._readers:
            reader.end(self._end[0])

    # -- for readers

    def facts(self, after: int, upto: int) -> AsyncIterator[tuple[int, T]] | list[tuple[int, T]]:
        """The facts after one number up to another: from memory if it reaches back far enough."""
        if self._recent and self._recent[0][0] <= after + 1:
            # From the end: most who come have missed little.
            latest = islice(reversed(self._recent), self._last - after)
            return [(seq, item) for seq, item, _ in reversed(list(latest)) if seq <= upto]
        return self._replay(after, upto)

    def snapshot(self) -> tuple[T, ...]:
        return tuple(self._snapshot())

    def set_snapshot(self, snapshot: Callable[[], Iterable[T]]) -> None:
        """From now on this tells what streams right now: another source has taken over."""
        self._snapshot = snapshot

    def forget(self, reader: Reader[T]) -> None:
        if reader in self._readers:
            self._readers.discard(reader)
            if not self._readers and self.on_empty is not None:
                self.on_empty()


class Reader(Generic[T]):
    """One reader's place in the stream. Iterate it; close it (or leave `async with`)."""

    def __init__(self, hub: Hub[T], after: int, items: int, weight: int) -> None:
        self._hub = hub
        self._seen = after
        self._items = items
        self._weight = weight
        self._queue: deque[tuple[int | None, T, int]] = deque()
        self._queued = 0
        self._woken: asyncio.Future[None] | None = None
        self._behind = True
        self._target = hub.last
        self._greeting = hub.snapshot()
        self._lost = False
        self._closed = False
        self._end: tuple[BaseException | None] | None = None

    @property
    def seen(self) -> int:
        """The number of the last fact that was handed out."""
        return self._seen

    @property
    def waiting(self) -> int:
        """How many items wait for this reader."""
        return len(self._queue)

    def push(self, seq: int | None, item: T, weight: int) -> None:
        """Take an item from the hub; past the bound, drop all that waits instead."""
        if self._lost:
            return
        if len(self._queue) >= self._items or self._queued + weight > self._weight:
            self._queue.clear()
            self._queued = 0
            self._lost = True
        else:
            self._queue.append((seq, item, weight))
            self._queued += weight
        if self._woken is not None:
            self._wake()

    def end(self, error: BaseException | None) -> None:
        """Nothing more will be pushed."""
        self._end = (error,)
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._hub.forget(self)
        self._queue.clear()
        self._queued = 0
        self._wake()

    async def __aenter__(self) -> Reader[T]:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    async def __aiter__(self) -> AsyncGenerator[T]:
        loop = asyncio.get_running_loop()
        try:
            while not self._closed:
                if self._behind:
                    async for item in self._catch_up():
                        yield item
                elif self._lost:
                    self._start_again()
                    yield self._hub.lost()
                elif self._queue:
                    seq, item, weight = self._queue.popleft()
                    self._queued -= weight
                    if seq is not None:
                        self._seen = seq
                    yield item
                elif self._end is not None:
                    self._closed = True
                    if self._end[0] is not None:
                        raise self._end[0]
                else:
                    # Not in a method of its own: every item that is waited for passes here.
                    self._woken = loop.create_future()
                    try:
                        await self._woken
                    finally:
                        self._woken = None
        finally:
            self.close()

    async def _catch_up(self) -> AsyncIterator[T]:
        """Hand out the missed facts up to where the queue begins, then what streams right now."""
        if self._seen < self._target:
            found = self._hub.facts(self._seen, self._target)
            if isinstance(found, list):
                for seq, item in found:
                    self._seen = seq
                    yield item
            else:
                async for seq, item in found:
                    self._seen = seq
                    yield item
        self._behind = False
        for item in self._greeting:
            yield item
        self._greeting = ()

    def _start_again(self) -> None:
        # One synchronous step: what is published from here on is queued, all before is replayed.
        self._lost = False
        self._behind = True
        self._target = self._hub.last
        self._greeting = self._hub.snapshot()

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)
