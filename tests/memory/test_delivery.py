"""What was accepted reaches each provider once and in order, whatever the provider does."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.events import MemoryChanged
from keryx.memory import intake_rows
from keryx.memory.memory_file import MemoryFile
from keryx.memory.service import MemoryService
from keryx.ports.memory import (
    Delivery,
    FateUnknownError,
    ItemRefusedError,
    Memory,
    ProviderUnavailableError,
    Withdrawal,
)
from keryx.ports.store import OutboxRow
from tests.memory.remembering_store import SCOPE, remembering_store
from tests.memory.shelf import Shelf
from tests.server.served_host import in_thread

pytestmark = pytest.mark.promise("003.3")

PATIENCE = 20.0


async def ids(shelf: Shelf) -> list[str]:
    return await in_thread(shelf.ids)


async def test_each_session_is_stored_in_order_and_several_at_once(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    shelf.gate = asyncio.Event()
    async with remembering_store(tmp_path, [shelf]) as memory:
        accepted = {
            name: [
                *await memory.conclude(name, f"{name} a", f"{name} b"),
                *await memory.conclude(name, f"{name} c"),
            ]
            for name in ("s1", "s2", "s3")
        }
        await memory.service.take_in()
        async with asyncio.timeout(PATIENCE):
            await shelf.wait_begun(lambda: shelf.running == 3)
        shelf.gate.set()
        assert await memory.service.wait_delivered(PATIENCE)
        stored = await ids(shelf)
        for name, expected in accepted.items():
            assert [item for item in stored if item.startswith(name)] == expected
        assert len(stored) == 9


async def test_what_was_stored_before_a_timeout_is_not_stored_twice(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    shelf.after = [lambda _: ProviderUnavailableError("timed out"), lambda _: TimeoutError()]
    async with remembering_store(tmp_path, [shelf]) as memory:
        accepted = await memory.conclude("s1", "one", "two", "two")
        assert await memory.service.wait_delivered(PATIENCE)
        assert await ids(shelf) == accepted
        assert shelf.requests == 3


async def test_a_dead_provider_is_left_alone_longer_each_time_over_restarts_too(
    tmp_path: Path,
) -> None:
    shelf = Shelf(tmp_path / "shelf")
    shelf.before = [lambda _: ProviderUnavailableError("connection refused")] * 2
    async with remembering_store(tmp_path, [shelf], first_pause=0.2) as memory:
        accepted = await memory.conclude("s1", "one")
        async with asyncio.timeout(PATIENCE):
            await shelf.wait_begun(lambda: shelf.requests == 2)
        accepted += await memory.conclude("s2", "two")
        (state,) = await memory.service.states()
        assert state.lag.breaker.failures >= 1
        assert "connection refused" in state.lag.breaker.error
        assert state.lag.waiting == 2
        assert state.syncing_for is not None
    next_shelf = Shelf(tmp_path / "shelf")
    async with remembering_store(tmp_path, [next_shelf]) as memory:
        assert await memory.service.wait_delivered(PATIENCE)
        (state,) = await memory.service.states()
        assert (state.lag.waiting, state.lag.breaker.failures) == (0, 0)
        assert sorted(await ids(next_shelf)) == sorted(accepted)


async def test_a_provider_may_ask_for_a_longer_pause(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    shelf.before = [lambda _: ProviderUnavailableError("429", retry_after=600.0)]
    async with remembering_store(tmp_path, [shelf]) as memory:
        await memory.conclude("s1", "one")
        assert not await memory.service.wait_delivered(0.3)
        (state,) = await memory.service.states()
        assert state.lag.breaker.retry_at > time.time() + 500
        await memory.service.retry()
        assert await memory.service.wait_delivered(PATIENCE)


async def test_an_item_that_is_refused_is_shown_and_the_others_go_on(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")

    def refuse(deliveries: list[Delivery]) -> Exception | None:
        texts = {d.item.id: d.item.text for d in deliveries if isinstance(d.item, Memory)}
        bad = next((name for name, text in texts.items() if text == "bad"), None)
        return None if bad is None else ItemRefusedError(bad, "422: too odd")

    shelf.before = [refuse, refuse]  # type: ignore[list-item]
    async with remembering_store(tmp_path, [shelf]) as memory:
        first, bad, last = await memory.conclude("s1", "one", "bad", "two")
        assert await memory.service.wait_delivered(PATIENCE)
        assert await ids(shelf) == [first, last]
        (failure,) = await memory.service.failures()
        assert (failure.item.id, failure.state) == (bad, "refused")
        assert "too odd" in failure.error
        assert await memory.service.retry([failure.place]) == 1
        assert await memory.service.wait_delivered(PATIENCE)
        assert await ids(shelf) == [first, last, bad]
        assert await memory.service.failures() == []


async def test_an_item_whose_fate_nobody_knows_is_shown_as_such(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    shelf.after = [
        lambda deliveries: FateUnknownError(deliveries[0].item.id, "stored perhaps"),
    ]
    async with remembering_store(tmp_path, [shelf]) as memory:
        (lost,) = await memory.conclude("s1", "one")
        assert await memory.service.wait_delivered(PATIENCE)
        (failure,) = await memory.service.failures()
        assert (failure.item.id, failure.state) == (lost, "unknown")


@pytest.mark.promise("003.4")
async def test_a_provider_that_hangs_for_ever_holds_nobody_up(tmp_path: Path) -> None:
    hanging, good = Shelf(tmp_path / "a", "hanging"), Shelf(tmp_path / "b", "good")
    hanging.gate = asyncio.Event()
    async with remembering_store(tmp_path, [hanging, good], drain=0.1) as memory:
        accepted = await memory.conclude("s1", "The user drinks tea.")
        recall = await memory.service.recall(SCOPE, "tea", 10)
        assert [m.memory_id for m in recall.memories] == accepted
        assert recall.late == ("hanging",)
        assert recall.syncing_for is not None
        # The first question to it waits for the budget, the next ones do not wait at all.
        first = await memory.service.context("s1", SCOPE, "tea")
        again = await memory.service.context("s1", SCOPE, "tea")
        assert first.late == again.late == ("hanging",)
        assert again.waited < first.waited
        states = {state.name: state.lag.waiting for state in await memory.service.states()}
        assert states["hanging"] == 1
    assert await ids(good) == accepted
    assert await ids(hanging) == []


async def test_a_new_provider_gets_what_is_remembered_already(tmp_path: Path) -> None:
    first, second = Shelf(tmp_path / "a", "first"), Shelf(tmp_path / "b", "second")
    async with remembering_store(tmp_path, [first]) as memory:
        accepted = await memory.conclude("s1", "one", "two")
        assert await memory.service.wait_delivered(PATIENCE)
    async with remembering_store(tmp_path, [first, second]) as memory:
        assert await memory.service.wait_delivered(PATIENCE)
    assert await ids(second) == accepted == await ids(first)


async def test_what_is_forgotten_is_gone_everywhere_and_what_remains_is_said(
    tmp_path: Path,
) -> None:
    good, dead = Shelf(tmp_path / "a", "good"), Shelf(tmp_path / "b", "dead")
    async with remembering_store(tmp_path, [good, dead]) as memory:
        (code,) = await memory.conclude("s1", "The door code is 4711.")
        assert await memory.service.wait_delivered(PATIENCE)
        dead.gate = asyncio.Event()
        forgotten = await memory.service.forget([code])
        assert forgotten.erased == (code,)
        assert forgotten.remaining == {"dead": (code,)}
        assert code not in await ids(good)
        assert (await memory.service.recall(SCOPE, "door code", 10)).memories == ()
        dead.gate.set()
        assert await memory.service.wait_delivered(PATIENCE)
        assert code not in await ids(dead)
    assert b"4711" not in (tmp_path / "memory.db").read_bytes()


@pytest.mark.promise("003.1")
async def test_the_context_of_the_next_turn_is_asked_for_when_a_turn_has_ended(
    tmp_path: Path,
) -> None:
    slow = Shelf(tmp_path / "shelf")
    async with remembering_store(tmp_path, [slow], budget=0.3) as memory:
        (tea,) = await memory.conclude("s1", "The user drinks tea.")
        assert await memory.service.wait_delivered(PATIENCE)
        await memory.sync_turn("s1", "What do I drink?", "Tea.")
        async with asyncio.timeout(PATIENCE):
            await slow.wait_begun(lambda: slow.answers == 1)
        await asyncio.sleep(0)  # the answer is on its way to who asked
        # It answered for the turn before; now it takes longer than a turn waits.
        slow.gate = asyncio.Event()
        recall = await memory.service.context("s1", SCOPE, "something else")
        assert [memory.memory_id for memory in recall.memories] == [tea]
        assert recall.late == ()
        assert recall.waited < 0.3


async def test_what_is_forgotten_is_withdrawn_in_the_order_of_its_session(tmp_path: Path) -> None:
    """Otherwise an item that is on its way could arrive after its own withdrawal."""
    provider = Shelf(tmp_path / "a")
    async with remembering_store(tmp_path, [provider]) as memory:
        (first,) = await memory.conclude("s1", "one")
        (second,) = await memory.conclude("s2", "two")
        await memory.service.forget([first, second])
        assert await memory.service.wait_delivered(PATIENCE)
    withdrawn = {
        item.session_id: item.items
        for item in await in_thread(provider.lines)
        if isinstance(item, Withdrawal)
    }
    assert withdrawn == {"s1": (first,), "s2": (second,)}


@pytest.mark.promise("003.1")
async def test_a_provider_that_is_behind_recalls_nothing_that_is_not_true_any_more(
    tmp_path: Path,
) -> None:
    shelf = Shelf(tmp_path / "shelf")
    async with remembering_store(tmp_path, [shelf]) as memory:
        tea, coffee = await memory.conclude("s1", "The user drinks tea.", "The user drinks coffee.")
        assert await memory.service.wait_delivered(PATIENCE)
        shelf.before = [lambda _: ItemRefusedError("", "not now")] * 5
        await memory.service.curation.remove([tea])
        assert await memory.service.curation.confirm(coffee)
        assert await memory.service.wait_delivered(PATIENCE)
        stored = await shelf.recall(SCOPE, "drinks", 10)
        assert {(item.memory_id, item.trust) for item in stored} == {
            (tea, "tool"),
            (coffee, "tool"),
        }
        recall = await memory.service.recall(SCOPE, "drinks", 10)
        assert [(item.memory_id, item.trust) for item in recall.memories] == [(coffee, "person")]


@pytest.mark.promise("003.1")
async def test_restatements_are_recalled_once_and_contradictions_both(tmp_path: Path) -> None:
    shelves = [Shelf(tmp_path / name, name) for name in ("a", "b")]
    async with remembering_store(tmp_path, shelves) as memory:
        await memory.conclude("s1", "The port is 80.", "The port is 81.")
        await memory.conclude("s2", "the  port is\n80.")
        assert await memory.service.wait_delivered(PATIENCE)
        recall = await memory.service.recall(SCOPE, "port", 10)
        texts = [" ".join(memory.text.casefold().split()) for memory in recall.memories]
        assert sorted(texts) == ["the port is 80.", "the port is 81."]


async def test_what_cannot_be_noted_now_is_delivered_later_by_itself(tmp_path: Path) -> None:
    def execute(statement: str) -> None:
        with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
            connection.execute(statement)

    shelf = Shelf(tmp_path / "shelf")
    async with remembering_store(tmp_path, [shelf]) as memory:
        await in_thread(
            execute,
            "CREATE TRIGGER full BEFORE UPDATE OF attempts ON deliveries"
            " BEGIN SELECT raise(ABORT, 'the disk is full'); END",
        )
        accepted = await memory.conclude("s1", "one")
        while not (state := (await memory.service.states())[0]).lag.breaker.failures:
            assert state.lag.waiting == 1
        assert "the disk is full" in state.lag.breaker.error
        await in_thread(execute, "DROP TRIGGER full")
        assert await memory.service.wait_delivered(PATIENCE)
        assert await ids(shelf) == accepted


def fail(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


class LateReader:
    """The store as another process saw it: it read rows that were taken in and removed since."""

    def __init__(self, rows: Sequence[OutboxRow]) -> None:
        self._rows = list(rows)

    async def outbox(self, topic: str, limit: int) -> list[OutboxRow]:
        assert topic == intake_rows.TOPIC
        rows, self._rows = self._rows[:limit], self._rows[limit:]
        return rows

    async def sent(self, ids: Sequence[str]) -> None:
        """Do nothing: the rows are gone."""


async def test_a_process_that_read_a_row_too_early_does_not_bring_back_what_is_forgotten(
    tmp_path: Path,
) -> None:
    scope = Scope("beside")
    bridge = Bridge(scope)
    async with remembering_store(tmp_path, [Shelf(tmp_path / "shelf")]) as memory:
        (code,) = await memory.conclude("s1", "The door code is 4711.")
        assert await memory.service.wait_delivered(PATIENCE)
        (event,) = [e for e in await memory.store.events("s1") if isinstance(e, MemoryChanged)]
        await memory.service.forget([code])
        store: Any = LateReader([intake_rows.changed_row(event)])
        file = MemoryFile(tmp_path / "memory.db", bridge)
        beside = MemoryService(store, file, scope, providers=[], report=fail)
        await beside.take_in()
        assert await memory.service.get(code) is None
        await beside.close()
    await bridge.close()
    scope.close()
