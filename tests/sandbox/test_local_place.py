"""The local place keeps the contract of a place, confined or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.ports.place import Place
from keryx.sandbox import Bounds, LocalPlace
from keryx.sandbox.local import Mode
from keryx.testing.contracts import PlaceContract
from keryx.warden import Warden


class TestLocalPlace(PlaceContract):
    @pytest_asyncio.fixture(params=["off", "on", "required"])
    async def subject(self, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
        mode: Mode = request.param
        scope = Scope("test")
        warden, bridge = Warden(scope), Bridge(scope)
        yield LocalPlace(warden, bridge, Bounds(mode=mode), workspace=tmp_path)
        await warden.close()
        await bridge.close()
