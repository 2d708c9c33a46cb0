"""A running turn in the terminal: queue, steer, stop, approvals, leaving and coming back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.chat import slow_terminal
from tests.cli.chat.terminal import Terminal, terminal
from tests.cli.commands import keryx, model_server

WAIT = {"tool": "terminal", "arguments": {"command": "echo begun; sleep 60"}}
WRITE = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "one\ntwo\n"}}


def begin(
    window: Terminal,
    tmp_path: Path,
    *words: str,
    approve: str = "never",
    size: tuple[int, int] = (80, 24),
) -> None:
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    window.start("chat", "--workspace", str(folder), "--approve", approve, *words, size=size)
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
@pytest.mark.parametrize("by", ["key", "command"])
def test_a_steer_takes_the_attached_files_along(
    home: Path, window: Terminal, tmp_path: Path, by: str
) -> None:
    replies = [{"calls": [WAIT]}, {"text": "Steered."}, {"text": "Without it."}]
    with model_server(home, *replies):
        begin(window, tmp_path, size=(40, 24))
        (tmp_path / "work" / "notes.txt").write_text("notes")
        window.send("start")
        window.wait("begun")
        window.type("/attach notes.txt")
        window.keys("Enter")
        if by == "key":
            window.wait("Attached notes.txt")
            window.wait(lambda _: "1 attached" in window.screen)
            window.type("look here")
            window.keys("M-Enter")
        else:  # without a pause: the file may still be on its way
            window.send("/steer look here")
        window.wait("> look here\n[notes.txt]")
        window.wait("Steered.")
        assert "1 attached" not in window.screen
        window.send("and now")
        window.wait("Without it.")
        assert window.scrollback.count("[notes.txt]") == 1


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


COPYING = """
import asyncio
from keryx import NO_EFFECTS, ToolContext, tool

@tool(effects=NO_EFFECTS)
async def copy_files(context: ToolContext) -> str:
    \"\"\"Copy files.\"\"\"
    context.progress(1, 4)
    while not (context.workspace / "more").exists():
        await asyncio.sleep(0.02)
    context.progress(3, 4)
    await asyncio.sleep(600)
    return "never"
"""


@pytest.mark.promise("term.3")
def test_a_running_call_has_a_row_with_a_bar_that_grows_and_goes(
    home: Path, window: Terminal, tmp_path: Path
) -> None:
    (home / "tools").mkdir(parents=True)
    (home / "tools" / "copying.py").write_text(COPYING)
    both: list[dict[str, Any]] = [{"tool": "copy_files", "arguments": {}}, WAIT]
    with model_server(home, {"calls": both}, {"text": "Never."}):
        begin(window, tmp_path)
        window.send("start")
        text = window.wait("▶ 1 copy_files ━━╌╌╌╌╌╌╌╌ 25% · ")
        window.wait("▶ 2 terminal")
        window.wait("    begun")
        (tmp_path / "work" / "more").touch()
        text = window.wait("▶ 1 copy_files ━━━━━━━━╌╌ 75% · ")
        assert text.count("copy_files") == 1, "one row for each call"
        assert "25%" not in text
        window.send("/stop 1")
        text = window.wait("■ 1 copy_files")
        assert "━" not in text, "the row is gone with its bar"
        window.keys("C-c")
        window.wait("Stopped by you")


@pytest.mark.promise("term.2")
def test_what_is_typed_is_shown_while_slowed_output_streams(
    home: Path, window: Terminal, tmp_path: Path
) -> None:
    reply = {"text": "- a word\n" * 4_000, "chunk": 27, "pace": 0.01}
    with model_server(home, reply):
        window.through = (sys.executable, slow_terminal.__file__)
        begin(window, tmp_path)
        window.send("go")
        window.wait("a word")
        for typed in ("n", "no", "not", "note"):
            window.type(typed[-1])
            # Each character is shown before the next is typed, while the reply goes on.
            window.wait(lambda text, row=f"> {typed}": f"\n{row}\nWorking…" in text)
        window.keys("C-c", "C-c")
        window.wait("Stopped by you")


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
        window.record(log)
        window.type("write")
        window.keys("Enter")
        window.wait("/1 Allow once")
        window.type("/1")
        window.keys("Enter")
        window.wait("Written.")
        assert b"\x1b" not in window.recorded(log, b"Written.")


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


@pytest.mark.promise("term.4")
@pytest.mark.parametrize("key", ["y", "1"])
def test_an_answer_after_coming_back_reaches_the_call_that_waited(
    home: Path, window: Terminal, tmp_path: Path, key: str
) -> None:
    """Nobody else hosts the home: the call ends with the chat, and waits again in the next one."""
    ask = {"tool": "clarify", "arguments": {"question": "Which one?", "choices": ["red", "blue"]}}
    with model_server(home, {"calls": [WRITE if key == "y" else ask]}, {"text": "Answered."}):
        begin(window, tmp_path, approve="ask")
        window.send("go")
        window.wait("Ctrl+X, then:")
        window.keys("C-d")
        window.wait("The turn is suspended")
        with terminal(home) as other:
            begin(other, tmp_path, "-c")
            other.wait("Ctrl+X, then:")
            other.keys("C-x", key)
            text = other.wait("Answered.")
    assert "shutdown" not in text
    assert ("✓ 1 write_file" if key == "y" else "red (terminal)") in text
    assert (tmp_path / "work" / "a.txt").exists() == (key == "y")
