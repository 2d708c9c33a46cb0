"""`keryx run` and `keryx sessions`, as a person uses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("keryx"))


def keryx(home: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "KERYX_HOME": str(home)}
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KERYX_MODEL"):
        env.pop(name, None)
    return subprocess.run(
        [COMMAND, *words], input=stdin, capture_output=True, text=True, check=False, env=env
    )


def test_it_prints_the_answer_and_the_session_can_be_shown_continued_and_deleted(
    tmp_path: Path,
) -> None:
    first = keryx(tmp_path, "run", "--model", "scripted:demo", "Hello there")
    assert (first.returncode, first.stderr) == (0, "")
    assert "scripted model" in first.stdout
    (row,) = keryx(tmp_path, "sessions", "list").stdout.splitlines()
    session_id = row.split()[0]
    assert "Hello there" in row
    more = keryx(tmp_path, "run", "--session", session_id, stdin="and more")
    assert more.returncode == 0
    shown = keryx(tmp_path, "sessions", "show", session_id).stdout
    assert "> Hello there" in shown
    assert "> and more" in shown
    assert keryx(tmp_path, "sessions", "delete", session_id).returncode == 0
    assert keryx(tmp_path, "sessions", "list").stdout == ""


def test_json_prints_every_event_as_a_line(tmp_path: Path) -> None:
    result = keryx(tmp_path, "run", "--json", "--model", "scripted:demo", "Hi")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert events[-1]["type"] == "turn.finished"
    assert {"message.accepted", "turn.started", "step.replied"} <= {e["type"] for e in events}


def test_with_nothing_configured_it_says_what_to_do(tmp_path: Path) -> None:
    result = keryx(tmp_path, "run", "Hi")
    assert result.returncode == 1
    assert "set OPENAI_API_KEY" in result.stderr


def test_wrong_input_is_refused_with_a_reason(tmp_path: Path) -> None:
    assert "nothing to say" in keryx(tmp_path, "run", "  ").stderr
    assert "no session 'x'" in keryx(tmp_path, "sessions", "show", "x").stderr
    (tmp_path / "config.toml").write_text("[providers.x]\nurl = 1")
    broken = keryx(tmp_path, "run", "Hi")
    assert broken.returncode == 1
    assert "config.toml" in broken.stderr
