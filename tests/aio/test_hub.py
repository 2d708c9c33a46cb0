"""The hub: every reader gets every fact once and in order, however slow it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from keryx.aio.hub import RECENT_WEIGHT, Hub, Reader

pytestmark = pytest.mark.promise("house.4")

RESYNC = "resync"


class Log:
    """A log of facts, and the hub over it."""

    def __init__(self, *, recent: int = 4) -> None:
        self.facts: list[str] = []
        self.replayed = 0
        self.streaming = ""
        self.hub: Hub[str] = Hub(
            replay=self.replay, lost=lambda: RESYNC, snapshot=self.snapshot, recent=recent
        )

    async def replay(self, after: int, upto: int) -> AsyncIterator[tuple[int, str]]:
        self.replayed += 1
        for seq in range(after + 1, upto + 1):
            await asyncio.sleep(0)
            yield seq, self.facts[seq - 1]

    def snapshot(self) -> tuple[str, ...]:
        return (f"snapshot {self.streaming}",) if self.streaming else ()

    def append(self) -> None:
        fact = f"fact {len(self.facts) + 1}"
        self.facts.append(fact)
        self.hub.publish_facts([(len(self.facts), fact, 1)])


async def take(reader: Reader[str], count: int) -> list[str]:
    """The next items of a reader."""
    items: list[str] = []
    stream = aiter(reader)
    while len(items) < count:
        items.append(await anext(stream))
    return items


async def test_a_reader_gets_what_is_published_in_order() -> None:
    log = Log()
    async with log.hub.read() as reader:
        log.append()
        log.hub.publish("delta")
        log.append()
        assert await take(reader, 3) == ["fact 1", "delta", "fact 2"]
        assert reader.seen == 2


async def test_a_reader_waits_for_what_comes() -> None:
    log = Log()
    async with log.hub.read() as reader:
        waiting = asyncio.create_task(take(reader, 1))
        await asyncio.sleep(0)
        log.append()
        assert await waiting == ["fact 1"]


async def test_a_late_reader_gets_missed_facts_then_a_snapshot_then_the_rest() -> None:
    log = Log()
    for _ in range(3):
        log.append()
    log.streaming = "Hel"
    async with log.hub.read(after=1) as reader:
        log.hub.publish("lo")
        log.append()
        assert await take(reader, 5) == ["fact 2", "fact 3", "snapshot Hel", "lo", "fact 4"]
    assert log.replayed == 0, "recent facts come from memory"


async def test_facts_older_than_memory_are_read_from_the_log() -> None:
    log = Log(recent=2)
    for _ in range(10):
        log.append()
    async with log.hub.read(after=0) as reader:
        assert await take(reader, 10) == log.facts
    assert log.replayed == 1


async def test_what_is_published_during_the_replay_comes_after_it() -> None:
    log = Log(recent=1)
    for _ in range(5):
        log.append()
    async with log.hub.read(after=0) as reader:
        stream = aiter(reader)
        first = await anext(stream)
        log.append()
        following = [await anext(stream) for _ in range(5)]
    assert [first, *following] == log.facts


async def test_a_slow_reader_is_told_and_then_reads_the_facts_again() -> None:
    log = Log(recent=2)
    async with log.hub.read(items=3) as slow, log.hub.read() as quick:
        for _ in range(6):
            log.append()
            log.hub.publish("delta")
        log.streaming = "now"
        assert slow.waiting == 0, "nothing waits for a reader that is behind"
        assert await take(slow, 8) == [RESYNC, *log.facts, "snapshot now"]
        assert len(await take(quick, 12)) == 12


async def test_weight_bounds_a_reader_too() -> None:
    log = Log()
    async with log.hub.read(weight=10) as reader:
        log.hub.publish("heavy", weight=8)
        log.hub.publish("heavy", weight=8)
        log.append()
        assert await take(reader, 2) == [RESYNC, "fact 1"]


async def test_a_gap_in_the_numbers_is_refused() -> None:
    log = Log()
    with pytest.raises(ValueError, match="no gaps"):
        log.hub.publish_facts([(2, "fact 2", 1)])


async def test_closing_ends_the_iteration_and_forgets_the_reader() -> None:
    log = Log()
    reader = log.hub.read()
    waiting = asyncio.create_task(take(reader, 1))
    await asyncio.sleep(0)
    reader.close()
    with pytest.raises(StopAsyncIteration):
        await waiting
    assert log.hub.readers == 0


async def test_a_closed_hub_ends_its_readers_after_what_there_is() -> None:
    log = Log()
    async with log.hub.read() as reader:
        log.append()
        log.hub.close()
        assert [item async for item in reader] == ["fact 1"]
    async with log.hub.read(after=0) as late:
        assert [item async for item in late] == ["fact 1"]


async def test_a_hub_that_failed_tells_its_readers_why() -> None:
    log = Log()
    async with log.hub.read() as reader:
        waiting = aiter(reader)
        log.append()
        assert await anext(waiting) == "fact 1"
        log.hub.close(OSError("the disk is full"))
        with pytest.raises(OSError, match="the disk is full"):
            await anext(waiting)
    assert log.hub.readers == 0


class HubMachine(RuleBasedStateMachine):
    """Any interleaving of facts, deltas, slow and late readers: no fact lost, none twice."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.log = Log(recent=3)
        self.deltas = 0
        self.readers: list[tuple[Reader[str], AsyncIterator[str], int, list[str]]] = []

    @rule(count=st.integers(1, 6))
    def append(self, count: int) -> None:
        for _ in range(count):
            self.log.append()

    @rule(count=st.integers(1, 6))
    def stream(self, count: int) -> None:
        for _ in range(count):
            self.deltas += 1
            self.log.hub.publish(f"delta {self.deltas}")

    @rule(data=st.data(), items=st.integers(1, 5))
    def join(self, data: st.DataObject, items: int) -> None:
        after = data.draw(st.integers(0, len(self.log.facts)))
        reader = self.log.hub.read(after=after, items=items)
        self.readers.append((reader, aiter(reader), after, []))

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), steps=st.integers(1, 5))
    def read(self, data: st.DataObject, steps: int) -> None:
        reader, stream, after, items = data.draw(st.sampled_from(self.readers))
        for _ in range(steps):
            if reader.seen < len(self.log.facts):
                items.append(self.loop.run_until_complete(anext(stream)))
        self.check(after, items)

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def part(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.readers) - 1))
        reader, _, after, items = self.readers.pop(index)
        reader.close()
        self.check(after, items)

    def check(self, after: int, items: list[str]) -> None:
        facts = [item for item in items if item.startswith("fact")]
        assert facts == self.log.facts[after : after + len(facts)]
        deltas = [int(item.split()[1]) for item in items if item.startswith("delta")]
        assert deltas == sorted(set(deltas))

    def teardown(self) -> None:
        for reader, stream, after, items in self.readers:
            while reader.seen < len(self.log.facts):
                items.append(self.loop.run_until_complete(anext(stream)))
            self.check(after, items)
            facts = [item for item in items if item.startswith("fact")]
            assert facts == self.log.facts[after:], "every reader ends with every fact"
            reader.close()
        assert self.log.hub.readers == 0
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


TestHubMachine = HubMachine.TestCase


@pytest.mark.promise("mended.20")
async def test_what_waits_for_a_reader_is_bounded_by_its_weight() -> None:
    log = Log()
    async with log.hub.read(after=0, weight=1_000) as reader:
        for _ in range(100):
            log.hub.publish("heavy", weight=300)
        assert reader.waiting <= 3
        async with aclosing(aiter(reader)) as items:
            assert await anext(items) == RESYNC


@pytest.mark.promise("mended.20")
async def test_recent_facts_are_bounded_by_their_weight() -> None:
    log = Log(recent=1_000)
    for _ in range(100):
        log.facts.append(f"fact {len(log.facts) + 1}")
        log.hub.publish_facts([(len(log.facts), log.facts[-1], RECENT_WEIGHT // 10)])
    async with log.hub.read(after=95) as reader, aclosing(aiter(reader)) as items:
        assert [await anext(items) for _ in range(5)] == log.facts[95:]
    assert log.replayed == 0
    async with log.hub.read(after=50) as reader, aclosing(aiter(reader)) as items:
        assert [await anext(items) for _ in range(50)] == log.facts[50:]
    assert log.replayed == 1
