"""A home with the provider of `shelf`, for `keryx` processes and servers that are started."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from keryx.testing.modelserver import MODEL
from tests.cli.commands import COMMAND, environment
from tests.memory.conftest import install_shelf

ROOT = Path(__file__).parent.parent.parent


class MemoryHome:
    """A home, and the packages that its processes see."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "home"
        self.path.mkdir()
        self.stored = folder / "shelf.jsonl"
        self.packages = folder / "packages"
        install_shelf(self.packages)
        self.set_up(path=str(self.stored))

    @property
    def python_path(self) -> str:
        inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        parts = [str(self.packages), str(ROOT), *(part for part in inherited if part)]
        return os.pathsep.join(parts)

    def variables(self) -> dict[str, str]:
        return {**environment(self.path), "PYTHONPATH": self.python_path}

    def keryx(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env=self.variables(),
            cwd=self.path.parent,
        )

    def texts(self) -> list[str]:
        """What the provider has."""
        lines = self.stored.read_text().splitlines() if self.stored.exists() else []
        return [str(item["text"]) for line in lines if "text" in (item := json.loads(line))]

    def set_up(self, **settings: str) -> None:
        """Configure the provider: `path` of its file, `refuses`: a word that it refuses."""
        lines = [f'{name} = "{value}"' for name, value in settings.items()]
        memory = '[memory]\nproviders = ["shelf"]\nwait = 0.5\n[memory.settings.shelf]\n'
        (self.path / "config.toml").write_text(memory + "\n".join(lines) + "\n")

    def set_up_model(self, url: str) -> None:
        """Add a server of models, and its model as the default."""
        file = self.path / "config.toml"
        provider = f'[providers.server]\nbase_url = "{url}"\n'
        file.write_text(f'model = "server:{MODEL}"\n{file.read_text()}{provider}')

    def break_provider(self) -> None:
        """Let the provider fail whatever it is to store."""
        self.set_up(path=str(self.path))

    def make_older(self, seconds: float) -> None:
        """Let all that waits have waited for longer."""
        with closing(sqlite3.connect(self.path / "memory.db")) as connection, connection:
            connection.execute("UPDATE deliveries SET since = since - ?", (seconds,))

    def break_file(self) -> None:
        """Let the provider of a running process fail: a folder is in the place of its file."""
        if self.stored.exists():
            self.stored.rename(self.stored.with_suffix(".away"))
        self.stored.mkdir()

    def mend_file(self) -> None:
        self.stored.rmdir()
        if (away := self.stored.with_suffix(".away")).exists():
            away.rename(self.stored)
