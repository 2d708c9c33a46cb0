"""Whoever waits for the intake waits for one pass over the outbox, however much comes meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from keryx import events as ev
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.events import RecalledMemory
from keryx.memory import recalling
from keryx.memory.passes import Passes
from keryx.models.scripted import ScriptedModel
from tests.memory import shelf
from tests.memory.test_sessions import (
    PATIENCE,
    SHORT_WAIT,
    ask,
    call,
    change_wait,
    facts,
    home,
    remembering,
    results,
    said,
)

assert home  # a fixture

pytestmark = pytest.mark.promise("003.4")


class Counted:
    """A pass that others ask for again while it runs, each time."""

    def __init__(self) -> None:
        self.group = Group(Scope("test"), on_error=lambda name, error: None)
        self.passes = Passes(self.group, self._one, name="pass")
        self.began = 0
        self.gates: list[asyncio.Event] = []
        self._changed = asyncio.Event()

    async def _one(self) -> None:
        self.began += 1
        self.gates.append(asyncio.Event())
        self._changed.set()
        await self.gates[-1].wait()
        self.passes.request()  # another session has written meanwhile

    async def until_began(self, count: int) -> None:
        while self.began < count:
            self._changed.clear()
            await self._changed.wait()


async def test_a_caller_waits_for_the_first_pass_that_began_after_it() -> None:
    counted = Counted()
    async with asyncio.timeout(PATIENCE), counted.group:
        counted.passes.request()
        await counted.until_began(1)
        waiting = [asyncio.ensure_future(counted.passes.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        counted.gates[0].set()
        await counted.until_began(2)
        assert not any(waiter.done() for waiter in waiting)  # the first one began before them
        counted.gates[1].set()
        await asyncio.gather(*waiting)
        await counted.until_began(3)  # the others go on
        counted.group.scope.cancel("shutdown", by="the test")


async def test_a_pass_that_fails_is_told_to_those_that_wait_and_the_next_one_runs() -> None:
    group = Group(Scope("test"), on_error=lambda name, error: None)
    faults = [OSError("no space")]

    async def one() -> None:
        if faults:
            raise faults.pop()

    passes = Passes(group, one, name="pass")
    async with asyncio.timeout(PATIENCE), group:
        with pytest.raises(OSError, match="no space"):
            await passes.wait()
        await passes.wait()
        assert passes.unfinished is None


async def test_a_recall_answers_in_time_while_what_was_remembered_cannot_be_taken_in(
    home: Path,
) -> None:
    tea = "The user drinks green tea."
    model = ScriptedModel(
        [
            *(call("memory", action="add", text=tea), said()),
            *(call("conclude", text="Tea is stored dry."), call("recall", words="tea"), said()),
        ]
    )
    change_wait(home, f"wait = {PATIENCE}\n", SHORT_WAIT)
    async with remembering(model, home) as app:
        session = await app.open()
        await ask(session, "I drink green tea")
        await app.memory.states()  # it is taken in
        with closing(sqlite3.connect(home / "memory.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # another process writes, and does not end
            await ask(session, "What do I drink?")
            other.execute("ROLLBACK")
        result = (await results(app, session))[-1]
        assert [memory["text"] for memory in result["memories"]] == [tea]
        assert (result["retryable"], result["error"].split()[0]) == (True, "words")
        assert len(await facts(app, session, ev.MemoryChanged)) == 2
        await app.memory.states()
        assert len(await app.memory.export()) == 2


async def test_a_question_that_was_lost_is_asked_again_in_its_session(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider leaves one question unanswered for ever, then answers all the others."""
    change_wait(home, f"wait = {PATIENCE}\n", SHORT_WAIT)
    monkeypatch.setattr(recalling, "GIVE_UP_AFTER", 0.2)
    asked: list[str] = []

    async def answer(scope: object, words: str, limit: int) -> list[RecalledMemory]:
        del scope, limit
        asked.append(words)
        if len(asked) == 1:
            await asyncio.get_running_loop().create_future()
        return [RecalledMemory(memory_id="x", text="Tea.", trust="tool", provider="shelf")]

    async with remembering(ScriptedModel([said()] * 99), home) as app:
        provider: Any = shelf.OPENED[-1]
        provider.context = answer
        session = await app.open()
        given: list[str] = []
        while not given:
            await ask(session, "What do I drink?")
            recalled = await facts(app, session, ev.MemoryRecalled)
            given = [memory.text for fact in recalled for memory in fact.memories]
        assert given == ["Tea."]


async def test_no_session_waits_for_a_provider_that_leaves_another_one_waiting(home: Path) -> None:
    change_wait(home, f"wait = {PATIENCE}\n", "wait = 2\n")

    async def hang(*_: object) -> list[RecalledMemory]:
        return await asyncio.get_running_loop().create_future()

    async with remembering(ScriptedModel([said()] * 2), home) as app:
        provider: Any = shelf.OPENED[-1]
        provider.context = hang
        waited: list[float] = []
        for _ in range(2):
            session = await app.open()
            await ask(session, "Hello")
            (recalled,) = await facts(app, session, ev.MemoryRecalled)
            assert recalled.late == ("shelf",)
            waited.append(recalled.waited)
        assert waited[0] >= 2.0 > waited[1]
