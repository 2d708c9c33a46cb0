"""`keryx run` and `keryx sessions`, as a person uses them."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import COMMAND, environment, keryx, model_server


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
    assert "the message is empty" in keryx(tmp_path, "run", "  ").stderr
    assert "no session 'x'" in keryx(tmp_path, "sessions", "show", "x").stderr
    (tmp_path / "config.toml").write_text("[providers.x]\nurl = 1")
    broken = keryx(tmp_path, "run", "Hi")
    assert broken.returncode == 1
    assert "config.toml" in broken.stderr


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """What it prints, up to and with this text."""
    assert process.stdout is not None
    output = ""
    while text not in output:
        letter = process.stdout.read(1)
        assert letter, f"it ended after {output!r}"
        output += letter
    return output


def test_ctrl_c_cancels_the_turn_and_the_log_says_so(tmp_path: Path) -> None:
    with model_server(tmp_path, {"text": "Half of it", "fault": "hang mid-stream", "after": 3}):
        command = [COMMAND, "run", "--json", "Tell"]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(tmp_path),
        ) as process:
            try:
                read_until(process, "text.delta")
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=20)
            finally:
                process.kill()
        assert process.returncode == 130
        assert "cancelling the turn" in errors
        assert "Traceback" not in errors
    (row,) = keryx(tmp_path, "sessions", "list").stdout.splitlines()
    shown = keryx(tmp_path, "sessions", "show", row.split()[0], "--json").stdout
    types = [json.loads(line)["type"] for line in shown.splitlines()]
    assert types.index("turn.cancelling") < types.index("turn.finished")


@pytest.mark.promise("001.5")
def test_ctrl_c_at_a_terminal_says_how_the_turn_ended(tmp_path: Path) -> None:
    """A person sees the text as it comes, presses the keys, and is told."""
    ours, theirs = pty.openpty()
    reply = {"text": "Half of it", "fault": "hang mid-stream", "after": 3}
    with (
        model_server(tmp_path, reply),
        subprocess.Popen(
            [COMMAND, "run", "Tell"],
            stdout=theirs,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(tmp_path),
        ) as process,
    ):
        os.close(theirs)
        try:
            output = b""
            while b"Half" not in output:
                output += os.read(ours, 1000)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
        finally:
            process.kill()
            os.close(ours)
    assert process.returncode == 130
    assert "keryx: cancelled (interrupt)" in errors
    assert "Traceback" not in errors


def test_two_at_once_share_one_home(tmp_path: Path) -> None:
    with model_server(tmp_path, {"text": "Fine."}, repeat=True):
        several = [
            subprocess.Popen(
                [COMMAND, "run", f"Hi {number}"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment(tmp_path),
            )
            for number in range(4)
        ]
        for process in several:
            try:
                output, errors = process.communicate(timeout=30)
            finally:
                process.kill()
            assert (process.returncode, output, errors) == (0, "Fine.\n", "")
    assert len(keryx(tmp_path, "sessions", "list").stdout.splitlines()) == 4


SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ('{"n": 5}', 0, ""),
        ('{"n": "five"}', 4, "does not fit the schema"),
        ("five", 4, "is not JSON"),
    ],
)
def test_an_answer_with_a_schema_is_printed_alone_and_checked(
    tmp_path: Path, answer: str, code: int, said: str
) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(SCHEMA)
    with model_server(tmp_path, {"text": answer}, repeat=True):
        result = keryx(tmp_path, "run", "--schema", str(schema), "How many?")
    assert (result.returncode, result.stdout) == (code, answer + "\n")
    assert said in result.stderr


def test_an_answer_that_fits_after_the_model_was_told_is_the_one_that_is_printed(
    tmp_path: Path,
) -> None:
    with model_server(tmp_path, {"text": "five"}, {"text": '{"n": 5}'}):
        result = keryx(tmp_path, "run", "--schema", SCHEMA, "How many?")
    assert (result.returncode, result.stdout) == (0, '{"n": 5}\n')


def test_what_is_no_schema_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    for schema, said in (
        ("missing.json", "cannot be read"),
        ("{", "is not JSON"),
        ('{"type": 5}', "is not a JSON schema"),
    ):
        result = keryx(tmp_path, "run", "--model", "scripted:demo", "--schema", schema, "Hi")
        assert result.returncode == 1
        assert said in result.stderr


def test_an_unknown_personality_is_a_warning_and_the_turn_runs(tmp_path: Path) -> None:
    words = ("run", "--model", "scripted:demo", "--personality", "pirate", "Hi")
    result = keryx(tmp_path, *words)
    assert result.returncode == 0
    assert "there is no personality 'pirate' (configured: none)" in result.stderr
