"""OpenAI's client for JavaScript against a real server: the same as its client for Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.server.served_host import ROOT, in_thread
from tests.server.v1.scripted_agent import WORDS, served_agent

pytestmark = [pytest.mark.promise("page20.30"), pytest.mark.promise("page20.31")]

SCRIPT = Path(__file__).parent / "npm_client.mjs"


def node() -> str:
    """The node that the page is built with: installed, or the one in the virtual environment."""
    program = shutil.which("node") or shutil.which("node", path=str(Path(sys.executable).parent))
    assert program is not None
    return program


async def test_the_client_for_javascript_uses_an_agent(tmp_path: Path) -> None:
    async with served_agent(tmp_path) as (_, host):
        words = [node(), str(SCRIPT), str(ROOT / "web"), f"{host.server.url}v1"]
        environment = {**os.environ, "OPENAI_API_KEY": host.token}
        ended = await in_thread(
            lambda: subprocess.run(
                words, env=environment, capture_output=True, text=True, check=False, timeout=60
            )
        )
    assert ended.returncode == 0, ended.stderr
    results: dict[str, Any] = json.loads(ended.stdout)
    assert results["models"] == ["keryx", "scripted:agent"]
    assert results["chatStream"] == "I shout.\n\nThe results are HELLO."
    assert results["chatTools"] == "The results are sunny in Paris."
    assert results["responseStream"]["text"] == "You said: hello"
    assert results["responseStream"]["kinds"][-1] == "response.completed"
    assert results["responseTools"] == "The results are HELLO, rainy."
    assert results["background"] == {"text": WORDS, "status": "cancelled"}
    assert results["structured"] == {"answer": 42}
    assert results["refused"] == [404, "model_not_found", "NotFoundError"]
