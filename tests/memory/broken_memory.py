"""The ways in which the memory of a home is broken, for tests of what works all the same."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from tests.memory.memory_home import MemoryHome

# What a defect of a provider says; nothing else says it.
BOOM: Final = "RuntimeError('boom')"
_NOISE: Final = 5_000
_NEWER: Final = 99


# -- providers


PROVIDERS: Final = {
    "its_module_fails": "raise RuntimeError('boom')",
    "it_is_not_made": "def create(settings):\n    raise RuntimeError('boom')",
    "it_ends_the_process": "import sys\ndef create(settings):\n    sys.exit('boom')",
    "it_says_no_name": """
class Nameless:
    @property
    def name(self):
        raise RuntimeError('boom')
def create(settings):
    return Nameless()
""",
    "it_reads_a_damaged_file": """
import json
def create(settings):
    return json.loads(b'\\xff')
""",
}
"""A provider that cannot be used, as the module of a package."""

FAILING: Final = """
class Failing:
    name = "second"
    async def close(self):
        pass
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        def call(*words):
            raise RuntimeError("boom")
        return call
def create(settings):
    return Failing()
"""
"""A provider that fails in every call but the last one."""

WORKING: Final = """
from pathlib import Path
from tests.memory.shelf import OPENED, Shelf
def create(settings):
    OPENED.append(Shelf(Path(settings["path"]), settings.get("name", "second")))
    return OPENED[-1]
"""
"""The same provider when it is mended."""


def install_second(home: MemoryHome, source: str) -> None:
    """Let a package bring the provider `second`, which is configured behind `shelf`."""
    info = home.packages / "second-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: second\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[keryx.memory]\nsecond = second_provider:create\n")
    (home.packages / "second_provider.py").write_text(source)


def configure(home: MemoryHome, *providers: str, name: str = "second") -> None:
    names = ", ".join(f'"{provider}"' for provider in providers)
    (home.path / "config.toml").write_text(
        f'model = "scripted:demo"\n[memory]\nproviders = [{names}]\nwait = 0.5\n'
        f'[memory.settings.shelf]\npath = "{home.stored}"\n'
        f'[memory.settings.second]\npath = "{second_file(home)}"\nname = "{name}"\n'
    )


def second_file(home: MemoryHome) -> Path:
    return home.stored.with_name("second.jsonl")


# -- the file of the memories


def noise(path: Path) -> None:
    path.write_bytes(os.urandom(_NOISE))


def a_folder(path: Path) -> None:
    path.mkdir()


def cut(path: Path) -> None:
    """A file whose first page is there, and the others are not."""
    shutil.copy(_other(path), path)
    with path.open("r+b") as file:
        file.truncate(4_096)


def of_a_newer_version(path: Path) -> None:
    shutil.copy(_other(path), path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {_NEWER}")


def nowhere(path: Path) -> None:
    """A link to a place that cannot be."""
    path.symlink_to(path.parent / "gone" / "memory.db")


FILES: Final[dict[str, Callable[[Path], None]]] = {
    make.__name__: make for make in (noise, a_folder, cut, of_a_newer_version, nowhere)
}


def break_file(home: Path, make: Callable[[Path], None] = noise) -> None:
    """Put something else in the place of the file; the file is kept beside."""
    for name in ("memory.db", "memory.db-wal", "memory.db-shm"):
        if (home / name).exists():
            (home / name).rename(_other(home / name))
    make(home / "memory.db")


def mend_file(home: Path) -> None:
    file = home / "memory.db"
    shutil.rmtree(file) if file.is_dir() else file.unlink()
    for name in ("memory.db", "memory.db-wal", "memory.db-shm"):
        (home / name).unlink(missing_ok=True)
        if _other(home / name).exists():
            _other(home / name).rename(home / name)


def _other(path: Path) -> Path:
    return path.with_name(f"before-{path.name}")
