"""What the tests of the file tools share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.tools.files.desk import Desk


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest_asyncio.fixture
async def desk(made: Desk) -> AsyncIterator[Desk]:
    await made.open()
    yield made
    await made.close()
