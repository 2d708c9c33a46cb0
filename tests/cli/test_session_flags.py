"""The flags that are settings of a session: none of them is ignored when a session is continued."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keryx.cli.main import parser_of
from tests.cli.chat.terminal import terminal
from tests.cli.commands import keryx, model_server

pytestmark = pytest.mark.promise("term.6")
WRITE = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "one\n"}}
PIRATE = '[profiles.default.personalities]\npirate = "Arr."\n'
SETTINGS: dict[str, tuple[str, Any]] = {
    "model": ("--model=scripted:demo", "scripted:demo"),
    "workspace": ("--workspace={folder}", "{folder}"),
    "personality": ("--personality=pirate", "pirate"),
    "tools": ("--tools=read_file", ["read_file"]),
    "approve": ("--approve=auto", "auto"),
    "read_only": ("--read-only", True),
}
"""Each flag that is a setting, with a value and what the session then has."""
FIELDS = {"approve": "approvals"}
"""The field of a setting, if it is not named like its flag."""
NO_SETTINGS = {"help", "prompt", "session", "last", "home", "json", "schema", "plain", "vi"}
"""What does not concern the settings of a session."""


def options_of(command: str) -> list[argparse.Action]:
    return parser_of(command)._actions


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose model answers everything."""
    home = tmp_path / "home"
    with model_server(home, {"text": "Answered."}, repeat=True):
        configure(home)
        yield home


def configure(home: Path) -> None:
    config = home / "config.toml"
    config.write_text(config.read_text() + PIRATE)


@pytest.fixture
def session(home: Path, folder: Path) -> str:
    """A session that is there already."""
    return begun(home, folder)


def begun(home: Path, folder: Path) -> str:
    result = keryx(home, "run", "--json", "--workspace", str(folder), "hello")
    return json.loads(result.stdout.splitlines()[0])["session_id"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


def events(home: Path, session: str) -> list[dict[str, Any]]:
    shown = keryx(home, "sessions", "show", "--json", session).stdout
    return [json.loads(line) for line in shown.splitlines()]


@pytest.mark.parametrize("command", ["run", "chat"])
def test_every_flag_is_a_setting_or_says_here_that_it_is_none(command: str) -> None:
    dests = {action.dest for action in options_of(command)}
    assert dests - NO_SETTINGS == set(SETTINGS), "say in SETTINGS what a new flag changes"


def changed(home: Path, session: str, other: Path, dests: Iterable[str], *words: str) -> None:
    """Continue the session with these flags, and look for what they change before the message."""
    other.mkdir()
    flags = [SETTINGS[dest][0].format(folder=other) for dest in dests]
    result = keryx(home, *words, *flags, stdin="go on\n")
    assert result.returncode == 0, result.stderr
    assert "Changed for this session: " in result.stderr
    log = events(home, session)
    sent = next(n for n, event in enumerate(log) if event.get("text", "").strip() == "go on")
    changes = [e for e in log[:sent] if e["type"] == "session.changed" and "title" not in e]
    expected = {FIELDS.get(dest, dest): SETTINGS[dest][1] for dest in dests}
    if "workspace" in expected:
        expected["workspace"] = str(other)
    assert [{name: change[name] for name in expected} for change in changes] == [expected]


@pytest.mark.parametrize("dest", SETTINGS)
def test_each_flag_changes_the_session_that_is_continued(
    home: Path, tmp_path: Path, session: str, dest: str
) -> None:
    changed(home, session, tmp_path / "other", [dest], "run", "--session", session)


@pytest.mark.parametrize("way", ["-c", "--session={session}"])
def test_the_flags_of_a_chat_change_the_session_that_it_continues(
    home: Path, tmp_path: Path, session: str, way: str
) -> None:
    changed(home, session, tmp_path / "other", SETTINGS, "chat", way.format(session=session))


def test_a_session_that_is_continued_read_only_writes_nothing(tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "home"
    replies = [{"calls": [WRITE]}, {"text": "Refused."}, {"calls": [WRITE]}, {"text": "Written."}]
    with model_server(home, {"text": "Hello."}, *replies):
        words = ("run", "--session", begun(home, folder), "--approve", "never")
        result = keryx(home, *words, "--read-only", "write")
        assert result.stdout.strip() == "Refused.", result.stderr
        assert not (folder / "a.txt").exists()
        result = keryx(home, *words, "--no-read-only", "write")
        assert result.stdout.strip() == "Written.", result.stderr
    assert (folder / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("flag", ["--model=bogus:x", "--tools=nosuch", "--personality=no"])
def test_a_wrong_value_changes_and_sends_nothing(home: Path, session: str, flag: str) -> None:
    before = events(home, session)
    for words in (("run", "--session", session), ("chat", "-c")):
        result = keryx(home, *words, flag, "--approve=never", stdin="go on\n")
        assert result.returncode == 1
        assert flag.partition("=")[2].partition(":")[0] in result.stderr
    assert events(home, session) == before


@pytest.mark.parametrize("flag", ["--approve=never", "--workspace=."])
def test_a_call_in_a_session_refuses_the_flags_of_other_calls(
    home: Path, session: str, flag: str
) -> None:
    before = events(home, session)
    result = keryx(home, "tools", "call", "--session", session, flag, "list_files")
    assert result.returncode == 2
    assert "cannot be used with --session" in result.stderr
    assert events(home, session) == before


def test_a_new_chat_says_at_once_that_a_flag_is_wrong(home: Path) -> None:
    for flag, text in (("--model=bogus:x", "bogus"), ("--tools=nosuch", "or toolset 'nosuch'")):
        with terminal(home) as window:
            window.start("chat", flag)
            assert text in window.wait("left with 1")
    assert keryx(home, "sessions", "list").stdout == ""
    with terminal(home) as window:
        window.start("chat", "--personality", "no")
        window.wait("there is no personality 'no'; there are pirate")


def test_the_screen_says_what_a_flag_has_changed(home: Path, session: str) -> None:
    with terminal(home) as window:
        window.start("chat", "-c", "--read-only")
        window.wait("Changed for this session: read only on.")
    assert '"read_only":true' in keryx(home, "sessions", "show", "--json", session).stdout
