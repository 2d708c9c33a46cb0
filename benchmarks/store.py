"""What durability costs: commits through the store against a bare loop over sqlite3, and opening.

A commit here is what a turn without tools writes at its end: the reply and the end of the turn.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.events import LoggedEvent, Usage, encode
from keryx.ports.store import Commit, InboxRow
from keryx.store.sqlite import SqliteStore
from keryx.testing.event_factory import EventFactory

COMMITS = 2_000
SESSIONS = 100
EACH = 40
MESSAGES = 10_000
TEXT = "a sentence of a reply, as a model writes it. " * 8
SPENT = Usage(input_tokens=900, output_tokens=100)


def first(facts: EventFactory, turn_id: str) -> tuple[LoggedEvent, ...]:
    return (
        facts.accepted(turn_id, TEXT, turn_id),
        facts.delivered(turn_id, turn_id),
        facts.started(turn_id, turn_id),
        facts.step(turn_id=turn_id),
    )


def last(facts: EventFactory, turn_id: str) -> tuple[LoggedEvent, ...]:
    return (
        facts.replied(TEXT, turn_id=turn_id, usage=SPENT, cost=0.001),
        facts.finished(turn_id),
    )


async def one_after_another(store: SqliteStore) -> list[float]:
    """Seconds of each commit of one session's turns."""
    facts = EventFactory("one")
    epoch = await store.claim("one")
    took: list[float] = []
    for number in range(COMMITS // 2):
        turn = f"turn-{number}"
        row = InboxRow(turn, TEXT.encode())
        for commit in (
            Commit(session_id="one", epoch=epoch, events=first(facts, turn), enters=(row,)),
            Commit(session_id="one", epoch=epoch, events=last(facts, turn)),
        ):
            began = time.perf_counter()
            await store.append(commit)
            took.append(time.perf_counter() - began)
    return took


async def many_at_once(store: SqliteStore) -> float:
    """Commits per second of many sessions."""

    async def run(name: str) -> None:
        facts = EventFactory(name)
        epoch = await store.claim(name)
        for number in range(EACH // 2):
            for events in (first(facts, str(number)), last(facts, str(number))):
                await store.append(Commit(session_id=name, epoch=epoch, events=events))

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(SESSIONS):
            group.create_task(run(f"session-{number}"))
    return SESSIONS * EACH / (time.perf_counter() - began)


def bare(path: Path) -> list[float]:
    """Seconds of each commit of a loop that does nothing but insert the same events."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE events (id TEXT, seq INTEGER, body, PRIMARY KEY (id, seq))")
    facts = EventFactory("one")
    took: list[float] = []
    for number in range(COMMITS // 2):
        for events in (first(facts, str(number)), last(facts, str(number))):
            began = time.perf_counter()
            rows = [("one", event.seq, encode(event)) for event in events]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
            connection.execute("COMMIT")
            took.append(time.perf_counter() - began)
    connection.close()
    return took


async def opening(store: SqliteStore, path: Path, bridge: Bridge) -> tuple[float, float]:
    """Milliseconds to open a long session: in a store that is open, and the store with it."""
    facts = EventFactory("long")
    epoch = await store.claim("long")
    for start in range(0, MESSAGES // 2, 100):
        events = [
            event
            for number in range(start, start + 100)
            for event in (*first(facts, str(number)), *last(facts, str(number)))
        ]
        await store.append(Commit(session_id="long", epoch=epoch, events=tuple(events)))

    async def read(from_: SqliteStore) -> None:
        row = await from_.session("long")
        assert row is not None
        assert len(await from_.transcript("long")) == 50

    warm: list[float] = []
    for _ in range(20):
        began = time.perf_counter()
        await read(store)
        warm.append(time.perf_counter() - began)
    began = time.perf_counter()
    anew = await SqliteStore.open(path, bridge)
    await read(anew)
    cold = time.perf_counter() - began
    await anew.close()
    return statistics.median(warm) * 1e3, cold * 1e3


def verdict(name: str, value: float, limit: float, unit: str) -> None:
    said = "met" if value <= limit else "MISSED"
    print(f"{name:<44} {value:8.1f} {unit:<5} limit {limit:6.1f}: {said}")


def microseconds(took: Sequence[float]) -> tuple[float, float]:
    return statistics.median(took) * 1e6, statistics.quantiles(took, n=100)[98] * 1e6


async def main() -> None:
    scope = Scope("bench")
    bridge = Bridge(scope)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        store = await SqliteStore.open(path, bridge)
        took = await one_after_another(store)
        floor = await bridge.to_thread(bare, Path(folder) / "bare.db")
        median, worst = microseconds(took)
        bare_median, bare_worst = microseconds(floor)
        verdict("a commit, median", median, 200, "us")
        print(f"{'a commit, 99th percentile':<44} {worst:8.1f} us")
        print(f"{'a bare commit, median · 99th':<44} {bare_median:8.1f} us    {bare_worst:.1f} us")
        print(f"{'commits per second, one session · bare':<44} ", end="")
        print(f"{COMMITS / sum(took):8.0f}       {COMMITS / sum(floor):.0f}")
        rate = await many_at_once(store)
        print(f"{'commits per second, 100 sessions at once':<44} {rate:8.0f}")
        print(f"{'a bare loop is faster than 100 sessions by':<44} ", end="")
        print(f"{COMMITS / sum(floor) / rate:8.1f} times")
        warm, cold = await opening(store, path, bridge)
        verdict("opening a session of 10,000 messages", warm, 50, "ms")
        verdict("the same, with opening the store", cold, 150, "ms")
        await store.close()
    await bridge.close()
    scope.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    sys.exit(0)
