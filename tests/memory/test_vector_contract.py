"""The provider `vector` keeps the contract, with its embedding model and without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx.testing.memory_contract import CHECKS, Check
from tests.memory.vector_index import EMBEDDERS, vector_index

pytestmark = pytest.mark.promise("003.1")


@pytest.mark.parametrize("embedder", EMBEDDERS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_index_keeps_the_contract(check: Check, embedder: str, tmp_path: Path) -> None:
    async with vector_index(tmp_path, EMBEDDERS[embedder]) as index:
        await check(index.open)
