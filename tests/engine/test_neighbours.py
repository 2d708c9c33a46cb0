"""A turn that may kill its host goes on last, and alone."""

from __future__ import annotations

import asyncio

from keryx.aio.clock import FakeClock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.engine.log.resume_guard import PATIENCE, ResumeGuard
from keryx.testing.event_factory import EventFactory


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.scope = Scope("host", clock=self.clock)
        self.resume_guard = ResumeGuard()
        self.gone_on: list[str] = []
        self.group = Group(self.scope)

    async def doubt(self, *session_ids: str) -> None:
        """Turns that wait to be alone."""
        for session_id in session_ids:
            self.group.start(self._wait(session_id), name=session_id)
        await settle()

    async def _wait(self, session_id: str) -> None:
        await self.resume_guard.wait_alone(session_id, self.scope)
        self.gone_on.append(session_id)


async def test_it_waits_until_every_other_has_logged_a_fact_or_rests() -> None:
    world = World()
    world.resume_guard.expect(["a", "b", "doubtful"])
    await world.doubt("doubtful")
    assert world.gone_on == []
    world.resume_guard.saw(EventFactory("a").replied("text"))
    await settle()
    assert world.gone_on == []
    world.resume_guard.rests("b")
    await settle()
    assert world.gone_on == ["doubtful"]
    await world.group.leave()


async def test_two_of_them_go_on_one_after_the_other() -> None:
    world = World()
    world.resume_guard.expect(["x", "y"])
    await world.doubt("x", "y")
    assert world.gone_on == ["x"]
    world.resume_guard.saw(EventFactory("x").replied("text"))
    await settle()
    assert world.gone_on == ["x", "y"]
    await world.group.leave()


async def test_nobody_waits_longer_than_the_patience() -> None:
    world = World()
    world.resume_guard.expect(["stuck", "doubtful"])
    await world.doubt("doubtful")
    world.clock.advance(PATIENCE - 0.1)
    await settle()
    assert world.gone_on == []
    world.clock.advance(0.2)
    await settle()
    assert world.gone_on == ["doubtful"]
    await world.group.leave()


async def test_a_cancel_ends_the_waiting() -> None:
    world = World()
    turn = world.scope.child("turn")
    world.resume_guard.expect(["stuck", "doubtful"])
    waiting = world.group.start(world.resume_guard.wait_alone("doubtful", turn), name="doubtful")
    await settle()
    turn.cancel("interrupt", by="tester")
    await waiting
    await world.group.leave()
