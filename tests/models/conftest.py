"""What the tests of models share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from keryx.models.http import Clients, model_clients


@pytest_asyncio.fixture
async def clients() -> AsyncIterator[Clients]:
    owned = model_clients()
    yield owned.get
    await owned.close()
