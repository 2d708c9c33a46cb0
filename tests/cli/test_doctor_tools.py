"""`keryx doctor` says which tools work here, and what the others need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.hosts import PATIENCE, keryx

pytestmark = pytest.mark.promise("kit.8")


def test_it_counts_the_tools_that_work(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[providers.here]\nbase_url = "http://127.0.0.1:9/v1"\n[models.auxiliary]\n'
        'image = "here:a"\nspeech = "here:b"\ntranscription = "here:c"\n'
    )
    (line,) = [line for line in keryx(tmp_path, "doctor").stdout.splitlines() if " tools " in line]
    assert line.startswith("✓")
    assert "browser" in line
    assert "web" in line


@pytest.mark.parametrize(
    ("package", "advice", "part"),
    [
        ("playwright", "pip install 'keryx[browser]'", "browser"),
        ("mcp", "pip install 'keryx[mcp]'", "mcp"),
        ("trafilatura", "web_extract needs", "web"),
        ("ddgs", "web_search needs a search engine", "ddgs"),
    ],
)
def test_it_says_what_a_missing_tool_needs(
    tmp_path: Path, package: str, advice: str, part: str
) -> None:
    program = (
        "import sys\n"
        f"sys.modules[{package!r}] = None  # as if it were not installed\n"
        "from keryx.cli.entry import main\n"
        "sys.exit(main())"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program, "doctor", "--home", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert "! tools" in shown.stdout, shown.stderr
    assert advice in shown.stdout
    assert f"keryx doctor --install {part}" in shown.stdout


@pytest.mark.parametrize("purpose", ["image", "transcription"])
def test_it_says_which_model_a_tool_needs(tmp_path: Path, purpose: str) -> None:
    shown = keryx(tmp_path, "doctor").stdout
    assert f'set {purpose} = "provider:name" in [models.auxiliary]' in " ".join(shown.split())


def test_it_names_own_tools_and_servers_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir(mode=0o700)
    (tmp_path / "tools" / "broken.py").write_text("def (")
    (tmp_path / "tools" / "broken.py").chmod(0o600)
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"wrong": {"comand": "x"}}}')
    shown = " ".join(keryx(tmp_path, "doctor").stdout.split())
    assert "! tools" in shown
    assert "broken.py: SyntaxError" in shown
    assert "the MCP server 'wrong' cannot be used" in shown
