"""`keryx mcp list`, as a person uses it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.mcp.mcp_session import RAW

pytestmark = pytest.mark.promise("kit.6")


def listed(home: Path, **servers: object) -> subprocess.CompletedProcess[str]:
    home.mkdir()
    if servers:
        (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return subprocess.run(
        [str(Path(sys.executable).with_name("keryx")), "mcp", "--home", str(home), "list"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_server_is_shown_with_its_tools_or_with_why_it_does_not_work(tmp_path: Path) -> None:
    result = listed(
        tmp_path / "home",
        fine={"command": sys.executable, "args": ["-S", RAW, "plain"]},
        dead={"command": sys.executable, "args": ["-S", RAW, "dies at once"]},
        sly={"command": sys.executable, "args": ["-S", RAW, "escapes"]},
        off={"command": "x", "disabled": True},
        wrong={"comand": "x"},
    )
    assert "fine: 1 tools\n  mcp_fine_echo  Say it again." in result.stdout
    assert "dead: does not work: its program ended (exit code 7)" in result.stdout
    assert "Nothing to see." in result.stdout
    assert "\x1b" not in result.stdout, "a terminal would obey it"
    assert "\u202e" not in result.stdout
    assert "off: not enabled" in result.stdout
    assert 'did you mean "command"?' in result.stderr
    assert result.returncode == 1


def test_without_servers_it_says_where_to_name_them(tmp_path: Path) -> None:
    result = listed(tmp_path / "home")
    assert result.returncode == 0
    assert "mcp.json" in result.stdout
