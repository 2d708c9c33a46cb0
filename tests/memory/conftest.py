"""A home whose memory has the provider of `shelf`, as an installed package would bring it."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.memory import shelf

ENTRY_POINTS = "[keryx.memory]\nshelf = tests.memory.shelf:open_shelf\n"


def install_shelf(folder: Path) -> None:
    """Make a folder that has the package's metadata; put it on the path of Python."""
    info = folder / "shelf-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    install_shelf(tmp_path / "packages")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages"), *sys.path])
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        '[memory]\nproviders = ["shelf"]\nwait = 0.2\n'
        f'[memory.settings.shelf]\npath = "{tmp_path / "shelf.jsonl"}"\n'
    )
    yield home
    shelf.OPENED.clear()
