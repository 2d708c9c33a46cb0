"""The warden keeps the contract of a place."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from keryx.aio.scope import Scope
from keryx.aio.warden import Warden
from keryx.ports.place import Place
from keryx.testing.contracts import PlaceContract


class TestWarden(PlaceContract):
    @pytest_asyncio.fixture
    async def subject(self) -> AsyncIterator[Place]:
        warden = Warden(Scope("test"))
        yield warden
        await warden.close()
