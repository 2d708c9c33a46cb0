"""`keryx exec`, as a person and as a program use it: words, output, codes, approvals, its end."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import COMMAND, environment, keryx

PATIENCE = 50.0


class Bench:
    """A home, a workspace, and scripts in a file."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.outside = folder / "outside"
        self._script = folder / "script.py"

    def words(self, code: str, *words: str) -> list[str]:
        self._script.write_text(f"OUTSIDE = {str(self.outside)!r}\n{code}")
        return ["exec", str(self._script), "--workspace", str(self.workspace), *words]

    def run(self, code: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return keryx(self.home, *self.words(code, *words), stdin=stdin)

    @contextmanager
    def running(self, code: str, *words: str) -> Generator[subprocess.Popen[str]]:
        """The command under way, without a terminal."""
        with subprocess.Popen(
            [COMMAND, *self.words(code, *words)],
            env=environment(self.home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def sessions(self) -> list[str]:
        listed = keryx(self.home, "sessions", "list")
        assert listed.returncode == 0, listed.stderr
        return listed.stdout.splitlines()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@contextmanager
def at_a_terminal(words: Sequence[str], home: Path) -> Generator[tuple[Any, int]]:
    """The command with a person at its stdin and stderr; its stdout is read by a program."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [COMMAND, *words],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env=environment(home),
        ) as process:
            os.close(theirs)
            try:
                yield process, ours
            finally:
                process.kill()
    finally:
        os.close(ours)


def seen_until(ours: int, text: bytes) -> bytes:
    output = b""
    while text not in output:
        output += os.read(ours, 1000)
    return output


# -- words


@pytest.mark.promise("walls.12")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the following arguments are required: script"),
        (["x.py", "--timeout", "0"], "is not a time"),
        (["x.py", "--timeout", "soon"], "is not a time"),
        (["x.py", "--approve", "perhaps"], "invalid choice"),
        (["x.py", "--workspace", "/nothing/there"], "/nothing/there"),
        (["x.py", "--tiemout", "3"], 'unknown option "--tiemout"; did you mean "--timeout"?'),
    ],
)
def test_wrong_words_are_refused_before_anything_is_done(
    bench: Bench, words: list[str], said: str
) -> None:
    result = keryx(bench.home, "exec", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr
    assert not bench.home.exists()


@pytest.mark.promise("walls.12")
def test_a_script_that_cannot_be_read_is_refused_with_a_reason(bench: Bench) -> None:
    missing = keryx(bench.home, "exec", str(bench.workspace / "missing.py"))
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "cannot be read" in missing.stderr
    (bench.workspace / "latin.py").write_bytes(b"print('\xe9')")
    unreadable = keryx(bench.home, "exec", str(bench.workspace / "latin.py"))
    assert unreadable.returncode == 1
    assert "UTF-8" in unreadable.stderr


def test_a_tool_that_there_is_not_is_refused(bench: Bench) -> None:
    result = bench.run("print(1)", "--tools", "nothing")
    assert (result.returncode, result.stdout) == (1, "")
    assert "there is no tool or toolset 'nothing'" in result.stderr
    assert bench.sessions() == []


# -- output and codes


@pytest.mark.promise("walls.12")
def test_output_arguments_and_exit_code_are_those_of_the_script(bench: Bench) -> None:
    code = (
        "import sys; print(sys.argv[1:]); print('ü', file=sys.stderr); print(sys.stdin.read());"
        "sys.exit(7)"
    )
    command = bench.words(code)
    command[2:2] = ["one", "two words"]
    result = keryx(bench.home, *command, stdin="not for the script")
    assert (result.returncode, result.stdout) == (7, "['one', 'two words']\n\n")
    assert result.stderr == "ü\n"


def test_a_script_comes_from_stdin(bench: Bench) -> None:
    words = ("exec", "-", "a", "--workspace", str(bench.workspace))
    result = keryx(bench.home, *words, stdin="import sys; print('read', sys.argv[1])")
    assert (result.returncode, result.stdout, result.stderr) == (0, "read a\n", "")
    assert keryx(bench.home, *words, stdin="").returncode == 0, "nothing to do is done"


def test_a_script_that_fails_says_where(bench: Bench) -> None:
    result = bench.run("raise ValueError('no')")
    assert result.returncode == 1
    assert "ValueError: no" in result.stderr
    assert result.stdout == ""


@pytest.mark.promise("walls.12")
def test_json_prints_events_and_nothing_else(bench: Bench) -> None:
    result = bench.run("print('out'); import sys; sys.exit(5)", "--json")
    assert result.returncode == 5
    events = [json.loads(line) for line in result.stdout.splitlines()]
    types = [event["type"] for event in events]
    assert types[0] == "call.started"
    assert types[-1] == "call.finished"
    outputs = [event for event in events if event["type"] == "call.output"]
    assert {event["stream"] for event in outputs} == {"stdout"}
    assert "".join(event["text"] for event in outputs) == "out\n"


# -- approvals

RISKY = """
from keryx_tools import ToolDeniedError, write_file
try:
    print("written:", write_file(OUTSIDE, "x")["path"])
except ToolDeniedError as error:
    print("refused:", error)
"""


@pytest.mark.promise("walls.12")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_without_a_terminal_a_nested_call_is_refused_at_once(
    bench: Bench, more: tuple[str, ...]
) -> None:
    result = bench.run(RISKY, *more)
    assert result.returncode == 0
    said = (
        "write_file was refused: it needs approval, and nobody is there to answer "
        f"(writes outside the workspace: {bench.outside})"
    )
    assert said in result.stdout
    assert "keryx: write_file: " in result.stderr
    assert "Refused: needs approval, and there is no terminal to ask" in result.stderr
    if more:
        events = [json.loads(line) for line in result.stdout.splitlines()]
        (approval,) = [event for event in events if event["type"] == "approval.asked"]
        (expired,) = [event for event in events if event["type"] == "approval.expired"]
        assert approval["call_id"].startswith(f"{approval['parent']}.")
        assert (expired["approval_id"], expired["cause"]) == (
            approval["approval_id"],
            "undelivered",
        )
    assert bench.sessions() == []


@pytest.mark.promise("walls.12")
def test_the_script_itself_is_refused_if_everything_asks(bench: Bench) -> None:
    result = bench.run("print(1)", "--approve", "ask")
    assert (result.returncode, result.stdout) == (3, "")
    assert "keryx: the script was refused" in result.stderr


@pytest.mark.promise("walls.12")
@pytest.mark.parametrize("more", [[], ["--json"]])
@pytest.mark.parametrize(
    ("typed", "said"),
    [(b"y\n", "written: "), (b"n\n", "a person refused it"), (b"\n", "refused")],
)
def test_a_person_at_a_terminal_is_asked(
    bench: Bench, typed: bytes, said: str, more: list[str]
) -> None:
    with at_a_terminal(bench.words(RISKY, *more), bench.home) as (process, ours):
        shown = seen_until(ours, b"[N] Deny:")
        os.write(ours, typed)
        output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert b"[Waiting for you] write_file: " in shown
    assert b"writes outside the workspace" in shown
    assert said in output.decode()
    assert bench.outside.exists() == (typed == b"y\n")
    assert bench.sessions() == []


QUESTION = "from keryx_tools import clarify\nprint(clarify('Which one?', ['a', 'b']).value)"


def test_a_question_is_asked_at_a_terminal_and_answered_by_nobody_without_one(
    bench: Bench,
) -> None:
    with at_a_terminal(bench.words(QUESTION), bench.home) as (process, ours):
        assert b"Which one? (a / b):" in seen_until(ours, b"b): ")
        os.write(ours, b"the second\n")
        output, _ = process.communicate(timeout=PATIENCE)
    assert output == b"{'text': 'the second', 'answered': True}\n"
    assert bench.run(QUESTION).stdout == "{'text': '', 'answered': False}\n"


# -- its end

WAITING = "import time\nprint('up', flush=True)\ntime.sleep(1000)"
HELD = """
from keryx_tools import write_file
write_file(OUTSIDE, "x")
"""


@pytest.mark.promise("walls.13")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_timeout_has_a_code_of_its_own(bench: Bench, more: tuple[str, ...]) -> None:
    result = bench.run(WAITING, "--timeout", "0.5", *more)
    assert result.returncode == 124
    assert "the script timed out after 0.5 s" in result.stderr
    assert bench.sessions() == []


HUNGRY = """
from keryx_tools import terminal
held = []
while True:
    held.append(b"x" * 10_000_000)
"""
NARROW = str(Path(__file__).with_name("narrow"))


@pytest.mark.promise("walls.13")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_script_that_is_killed_for_its_memory_says_so(
    bench: Bench, more: tuple[str, ...]
) -> None:
    result = subprocess.run(
        [COMMAND, *bench.words(HUNGRY, *more)],
        env={**environment(bench.home), "PYTHONPATH": NARROW},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 128 + signal.SIGKILL
    why = "it used more than 192 MiB of memory"
    assert result.stderr == f"keryx: the script was killed: {why}\n"
    if more:
        finished = json.loads(result.stdout.splitlines()[-1])
        assert finished["result"][0]["value"]["ended_because"] == why, "the model is told, too"


@pytest.mark.promise("walls.13")
def test_ctrl_c_ends_the_script_and_leaves_no_session(bench: Bench) -> None:
    with bench.running(WAITING) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (130, "interrupted\n")
    assert bench.sessions() == []


@pytest.mark.promise("walls.13")
def test_ctrl_c_at_the_question_leaves_no_session(bench: Bench) -> None:
    with at_a_terminal(bench.words(HELD), bench.home) as (process, ours):
        seen_until(ours, b"[N] Deny:")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert bench.sessions() == []


@pytest.mark.promise("walls.13")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_start_shows_nothing_of_one_that_was_killed_while_it_waited(
    bench: Bench, number: int
) -> None:
    with at_a_terminal(bench.words(HELD), bench.home) as (process, ours):
        seen_until(ours, b"[N] Deny:")
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == -number
    assert bench.sessions() == []
    assert list((bench.home / "temporary").iterdir()) == []


@pytest.mark.promise("walls.13")
def test_a_host_that_goes_on_deletes_the_session_of_an_exec_that_was_killed(bench: Bench) -> None:
    """The one that hosts is another process, and stays."""
    with bench.running(WAITING) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "up\n"
        before = len(bench.sessions())
        with at_a_terminal(bench.words(HELD), bench.home) as (process, ours):
            seen_until(ours, b"[N] Deny:")
            assert len(bench.sessions()) == before + 1
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while len(bench.sessions()) > before:
            assert time.monotonic() < deadline, bench.sessions()
        host.send_signal(signal.SIGINT)
        host.communicate(timeout=PATIENCE)
    assert bench.sessions() == []


@pytest.mark.promise("walls.13")
def test_one_that_loses_its_host_goes_on_and_is_deleted_at_its_end(bench: Bench) -> None:
    with bench.running(WAITING) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "up\n"
        with at_a_terminal(bench.words(HELD), bench.home) as (process, ours):
            seen_until(ours, b"[N] Deny:")
            host.send_signal(signal.SIGKILL)
            host.communicate(timeout=PATIENCE)
            process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, "the script was lost with its host, and that is said"
    assert bench.sessions() == []
