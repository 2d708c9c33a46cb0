"""A confined workspace for every test of the sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.sandbox.confined_workspace import ConfinedWorkspace, opened


@pytest.fixture
def unopened_confined(tmp_path: Path) -> ConfinedWorkspace:
    return ConfinedWorkspace(tmp_path)


@pytest_asyncio.fixture
async def confined(unopened_confined: ConfinedWorkspace) -> AsyncIterator[ConfinedWorkspace]:
    async with opened(unopened_confined):
        yield unopened_confined
