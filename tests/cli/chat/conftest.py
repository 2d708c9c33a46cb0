"""A home and a terminal for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.chat.terminal import Terminal, terminal


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def window(home: Path) -> Iterator[Terminal]:
    with terminal(home) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The workspace."""
    path = tmp_path / "work"
    path.mkdir()
    return path
