"""Wrong input, odd moments and pipes: nothing that a person typed is lost, and the chat goes on."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.chat.terminal import Terminal
from tests.cli.commands import COMMAND, environment, keryx, model_server

pytestmark = pytest.mark.promise("term.3")
WAIT = {"tool": "terminal", "arguments": {"command": "echo begun; sleep 60"}}
REPLIES = ({"text": "One."}, {"text": "Two."})


def start(window: Terminal, folder: Path, *words: str) -> None:
    window.start("chat", "--workspace", str(folder), "--approve", "never", *words, size=(80, 40))
    window.wait("/help")


def test_a_command_that_fails_leaves_the_chat_usable(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, *REPLIES):
        start(window, folder)
        window.send("/attach ~nobody-of-this-name/x")
        window.wait("begins with a user who does not exist here")
        window.send("see @~nobody-of-this-name/")
        text = window.wait("One.")
        window.paste(f"/{'a' * 300}.png")
        window.keys("C-c")
        window.send("/answer something")
        window.wait("Nothing is waiting for you.")
        window.wait("> something")  # it is in the draft again
        window.keys("Enter")
        text = window.wait("Two.")
    assert "please report it" not in text
    assert "background task" not in text


def test_a_queued_message_is_removed_only_by_its_commands_and_keeps_its_files(
    home: Path, window: Terminal, folder: Path
) -> None:
    (folder / "notes.txt").write_text("notes")
    with model_server(home, {"calls": [WAIT]}):
        start(window, folder)
        window.send("start")
        window.wait("begun")
        window.send("/attach notes.txt")
        window.wait("Attached notes.txt")
        window.send("read it")
        window.wait("Queued 1: read it")
        window.send("/queue show 1")
        assert "Queued 1: read it" in window.wait("/queue takes: edit NUMBER, remove NUMBER")
        window.send("/queue edit 1")
        window.wait("1 attached")
        assert "> read it" in window.screen
        assert "Queued 1" not in window.screen


def test_steering_before_there_is_a_turn_keeps_the_order_and_runs_commands(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, *REPLIES):
        start(window, folder)
        window.type("/usage")
        window.keys("M-Enter")
        window.wait("No usage yet.")
        window.type("first")
        window.keys("Enter")
        window.type("second")
        window.keys("M-Enter")
        # The second message joins the turn before, during or after the first request, so that there
        # are one or two replies; the request that it cut off has none.
        replies = ("One.", "Two.")
        text = window.wait(lambda text: "> second" in text and any(r in text for r in replies))
        assert text.index("> first") < text.index("> second")
        shown = keryx(home, "sessions", "list").stdout
    assert len(re.findall(r"s_[0-9a-f]{16}", shown)) == 1


def test_a_message_that_is_sent_just_before_leaving_is_sent(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, *REPLIES):
        start(window, folder)
        window.type("remember this")
        window.keys("Enter", "C-d")
        window.wait("left with 0")
        assert "remember this" in keryx(home, "sessions", "list").stdout


def test_a_session_that_is_deleted_elsewhere_makes_room_for_a_new_one(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, *REPLIES):
        start(window, folder)
        window.send("hello")
        window.wait("One.")
        (session_id,) = re.findall(r"s_[0-9a-f]{16}", keryx(home, "sessions", "list").stdout)
        assert keryx(home, "sessions", "delete", session_id, stdin="y\n").returncode == 0
        window.wait("This session was deleted. The next message starts a new one.")
        window.send("again")
        window.wait("Two.")


@pytest.mark.promise("term.5")
@pytest.mark.parametrize(
    ("lines", "replies"),
    [
        ("hi\n/new\nagain\n", "One.\n\nTwo.\n"),
        ("hi\n/undo\nagain\n", "One.\n\nTwo.\n"),
        ("hi\n/quit\n", "One.\n"),
        (f"/resume {'1' * 5_000}\nhi\n", "One.\n"),
        ("/export ~nobody-of-this-name/x\nhi\n", "One.\n"),
    ],
)
def test_commands_in_a_pipe_wait_for_what_comes_before_them(
    home: Path, lines: str, replies: str
) -> None:
    with model_server(home, *REPLIES):
        result = keryx(home, "chat", stdin=lines)
    assert (result.stdout, result.returncode) == (replies, 0), result.stderr
    assert "There is no turn to undo" not in result.stderr


@pytest.mark.promise("term.5")
def test_what_a_pipe_could_not_send_is_an_error(home: Path) -> None:
    with model_server(home, *REPLIES):
        result = keryx(home, "chat", stdin=f"/{'1' * 5_000}\n/bogus\nhi\n")
    assert result.stdout == "One.\n"
    assert "[not sent: /bogus]" in result.stderr
    assert result.returncode == 1


@pytest.mark.promise("term.5")
def test_plain_lines_send_a_block_of_lines_as_one_message(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, *REPLIES):
        window.start("chat", "--workspace", str(folder), "--plain", size=(40, 60))
        window.wait("/help")
        window.send("/text")
        window.wait("/end sends the lines that follow")
        window.send("dropped")
        window.send("/drop")
        window.send("/text")
        window.paste("/model is the first line\n\nthe last line\n")
        window.send("/end")
        text = window.wait("One.")
        assert "> /model is the first line\n\nthe last line\n" in text
        assert "> dropped" not in text
        window.send("/text")
        window.send("left open")
        window.send("/end")
        window.wait("Two.")
        window.send("/help")
        text = window.wait("  /end\n    Send them as one message\n")
        window.send("/text")
        window.send("not finished")
        window.keys("C-d")
        window.wait("[not sent: not finished]")
        window.wait("left with 0")


def test_the_help_is_readable_in_a_narrow_terminal(home: Path, window: Terminal) -> None:
    with model_server(home, *REPLIES):
        window.start("chat", size=(40, 100))
        window.wait("/help")
        window.send("/help")
        text = window.wait("Ctrl+L")
    assert "\n  /undo\n    Undo the last turn and its file\n    changes\n  /retry\n" in text


@pytest.mark.promise("term.5")
def test_a_reader_that_goes_ends_the_chat(home: Path) -> None:
    with model_server(home, {"text": "line\n\n" * 3_000}):
        command = f"echo hi | {shlex.quote(COMMAND)} chat | head -1"
        result = subprocess.run(
            command,
            shell=True,
            capture_output=True,
            text=True,
            check=False,
            env=environment(home),
            timeout=60,
        )
    assert result.stdout == "line\n"
    assert "please report it" not in result.stderr


def test_the_approval_of_a_call_from_a_script_shows_what_it_writes(
    home: Path, window: Terminal, folder: Path
) -> None:
    code = "from keryx_tools import write_file\nwrite_file(path='a.txt', content='nested line')"
    script = {"tool": "execute_code", "arguments": {"code": code}}
    with model_server(home, {"calls": [script]}, {"text": "Done."}):
        window.start(
            "chat", "--workspace", str(folder), "--approve", "ask", "--tools", "files,execute_code"
        )
        window.wait("/help")
        window.send("run it")
        text = window.wait("Allow ")
        if "Allow execute_code" in text:
            window.keys("C-x", "y")
        window.wait("Allow write_file")
        window.wait("+nested line")
        window.keys("C-x", "n")
        window.wait("Done.")


def test_ctrl_c_ends_a_search_of_the_history_and_not_the_turn(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"text": "One."}, {"calls": [WAIT]}):
        start(window, folder)
        window.send("alpha")
        window.wait("One.")
        window.send("start")
        window.wait("begun")
        window.keys("C-r")
        window.type("alp")
        window.wait("I-search backward: alp")
        window.keys("C-c")
        window.wait(lambda _: "I-search" not in window.screen)
        window.type("a draft")
        window.wait("> a draft")
        assert "Stopping" not in window.screen
        assert "▶ 1 terminal" in window.screen


def test_tools_are_chosen_by_their_sets_and_wrong_names_are_refused(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, *REPLIES):
        start(window, folder)
        window.send("/tools files")
        window.wait("Tools: read_file, write_file, patch, search_files, list_files")
        window.send("/tools bogus")
        window.wait("there is no tool or toolset 'bogus'")
        window.send("/tools")
        text = window.wait(lambda text: text.count("Tools: ") == 2)
    assert "Tools: bogus" not in text


def test_a_request_says_what_it_asks_in_a_very_small_terminal(
    home: Path, window: Terminal, folder: Path
) -> None:
    push = {"tool": "terminal", "arguments": {"command": "git push --force"}}
    with model_server(home, {"calls": [push]}, {"text": "Done."}):
        words = ("chat", "--workspace", str(folder), "--approve", "auto")
        window.start(*words, size=(25, 10))
        window.wait("/help")
        window.send("push")
        window.wait("Ctrl+X, then: Y · S\n  A · N")
        assert "Waiting for you: Allow …\nCtrl+X, then:" in window.screen
        window.keys("C-x", "n")
        window.wait("Done.")
