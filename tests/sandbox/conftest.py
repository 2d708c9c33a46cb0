"""A den for every test of the sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.sandbox.den import Den, opened


@pytest.fixture
def closed_den(tmp_path: Path) -> Den:
    return Den(tmp_path)


@pytest_asyncio.fixture
async def den(closed_den: Den) -> AsyncIterator[Den]:
    async with opened(closed_den):
        yield closed_den
