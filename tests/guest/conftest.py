"""The fixtures of a host that serves tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guest.server import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "tools") as serving:
        yield serving


@pytest.fixture
def address(server: Server) -> str:
    return f"unix:{server.path}"
