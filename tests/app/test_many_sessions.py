"""Two hundred sessions at once in one host, each driven at random, each watched by two readers.

Readers come and go, and some stop reading for so long that they fall behind. At the end each has
seen its session's log: every fact once, in order, and nobody else's.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from keryx import NO_EFFECTS, Keryx, ToolContext, tool
from keryx import events as ev
from keryx.aio.hub import READER_ITEMS
from keryx.app import SessionHandle, TurnHandle
from keryx.messages import Text, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from tests.app.hosts import check_log, closing
from tests.conftest import SOAK

SESSIONS: Final = 200
ACTIONS: Final = 60 if SOAK else 12
SEEDS: Final = range(10) if SOAK else range(1)
SLOW_EVERY: Final = 25
"""How many sessions there are to one with a reader that falls behind."""
LONG: Final = READER_ITEMS + 200
"""The pieces of a reply that is too long for a reader that does not read."""
TIMEOUT: Final = 600 if SOAK else 180
END: Final = "the end"


@tool(effects=NO_EFFECTS)
async def add(a: int, b: int, context: ToolContext) -> int:
    """Add two numbers, slowly enough to be met in the middle."""
    for step in range(10):
        context.emit(f"{step} ")
        await asyncio.sleep(0)
    return a + b


@tool(effects=NO_EFFECTS)
def add_in_a_thread(a: int, b: int) -> int:
    """Add two numbers elsewhere."""
    return a + b


def reply(request: ModelRequest) -> ScriptedReply:
    """Depends on the history only, so that nobody can get what is meant for another."""
    last = history_of(request)[-1]
    if not isinstance(last, UserMessage):
        return ScriptedReply(text="It is done.", piece=2)
    (said,) = (part.text for part in last.content if isinstance(part, Text))
    word, number, *_ = (*said.rpartition("\n")[2].split(), "0", "0")
    if word == "call":
        tools = ("add", "add_in_a_thread", "add", "nothing_like_it")[: 1 + int(number) % 4]
        calls = [ScriptedCall(name, {"a": 2, "b": 3}) for name in tools]
        return ScriptedReply(text="Let me see.", calls=calls)
    return ScriptedReply(text="x" * int(number), piece=1)


@dataclass(slots=True)
class Watched:
    """A session, who drives it, and what its readers have seen."""

    session: SessionHandle
    random: random.Random
    is_slow: bool
    at_rest: asyncio.Event = field(default_factory=asyncio.Event)
    turns: list[TurnHandle] = field(default_factory=list[TurnHandle])

    async def drive(self) -> None:
        """Say something, see the k-th event of that, act; at last, wait for the end of all."""
        if self.is_slow:
            await (await self.session.send(f"say {LONG}")).result()
        self.turns.append(await self.session.send(self._text()))
        for _ in range(ACTIONS):
            await self._see(self.random.choice(self.turns), self.random.randrange(1, 25))
            await self._act()
        # Whatever waits comes before a message that was sent last.
        await (await self.session.send(END)).result()
        self.at_rest.set()

    async def _see(self, turn: TurnHandle, count: int) -> None:
        async with closing(turn.events()) as events:
            async for _ in events:
                count -= 1
                if not count:
                    return

    async def _act(self) -> None:
        match self.random.choice(("send", "send", "steer", "wait", "interrupt", "cancel")):
            case "send":
                self.turns.append(await self.session.send(self._text()))
            case "steer":
                self.turns.append(await self.session.steer(self._text()))
            case "wait":
                self.turns.append(await self.session.steer(self._text(), wait=True))
            case "interrupt":
                self.turns.append(await self.session.interrupt(self._text()))
            case _:
                await self.random.choice(self.turns).cancel()

    def _text(self) -> str:
        return f"{self.random.choice(('say', 'call'))} {self.random.randrange(1, 30)}"


class Reader:
    """Follows a session to its end, over one connection after another."""

    def __init__(self, watched: Watched, seed: str, *, is_slow: bool) -> None:
        self._watched = watched
        self._random = random.Random(seed)
        self._is_slow = is_slow
        self._end: str | None = None
        self._is_over = False
        self.facts: list[ev.LoggedEvent] = []
        self.passing = 0
        self.connections = 0

    async def follow(self) -> None:
        while not self._is_over:
            self.connections += 1
            patience = self._random.randrange(1, 60)
            after = self.facts[-1].seq if self.facts else 0
            async with closing(self._watched.session.events(after=after)) as events:
                async for event in events:
                    self._take(event)
                    patience -= 1
                    if self._is_over or (not patience and not self._is_slow):
                        break
                    if self._is_slow and len(self.facts) == 3:
                        await self._watched.at_rest.wait()

    def _take(self, event: ev.Event) -> None:
        if isinstance(event, ev.LiveEvent):
            self.passing += 1
            return
        assert event.seq == len(self.facts) + 1, "a gap, or one seen twice"
        self.facts.append(event)
        if isinstance(event, ev.MessageAccepted) and event.text == END:
            self._end = event.turn_id
        elif isinstance(event, ev.TurnFinished) and event.turn_id == self._end:
            self._is_over = True


@pytest.mark.promise("sessions.3")
@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize("seed", SEEDS)
async def test_no_reader_of_any_session_misses_a_fact_or_sees_one_twice(
    tmp_path: Path, seed: int
) -> None:
    model = ScriptedModel(reply)
    async with Keryx(model=model, tools=[add, add_in_a_thread], home=tmp_path) as app:
        sessions = [await watch(app, seed, number) for number in range(SESSIONS)]
        readers = {
            watched.session.session_id: [
                Reader(watched, f"{seed} {number} {which}", is_slow=watched.is_slow and not which)
                for which in range(2)
            ]
            for number, watched in enumerate(sessions)
        }
        # A reader that misses the last fact would wait for ever.
        async with asyncio.timeout(TIMEOUT - 20), asyncio.TaskGroup() as everybody:
            for watched in sessions:
                everybody.create_task(watched.drive())
                for reader in readers[watched.session.session_id]:
                    everybody.create_task(reader.follow())
        logs = {name: await app.store.events(name) for name in readers}
    for name, log in logs.items():
        assert {event.session_id for event in log} == {name}
        check_log(log)
        check_fates(log)
        for reader in readers[name]:
            assert reader.facts == log
    check_that_it_was_lively(logs, [reader for pair in readers.values() for reader in pair])
    slow = [readers[watched.session.session_id][0] for watched in sessions if watched.is_slow]
    assert all(reader.passing < LONG for reader in slow), "they did fall behind"
    assert {reader.connections for reader in slow} == {1}, "and caught up without coming back"


async def watch(app: Keryx, seed: int, number: int) -> Watched:
    driver = random.Random(f"{seed} {number}")
    return Watched(await app.open(), driver, is_slow=not number % SLOW_EVERY)


def check_fates(log: list[ev.LoggedEvent]) -> None:
    """Every message has one fate, every call one end."""
    accepted = [event.message_id for event in log if isinstance(event, ev.MessageAccepted)]
    fates = [
        event.message_id
        for event in log
        if isinstance(event, ev.MessageDelivered | ev.MessageExpired)
    ]
    assert sorted(fates) == sorted(accepted)
    questions = [
        call.call_id for event in log if isinstance(event, ev.StepReplied) for call in event.calls
    ]
    ended = [event.call_id for event in log if isinstance(event, ev.CallFinished)]
    assert sorted(ended) == sorted(questions)


def check_that_it_was_lively(logs: dict[str, list[ev.LoggedEvent]], readers: list[Reader]) -> None:
    """A test in which nothing happens proves nothing."""
    facts = [event for log in logs.values() for event in log]

    def some(what: Callable[[ev.LoggedEvent], bool]) -> bool:
        return sum(map(what, facts)) >= SESSIONS // 20

    assert some(lambda event: isinstance(event, ev.TurnFinished) and event.outcome == "cancelled")
    assert some(lambda event: isinstance(event, ev.TurnFinished) and not event.started)
    assert some(lambda event: isinstance(event, ev.StepReplied) and event.cut)
    assert some(lambda event: isinstance(event, ev.CallFinished) and event.outcome == "cancelled")
    assert some(lambda event: isinstance(event, ev.CallFinished) and event.outcome == "completed")
    assert some(lambda event: isinstance(event, ev.MessageChanged))
    assert sum(reader.connections for reader in readers) > 2 * len(readers)
