"""`keryx tools`, `keryx doctor`, and what a session changed, as a person uses them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import COMMAND, environment, keryx, model_server


def tools(home: Path, workspace: Path, name: str, **arguments: Any) -> tuple[int, str, str]:
    words = ("tools", "call", name, json.dumps(arguments), "--workspace", str(workspace))
    result = keryx(home, *words)
    return result.returncode, result.stdout, result.stderr


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


def test_they_are_listed_by_toolset_and_with_their_schemas(tmp_path: Path) -> None:
    listed = keryx(tmp_path, "tools", "list").stdout
    assert [line for line in listed.splitlines() if not line.startswith(" ")] == [
        "files",
        "shell",
        "people",
        "agents",
        "models",
        "web",
        "mcp",
        "skills",
        "browser",
        "code",
    ]
    shown = json.loads(keryx(tmp_path, "tools", "list", "--json").stdout)
    assert {"read_file", "terminal", "clarify"} <= {row["name"] for row in shown}
    assert all(row["parameters"]["type"] == "object" for row in shown)


def test_one_is_called_by_hand_and_leaves_no_session(tmp_path: Path, workspace: Path) -> None:
    home = tmp_path / "home"
    code, output, errors = tools(
        home, workspace, "terminal", command="echo hi; echo $KERYX_WORKSPACE"
    )
    assert code == 0
    assert json.loads(output) == {"output": f"hi\n{workspace}\n", "exit_code": 0}
    assert errors.startswith("hi\n"), "what it prints is streamed"
    assert keryx(home, "sessions", "list").stdout == ""


@pytest.mark.parametrize(
    ("name", "arguments", "code", "said"),
    [
        ("read_file", {"path": "b.txt"}, 1, "b.txt does not exist; did you mean a.txt?"),
        ("read_file", {"paht": "a.txt"}, 1, "did you mean `path`"),
        ("nothing", {}, 1, "there is no tool 'nothing'"),
        (
            "terminal",
            {"command": "rm -rf /"},
            3,
            "Refused: needs approval, and there is no terminal to ask",
        ),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, workspace: Path, name: str, arguments: dict[str, str], code: int, said: str
) -> None:
    exit_code, output, errors = tools(tmp_path / "home", workspace, name, **arguments)
    assert (exit_code, said in output + errors) == (code, True)
    assert "Traceback" not in errors


def test_what_a_session_changed_is_shown_and_taken_back(tmp_path: Path, workspace: Path) -> None:
    home = tmp_path / "home"
    calls = [{"tool": "write_file", "arguments": {"path": "b.txt", "content": "new\n"}}]
    with model_server(home, {"calls": calls}, {"text": "Done."}):
        assert keryx(home, "run", "Go", "--workspace", str(workspace)).returncode == 0
        session = keryx(home, "sessions", "list").stdout.split()[0]
        assert "+new" in keryx(home, "sessions", "diff", session).stdout
        (workspace / "b.txt").write_text("edited by hand\n")
        refused = keryx(home, "sessions", "revert", session)
        assert refused.returncode == 1
        assert "someone edited it since" in refused.stderr
        (workspace / "b.txt").write_text("new\n")
        assert keryx(home, "sessions", "revert", session).returncode == 0
        assert not (workspace / "b.txt").exists()


def test_only_the_tools_that_are_named_are_granted(tmp_path: Path) -> None:
    words = ("run", "--model", "scripted:demo", "--tools", "files,nosuch", "Hi")
    result = keryx(tmp_path, *words)
    assert result.returncode == 1
    assert "there is no tool or toolset 'nosuch'; choose one of:" in result.stderr
    assert (
        keryx(tmp_path, "run", "--model", "scripted:demo", "--tools", "files", "Hi").returncode == 0
    )


def test_a_person_at_a_terminal_is_asked(tmp_path: Path, workspace: Path) -> None:
    home = tmp_path / "home"
    calls = [{"tool": "terminal", "arguments": {"command": "rm -rf .git"}}]
    (workspace / ".git").mkdir()
    with model_server(home, {"calls": calls}, {"text": "Gone."}):
        ours, theirs = pty.openpty()
        try:
            with subprocess.Popen(
                [COMMAND, "run", "Go", "--workspace", str(workspace)],
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=theirs,
                env=environment(home),
            ) as process:
                os.close(theirs)
                try:
                    seen = b""
                    while b"[N] Deny:" not in seen:
                        seen += os.read(ours, 1000)
                    assert b"rm -rf .git" in seen
                    os.write(ours, b"y\n")
                    output, _ = process.communicate(timeout=30)
                finally:
                    process.kill()
            assert (process.returncode, output) == (0, b"\nGone.\n")
        finally:
            os.close(ours)
    assert not (workspace / ".git").exists()


@pytest.mark.promise("mended.15")
def test_a_person_at_a_terminal_chooses_how_far_always_goes(
    tmp_path: Path, workspace: Path
) -> None:
    home = tmp_path / "home"
    calls = [{"tool": "terminal", "arguments": {"command": "rm -rf .git"}}]
    (workspace / ".git").mkdir()
    with model_server(home, {"calls": calls}, {"text": "Gone."}):
        ours, theirs = pty.openpty()
        try:
            with subprocess.Popen(
                [COMMAND, "run", "Go", "--workspace", str(workspace)],
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=theirs,
                env=environment(home),
            ) as process:
                os.close(theirs)
                try:
                    for waited_for, typed in ((b"[N] Deny:", b"a\n"), (b"which [1]:", b"2\n")):
                        output = b""
                        while waited_for not in output:
                            output += os.read(ours, 1000)
                        os.write(ours, typed)
                    assert b"1 terminal: rm -rf .git, in sessions that work in" in output
                    assert b"2 terminal: rm -rf .git, in every folder" in output
                    process.communicate(timeout=30)
                finally:
                    process.kill()
            assert process.returncode == 0
        finally:
            os.close(ours)
    listed = keryx(home, "approvals", "list").stdout
    assert "allow terminal: rm -rf .git, in every folder" in listed


def test_doctor_says_what_works_and_what_protects(tmp_path: Path) -> None:
    result = keryx(tmp_path, "doctor")
    assert result.returncode == 0
    for what in ("python", "home", "shell", "search", "confinement", "model"):
        assert f" {what} " in result.stdout
    assert "set OPENAI_API_KEY" in result.stdout
    (tmp_path / "config.toml").write_text('confinement = "off"\n')
    assert "confinement    off" in keryx(tmp_path, "doctor").stdout
    (tmp_path / "config.toml").write_text("confinement = 5\n")
    broken = keryx(tmp_path, "doctor")
    assert broken.returncode == 1
    assert "config.toml" in broken.stdout
