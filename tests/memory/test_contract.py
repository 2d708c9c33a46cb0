"""Every provider keeps the contract that a host relies on."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path

import pytest

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.memory.providers.notes.provider import NotesProvider
from keryx.testing.memory_contract import CHECKS, Check
from tests.memory.honcho_home import honcho_server, memories_of, provider_of
from tests.memory.honcho_server.process import HonchoServer
from tests.memory.people import Edits
from tests.memory.shelf import Shelf
from tests.server.served_host import in_thread

pytestmark = pytest.mark.promise("003.1")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_a_provider_in_a_file(check: Check, tmp_path: Path) -> None:
    await check(lambda: Shelf(tmp_path / "shelf.jsonl"))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_notes(check: Check, tmp_path: Path) -> None:
    scope = Scope("test")
    bridge = Bridge(scope)
    edits = Edits()
    await check(lambda: NotesProvider(tmp_path / "notes", bridge, edits=edits, wall=time.time))
    await bridge.close()
    scope.close()
    assert edits.edits == [], "nobody edited the files"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[HonchoServer]:
    with honcho_server(tmp_path_factory.mktemp("honcho")) as server:
        yield server


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_honcho(check: Check, tmp_path: Path, server: HonchoServer) -> None:
    await in_thread(server.reset)
    async with memories_of(tmp_path) as (file, bridge):
        await check(lambda: provider_of(server, file, bridge))
    assert (await server.state())["refusals"] == []
