"""Both stores keep the same contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from keryx.aio.bridge import Bridge
from keryx.ports.store import Store
from keryx.store.memory import MemoryStore
from keryx.store.sqlite import SqliteStore
from tests.store.contracts.history import HistoryContract, SearchContract
from tests.store.contracts.store import StoreContract


class _Contract(StoreContract, HistoryContract, SearchContract):
    """All of it."""


class TestMemory(_Contract):
    @pytest_asyncio.fixture
    async def subject(self) -> Store:
        return MemoryStore()


class TestSqlite(_Contract):
    @pytest_asyncio.fixture
    async def subject(self, tmp_path: Path, bridge: Bridge) -> AsyncIterator[Store]:
        store = await SqliteStore.open(tmp_path / "store.db", bridge)
        yield store
        await store.close()
