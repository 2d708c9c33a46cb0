"""An executor with everything around it, as a host has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from keryx.aio.clock import RealClock
from tests.engine.host import Host


@pytest_asyncio.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    new_host = Host(tmp_path, RealClock())
    yield new_host
    await new_host.close()
