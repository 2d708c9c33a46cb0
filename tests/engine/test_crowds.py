"""A container that makes many calls: they are counted, and those that are slow are named."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from keryx import commands as cm
from keryx import events as ev
from keryx.aio.clock import FakeClock
from keryx.aio.group import Group
from keryx.engine.live.nested_calls import (
    BUNCH,
    CHECK_INTERVAL,
    MOST_LISTED,
    MOST_NAMED,
    MOST_SINGLE,
    SLOW,
)
from keryx.engine.session import Session
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from tests.engine.gated_tools import Gates, echo, turns
from tests.engine.sessions import SessionHost

QUICK = 300
PARENT = "k1"


@tool(effects=NO_EFFECTS, container=True)
async def fan(context: ToolContext, quick: int, names: list[str]) -> str:
    """Call quick ones, one after another, and then these gates at once."""
    for number in range(quick):
        await context.call("echo", {"text": str(number)})
    async with Group(context.scope) as group:
        for name in names:
            group.start(context.call("gate", {"name": name}), name=name)
    return "all ended"


class Watcher:
    """Reads what a session tells of the nested calls, and adds it up as a page does."""

    def __init__(self, session: Session) -> None:
        self.reader = session.hub.read()
        self.progress: list[ev.CallProgress] = []
        self.late: ev.RunningNested | None = None
        self.finished: ev.CallFinished | None = None
        self._over = asyncio.Event()

    async def watch(self) -> None:
        async with self.reader:
            async for event in self.reader:
                if isinstance(event, ev.CallProgress) and event.nested is not None:
                    self.progress.append(event)
                elif isinstance(event, ev.CallsSnapshot):
                    self.late = event.running[0].nested
                elif isinstance(event, ev.CallFinished):
                    self.finished = event
                    self._over.set()
                    return

    async def until_over(self) -> ev.CallFinished:
        await self._over.wait()
        assert self.finished is not None
        return self.finished

    def counts(self) -> tuple[int, int]:
        """How many began and how many ended, by all that was told."""
        late = self.late or ev.RunningNested()
        began, ended = late.began, late.ended
        for event in self.progress:
            assert event.nested is not None
            if event.nested.outcome is None:
                began += event.nested.count
            else:
                ended += event.nested.count
        return began, ended

    def sums(self) -> dict[str, tuple[int, Counter[str]]]:
        """How many of each tool began, and how many ended in which way, by all that was told."""
        late = self.late or ev.RunningNested()
        by_tool = {
            tool_calls.tool: (tool_calls.began, Counter[str](tool_calls.ended))
            for tool_calls in late.tools
        }
        for event in self.progress:
            assert event.nested is not None
            tool, count, outcome = event.nested.tool, event.nested.count, event.nested.outcome
            began, ended = by_tool.get(tool, (0, Counter[str]()))
            if outcome is not None:
                ended[outcome] += count
            by_tool[tool] = (began + (count if outcome is None else 0), ended)
        return by_tool

    def named(self) -> list[str]:
        """Those of the crowd that were told by themselves after all."""
        return [item.call_id for item in self.progress if item.nested and item.nested.count == 0]

    def ends(self, call_id: str) -> list[str]:
        nested_calls = [
            item.nested for item in self.progress if item.call_id == call_id and item.nested
        ]
        return [item.outcome for item in nested_calls if item.outcome is not None]


class Hall:
    """A session with a container in it, a time that a test moves, and whoever watches."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.gates = Gates()
        self.session_host = SessionHost([], tools=[self.gates.tool, echo, fan], clock=self.clock)
        self.group = Group(self.session_host.runtime.scope)

    async def begin(self, quick: int, names: list[str]) -> Watcher:
        self.session = await self.session_host.open()
        watcher = self.watch()
        arguments = json.dumps({"quick": quick, "names": names})
        await self._tell(
            cm.RunCall(
                command_id="c1",
                session_id="s1",
                by="ann",
                call_id=PARENT,
                tool="fan",
                arguments=arguments,
            )
        )
        await self.gates.until_running(*names)
        return watcher

    def watch(self) -> Watcher:
        watcher = Watcher(self.session)
        self.group.start(watcher.watch(), name="watcher")
        return watcher

    async def cancel(self, call_id: str) -> None:
        await self._tell(cm.CancelCall(command_id="c2", session_id="s1", by="ann", call_id=call_id))

    async def _tell(self, command: cm.Command) -> None:
        await self.session.tell(command)

    async def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await turns()


@pytest_asyncio.fixture
async def hall() -> AsyncIterator[Hall]:
    new_hall = Hall()
    async with new_hall.group:
        yield new_hall
        await new_hall.session_host.close()


async def test_one_that_is_slow_in_a_crowd_is_named_and_its_end_is_told_by_itself(
    hall: Hall,
) -> None:
    first = await hall.begin(QUICK, ["a", "b"])
    slow = [f"{PARENT}.{QUICK + 1}", f"{PARENT}.{QUICK + 2}"]
    await hall.later(SLOW - 0.1)
    assert first.counts() == (QUICK + 2, QUICK)
    assert first.named() == []
    await hall.later(0.1)
    assert first.named() == slow
    naming = [item.nested for item in first.progress if item.nested and item.nested.count == 0]
    assert [(item.tool, item.duration) for item in naming] == [("gate", SLOW)] * 2
    assert all(item.preview for item in naming)

    # Once, however long they take; whoever comes now knows the same two, and how many there are.
    await hall.later(10 * SLOW)
    assert first.named() == slow
    second = hall.watch()
    await hall.cancel(slow[1])
    await hall.gates.until_running("a")
    hall.gates.open("a")
    ended = await second.until_over()
    await first.until_over()
    assert second.late is not None
    assert (second.late.began, second.late.ended) == (QUICK + 2, QUICK)
    assert [item.call_id for item in second.late.calls] == slow
    assert [item.preview for item in second.late.calls] == [item.preview for item in naming]
    for watcher in (first, second):
        assert watcher.counts() == (QUICK + 2, QUICK + 2)
        assert watcher.ends(slow[0]) == ["completed"]
        assert watcher.ends(slow[1]) == ["cancelled"]
    assert ended.nested is not None
    assert (ended.nested.calls, ended.nested.completed) == (QUICK + 2, QUICK + 1)


async def test_who_comes_late_to_a_crowd_knows_of_each_tool_how_its_calls_ended(
    hall: Hall,
) -> None:
    first = await hall.begin(QUICK, ["a", "b"])
    await hall.later(BUNCH)
    await hall.cancel(f"{PARENT}.{QUICK + 2}")
    await hall.gates.until_running("a")
    await turns()
    await hall.later(BUNCH)
    assert first.named() == []
    second = hall.watch()
    await turns()
    assert second.late is not None
    assert second.progress == []
    assert (second.late.ended, second.late.completed) == (QUICK + 1, QUICK)
    when = {
        tool_calls.tool: pytest.approx((tool_calls.first, tool_calls.last))
        for tool_calls in second.late.tools
    }
    assert when == {"echo": (0.0, BUNCH), "gate": (BUNCH, 2 * BUNCH)}
    expected = {"echo": (QUICK, {"completed": QUICK}), "gate": (2, {"cancelled": 1})}
    assert second.sums() == first.sums() == expected
    hall.gates.open("a")
    await first.until_over()
    await second.until_over()
    expected["gate"] = (2, {"cancelled": 1, "completed": 1})
    assert second.sums() == first.sums() == expected


async def test_past_those_that_are_listed_it_is_kept_how_the_others_ended(hall: Hall) -> None:
    first = await hall.begin(MOST_LISTED, ["a", "b"])
    await hall.cancel(f"{PARENT}.{MOST_LISTED + 2}")
    await hall.gates.until_running("a")
    hall.gates.open("a")
    ended = await first.until_over()
    assert ended.nested is not None
    data = await hall.session_host.store.blob(ended.nested.blob)
    assert data is not None
    nested = msgspec.json.decode(data, type=ev.NestedCalls)
    assert len(nested.calls) == MOST_LISTED
    (gates,) = nested.sums
    assert (gates.tool, gates.calls, gates.completed) == ("gate", 2, 1)
    assert gates.ended == {"completed": 1, "cancelled": 1}


async def test_no_more_are_named_than_somebody_can_look_at(hall: Hall) -> None:
    names = [f"g{number}" for number in range(MOST_SINGLE + 2 * MOST_NAMED)]
    first = await hall.begin(0, names)
    await hall.later(10 * SLOW)
    # So many were told by themselves from the beginning, and still run.
    assert first.named() == []
    over = MOST_SINGLE - MOST_NAMED // 2
    hall.gates.open(*names[:over])
    await hall.gates.until_running(*names[over:])
    await hall.later(CHECK_INTERVAL)
    assert first.named() == [
        f"{PARENT}.{number + 1}" for number in range(MOST_SINGLE, MOST_SINGLE + MOST_NAMED // 2)
    ]
    second = hall.watch()
    await turns()
    assert second.late is not None
    assert len(second.late.calls) == MOST_NAMED
    hall.gates.open(*names)
    await first.until_over()
    await second.until_over()
    assert first.counts() == second.counts() == (len(names), len(names))
    for number in range(1, len(names) + 1):
        assert len(first.ends(f"{PARENT}.{number}")) <= 1


async def test_who_comes_while_a_bunch_gathers_counts_each_call_once(hall: Hall) -> None:
    first = await hall.begin(QUICK, ["a"])
    # Nothing of the bunch is told yet, for no time has passed.
    second = hall.watch()
    await hall.later(BUNCH)
    assert second.counts() == first.counts() == (QUICK + 1, QUICK)
    hall.gates.open("a")
    await first.until_over()
    await second.until_over()
    assert second.counts() == first.counts() == (QUICK + 1, QUICK + 1)


async def test_quick_ones_are_never_named_and_nobody_looks_when_they_are_over(hall: Hall) -> None:
    first = await hall.begin(QUICK, ["a"])
    await hall.later(SLOW / 2)
    hall.gates.open("a")
    await first.until_over()
    await hall.later(10 * SLOW)
    assert first.named() == []
    assert len(hall.session_host.runtime.scope.deadlines) == 0
