"""Both clocks keep one contract."""

from __future__ import annotations

import asyncio

import pytest

from keryx.aio.clock import Clock, FakeClock, RealClock
from keryx.testing.contracts import ClockContract


class TestRealClock(ClockContract):
    @pytest.fixture
    def subject(self) -> Clock:
        return RealClock()

    async def wait(self, subject: Clock, seconds: float) -> None:
        await asyncio.sleep(seconds)


class TestFakeClock(ClockContract):
    @pytest.fixture
    def subject(self) -> Clock:
        return FakeClock()

    async def wait(self, subject: Clock, seconds: float) -> None:
        assert isinstance(subject, FakeClock)
        subject.advance(seconds)
