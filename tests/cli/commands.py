"""The command as a person starts it, and a model server for it to ask."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).with_name("keryx"))


def environment(home: Path) -> dict[str, str]:
    """A person's environment, with nothing of a model in it."""
    env = {**os.environ, "KERYX_HOME": str(home)}
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KERYX_MODEL"):
        env.pop(name, None)
    return env


def keryx(home: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *words],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env=environment(home),
    )


@contextmanager
def model_server(home: Path, *replies: dict[str, Any], repeat: bool = False) -> Generator[None]:
    """A scripted model server in a process of its own, configured in the home."""
    home.mkdir(exist_ok=True)
    script = home / "script.json"
    script.write_text(json.dumps({"replies": replies, "repeat": repeat}))
    command = [sys.executable, "-m", "keryx.testing.modelserver", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            (home / "config.toml").write_text(
                f'model = "openai:test-model"\n[providers.openai]\nbase_url = "{url}"\n'
            )
            yield
        finally:
            server.send_signal(signal.SIGTERM)
