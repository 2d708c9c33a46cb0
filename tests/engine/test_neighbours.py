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


class SessionHost:
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
    session_host = SessionHost()
    session_host.resume_guard.expect(["a", "b", "doubtful"])
    await session_host.doubt("doubtful")
    assert session_host.gone_on == []
    session_host.resume_guard.note_fact(EventFactory("a").replied("text"))
    await settle()
    assert session_host.gone_on == []
    session_host.resume_guard.mark_resting("b")
    await settle()
    assert session_host.gone_on == ["doubtful"]
    await session_host.group.leave()


async def test_two_of_them_go_on_one_after_the_other() -> None:
    session_host = SessionHost()
    session_host.resume_guard.expect(["x", "y"])
    await session_host.doubt("x", "y")
    assert session_host.gone_on == ["x"]
    session_host.resume_guard.note_fact(EventFactory("x").replied("text"))
    await settle()
    assert session_host.gone_on == ["x", "y"]
    await session_host.group.leave()


async def test_nobody_waits_longer_than_the_patience() -> None:
    session_host = SessionHost()
    session_host.resume_guard.expect(["stuck", "doubtful"])
    await session_host.doubt("doubtful")
    session_host.clock.advance(PATIENCE - 0.1)
    await settle()
    assert session_host.gone_on == []
    session_host.clock.advance(0.2)
    await settle()
    assert session_host.gone_on == ["doubtful"]
    await session_host.group.leave()


async def test_a_cancel_ends_the_waiting() -> None:
    session_host = SessionHost()
    turn = session_host.scope.child("turn")
    session_host.resume_guard.expect(["stuck", "doubtful"])
    waiting = session_host.group.start(
        session_host.resume_guard.wait_alone("doubtful", turn), name="doubtful"
    )
    await settle()
    turn.cancel("interrupt", by="tester")
    await waiting
    await session_host.group.leave()
