"""A running turn in the terminal: queue, steer, stop, approvals, leaving and coming back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.chat.terminal import Terminal, terminal
from tests.cli.commands import keryx, model_server

WAIT = {"tool": "terminal", "arguments": {"command": "echo begun; sleep 60"}}
WRITE = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "one\ntwo\n"}}


def begin(window: Terminal, tmp_path: Path, *words: str, approve: str = "never") -> None:
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    window.start("chat", "--workspace", str(folder), "--approve", approve, *words)
    window.wait(">")


@pytest.mark.promise("term.3", "001.5")
def test_enter_queues_and_alt_enter_steers(home: Path, window: Terminal, tmp_path: Path) -> None:
    replies = [{"calls": [WAIT]}, {"text": "Steered."}, {"text": "The queue is next."}]
    with model_server(home, *replies):
        begin(window, tmp_path)
        window.type("start")
        window.keys("Enter")
        window.wait("begun")
        window.type("later please")
        window.keys("Enter")
        window.wait("Queued 1: later please")
        window.type("do this now")
        window.keys("M-Enter")
        window.wait("> do this now")
        window.wait("Steered.")
        text = window.wait("The queue is next.")
    assert text.index("> do this now") < text.index("> later please")


@pytest.mark.promise("term.3")
def test_one_call_is_stopped_by_its_number_and_ctrl_c_stops_the_turn(
    home: Path, window: Terminal, tmp_path: Path
) -> None:
    with model_server(home, {"calls": [WAIT, WAIT]}, {"text": "Never."}):
        begin(window, tmp_path)
        window.type("start")
        window.keys("Enter")
        window.wait("2 terminal")
        window.type("/stop 2")
        window.keys("Enter")
        text = window.wait("■ 2 terminal")
        assert "▶ 1 terminal" in text, "the turn goes on"
        window.keys("C-c")
        text = window.wait("Stopped by you")
    assert "Never." not in text


@pytest.mark.promise("term.2")
def test_typing_never_answers_an_approval(home: Path, window: Terminal, tmp_path: Path) -> None:
    with model_server(home, {"calls": [WRITE]}, {"text": "Written."}):
        begin(window, tmp_path, approve="ask")
        window.type("write")
        window.keys("Enter")
        text = window.wait("Ctrl+X, then:")
        assert "+one\n" in text
        assert "Allow for this session" in text
        window.type("yes a n 1")
        text = window.wait("> yes a n 1")
        assert "Waiting for you" in text
        assert not (tmp_path / "work" / "a.txt").exists()
        window.keys("C-x", "y")
        text = window.wait("Written.")
        assert "> yes a n 1" in text, "the draft is still there"
    assert (tmp_path / "work" / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.promise("term.4")
def test_a_chat_that_left_with_an_approval_open_finds_it_again(
    home: Path, window: Terminal, tmp_path: Path
) -> None:
    with model_server(home, {"calls": [WRITE]}, {"text": "Written."}):
        begin(window, tmp_path, approve="ask")
        window.type("write")
        window.keys("Enter")
        window.wait("Ctrl+X, then:")
        window.keys("C-d")
        window.wait("The turn is suspended")
        with terminal(home) as other:
            begin(other, tmp_path, "-c")
            other.wait("Ctrl+X, then:")
            other.keys("C-x", "n")
            other.wait("Denied (terminal)")
            other.wait("Written.")


@pytest.mark.promise("term.5")
def test_a_pipe_gets_the_reply_alone(home: Path) -> None:
    with model_server(home, {"text": "Hello **you**."}, {"text": "Again."}):
        result = keryx(home, "chat", stdin="hi\nand now\n")
    assert result.stdout == "Hello **you**.\n\nAgain.\n"
    assert result.returncode == 0, result.stderr


@pytest.mark.promise("term.5")
def test_a_dumb_terminal_and_plain_mode_get_no_escape_sequences(
    home: Path, window: Terminal, tmp_path: Path
) -> None:
    log = tmp_path / "written"
    with model_server(home, {"calls": [WRITE]}, {"text": "Written."}):
        folder = tmp_path / "work"
        folder.mkdir()
        words = ("chat", "--workspace", str(folder), "--approve", "ask")
        window.start(*words, TERM="dumb")
        window.wait("Keryx. /help")
        window.tmux("pipe-pane", f"cat >> {log}")
        window.type("write")
        window.keys("Enter")
        window.wait("/1 Allow once")
        window.type("/1")
        window.keys("Enter")
        window.wait("Written.")
    assert b"\x1b" not in log.read_bytes()


@pytest.mark.promise("term.2")
@pytest.mark.parametrize("keys", ["1b 5b 31 33 3b 32 75", "1b 5b 32 37 3b 32 3b 31 33 7e", "0a"])
def test_shift_enter_and_ctrl_j_make_a_new_line(
    home: Path, window: Terminal, tmp_path: Path, keys: str
) -> None:
    """As terminals report it: both forms of Shift+Enter, and Ctrl+J, which all of them send."""
    with model_server(home, {"text": "Two lines."}):
        begin(window, tmp_path)
        window.type("first")
        window.keys("-H", *keys.split())
        window.type("second")
        window.wait("> first\nsecond")
        assert "Two lines." not in window.scrollback
        window.keys("Enter")
        window.wait("Two lines.")
    log = keryx(home, "sessions", "show", keryx(home, "sessions", "list").stdout.split()[0]).stdout
    assert "first\nsecond" in log or "first\\nsecond" in log
