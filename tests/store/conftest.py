"""A bridge for the stores of the tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope


@pytest_asyncio.fixture
async def bridge() -> AsyncIterator[Bridge]:
    bridge = Bridge(Scope("test"), threads=8)
    yield bridge
    await bridge.close()
