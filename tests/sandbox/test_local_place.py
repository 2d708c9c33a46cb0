"""The local place keeps the contract of a place, confined or not."""

from __future__ import annotations

import asyncio
import threading
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


async def test_who_waits_for_the_walls_is_not_cancelled_with_the_one_that_builds_them(
    tmp_path: Path,
) -> None:
    scope = Scope("test")
    warden, bridge = Warden(scope), Bridge(scope)
    may_build, builds = threading.Event(), threading.Event()

    def make_tmp() -> Path:
        builds.set()
        may_build.wait()
        return tmp_path

    place = LocalPlace(warden, bridge, Bounds(mode="on"), workspace=tmp_path, tmp=make_tmp)
    try:
        first = asyncio.ensure_future(place.confinement())
        await bridge.to_thread(builds.wait)
        second = asyncio.ensure_future(place.confinement())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        may_build.set()
        assert (first.cancelled(), await second is not None) == (True, True)
    finally:
        may_build.set()
        await warden.close()
        await bridge.close()
