"""`keryx config`, as a person uses it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import COMMAND, environment

pytestmark = pytest.mark.promise("page20.14")

TEXT = """\
# Mine.
[limits]
steps = 200  # enough

[providers.work]
base_url = "http://127.0.0.1:9/v1"
api_key = "sk-0123456789"
"""


def config(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "config", *words],
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )


def test_settings_are_shown_and_changed(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(TEXT)
    assert config(tmp_path, "path").stdout == f"{file}\n"
    assert config(tmp_path, "get", "limits.steps").stdout == "200\n"
    assert config(tmp_path, "get", "models.compact_at").stdout == "0.8\n"
    assert "sk-" not in config(tmp_path, "get").stdout
    assert config(tmp_path, "set", "limits.steps", "100").returncode == 0
    assert config(tmp_path, "set", "personalities.terse", "Answer shortly.").returncode == 0
    assert file.read_text() == TEXT.replace("200", "100") + (
        '\n[personalities]\nterse = "Answer shortly."\n'
    )
    assert config(tmp_path, "unset", "limits.steps").returncode == 0
    assert "[limits]\n# enough\n" in file.read_text()
    before = file.read_text()
    for words, says in (
        (("set", "limits.stepz", "1"), 'did you mean "steps"'),
        (("set", "limits.steps", "many"), "nothing was changed: Expected `int | null`"),
        (("set", "toolsets.x", '["read_fil"]'), "did you mean 'read_file'"),
        (("get", "nothing.at.all"), "is not set"),
        (("set", "a..b", "1"), "is not the name of a setting"),
    ):
        ended = config(tmp_path, *words)
        assert ended.returncode == 1
        assert says in ended.stderr
    assert file.read_text() == before


def test_a_variable_that_wins_is_named(tmp_path: Path) -> None:
    ended = subprocess.run(
        [COMMAND, "config", "set", "model", "scripted:tour"],
        env={**environment(tmp_path), "KERYX_MODEL": "scripted:demo"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "KERYX_MODEL is set to scripted:demo, and wins" in ended.stderr
