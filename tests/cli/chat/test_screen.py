"""The interactive terminal, driven in a real one: its scrollback, its draft, its idle time."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from tests.cli.chat import slow_terminal
from tests.cli.chat.terminal import Terminal, terminal
from tests.cli.commands import model_server

pytestmark = pytest.mark.promise("term.1")
LINES = "\n".join(f"line {number:04}" for number in range(1_000))


def test_the_scrollback_holds_each_line_once_after_twenty_resizes(
    home: Path, window: Terminal
) -> None:
    reply = {"text": f"```\n{LINES}\n```\n\nThat is all.", "chunk": 50, "pace": 0.005}
    with model_server(home, reply):
        window.start("chat")
        window.wait(">")
        window.type("count")
        window.keys("Enter")
        window.wait("line 0100")
        for number in range(20):
            window.resize(40 + number * 17 % 60, 12 + number * 7 % 20)
        window.resize(80, 24)
        window.wait("That is all.")
        window.wait("test-model")
        text = window.wait(lambda text: len(re.findall(r"^>$", text, re.MULTILINE)) == 1)
    assert re.findall(r"line \d{4}", text) == LINES.split("\n")
    assert text.count("test-model") == 1, "one status line"


def test_markdown_is_shown_without_boxes_and_without_blanks_at_the_ends(
    home: Path, window: Terminal
) -> None:
    reply = {
        "text": "# Title\n\nSome **bold** text.\n\n- one\n- two\n\n```python\nx = 1\n```\nEnd."
    }
    with model_server(home, reply):
        window.start("chat", size=(40, 20))
        window.wait(">")
        window.type("hello")
        window.keys("Enter")
        text = window.wait("End.")
    assert "\nSome bold text.\n" in text
    assert "\nx = 1\n" in text
    assert not set(text) & set("│┃╭┌#")


@pytest.mark.promise("term.2")
def test_a_paste_of_many_lines_does_not_submit_and_up_brings_a_cleared_draft_back(
    home: Path, window: Terminal
) -> None:
    with model_server(home, {"text": "Never sent."}):
        window.start("chat")
        window.wait(">")
        window.paste("first\nsecond\nthird")
        window.wait("third")
        window.keys("C-j")
        window.type("fourth")
        window.wait("fourth")
        window.keys("C-c")
        assert "fourth" not in window.wait("Up brings the draft back")
        window.keys("Up")
        text = window.wait("fourth")
    assert "first\n" in text
    assert "Never sent" not in text


def test_an_idle_chat_writes_nothing(home: Path, window: Terminal, tmp_path: Path) -> None:
    with model_server(home, {"text": "Hello."}):
        window.start("chat")
        window.wait(">")
        window.type("hi")
        window.keys("Enter")
        window.wait("Hello.")
        written = tmp_path / "written"
        window.record(written)
        window.type("a")
        window.wait("> a")

        def is_silent(_: str) -> bool:
            """Return whether nothing is written for longer than any timer of the screen takes."""
            size = written.stat().st_size
            time.sleep(2.5)
            return written.stat().st_size == size > 0

        window.wait(is_silent)


def test_long_live_rows_are_neither_lost_nor_doubled_when_frames_meet_resizes(
    home: Path, window: Terminal
) -> None:
    """tmux wraps the rows anew at once, and tells the chat later: frames come in between."""
    words = " ".join(["word"] * 12)
    items = [f"item {number:03}" for number in range(200)]
    text = "\n".join(f"- {item} {words}" for item in items)
    reply = {"text": f"{text}\n\nThat is all.", "chunk": 40, "pace": 0.004}
    with model_server(home, reply):
        window.start("chat")
        window.wait(">")
        window.send("list")
        window.wait("item 005")
        for number in range(40):
            window.resize(40 + number * 17 % 60, 14 + number * 7 % 20)
        window.resize(80, 24)
        window.wait("That is all.")
        text = window.wait(
            lambda text: (
                len(re.findall(r"^>$", text, re.MULTILINE)) == text.count("test-model") == 1
            )
        )
    assert re.findall(r"item \d{3}", text) == items


def test_frames_that_do_not_know_the_size_of_tmux_lose_and_double_no_row(
    home: Path, window: Terminal
) -> None:
    """The terminal in between never tells the chat of a new size, so every frame is late."""
    words = " ".join(["word"] * 12)
    items = [f"item {number:03}" for number in range(70)]
    text = "\n".join(f"- {item} {words}" for item in items)
    with model_server(home, {"text": f"{text}\n\nThat is all.", "chunk": 40, "pace": 0.01}):
        window.through = (sys.executable, slow_terminal.__file__)
        window.start("chat")
        window.wait("/help")
        window.send("list")
        for number, columns in enumerate((50, 70, 40, 79, 45, 64, 42, 80), 1):
            window.wait(f"item {number * 8:03}")
            window.resize(columns, 24)
        window.wait("That is all.")
        text = window.wait(lambda text: "Working" not in text and "test-model" in text)
    assert re.findall(r"item \d{3}", text) == items


def test_outside_tmux_frames_that_meet_a_narrower_terminal_lose_and_double_no_row(
    home: Path, window: Terminal
) -> None:
    """The chat takes tmux for another terminal. It wraps rows anew up to 250 ms before it tells."""
    words = " ".join(["word"] * 13)
    items = [f"item {number:03}" for number in range(250)]
    # Paragraphs of five rows that are as wide as the terminal, so that live rows are many and long.
    rows = [f"{item} {words}" for item in items]
    text = "\n\n".join("\\\n".join(rows[at : at + 5]) for at in range(0, len(rows), 5))
    window.is_hidden = True
    with model_server(home, {"text": f"{text}\n\nThat is all.", "chunk": 40, "pace": 0.02}):
        window.start("chat")
        window.wait(">")
        window.send("list")
        window.wait("item 003")
        # Narrower by less than a quarter each time, and wider by any part.
        for columns in (64, 52, 80, 65, 100, 78, 62, 80):
            window.resize(columns, 24 + columns % 3)
            window.wait_told(columns, 24 + columns % 3)
            shown = len(re.findall(r"item \d{3}", window.scrollback))
            window.wait(f"item {min(shown + 4, 249):03}")
        window.wait("That is all.")
        text = window.wait(
            lambda text: (
                len(re.findall(r"^>$", text, re.MULTILINE)) == text.count("test-model") == 1
            )
        )
    assert re.findall(r"item \d{3}", text) == items
    assert len(re.findall(r"\bword\b", text)) == len(items) * 13, "no row is cut"


def test_a_long_open_block_never_fills_the_screen_and_ctrl_l_draws_it_again(
    home: Path, window: Terminal
) -> None:
    rows = "\n".join(f"row {number:02}" for number in range(35))
    reply = {"text": rows, "chunk": 20, "fault": "hang mid-stream", "after": 13}
    with model_server(home, reply):
        window.start("chat", size=(40, 14))
        window.wait(">")
        window.send("go")
        window.wait("row 30")
        text = window.scrollback
        assert len(text.rstrip().splitlines()) <= 14, (
            "nothing of the open block is in the scrollback"
        )
        window.type("draft")
        window.wait("> draft")
        window.keys("C-l")
        window.type(" more")
        text = window.wait("> draft more")
        assert text.count("> go") == text.count("> draft") == 1
        assert window.caret == (len("> draft more"), "> draft more")


def test_forty_columns_show_everything_and_the_caret_is_where_typing_goes(
    home: Path, window: Terminal, folder: Path
) -> None:
    command = f"touch {'x' * 60}; ls; sleep 60"
    wait = {"tool": "terminal", "arguments": {"command": command}}
    with model_server(home, {"calls": [wait]}):
        window.start("chat", "--workspace", str(folder), "--approve", "ask", size=(40, 20))
        window.wait("/help")
        window.send("run")
        text = window.wait("Ctrl+X, then:")
        assert command in text.replace("\n", ""), "the whole command is shown"
        assert "N Deny" in text
        window.type("äö 日本")
        window.wait("> äö 日本")
        assert window.caret == (2 + 3 + 4, "> äö 日本")
        window.keys("Left", "C-j")
        window.wait(lambda _: window.caret == (0, "本"))
        window.keys("C-x", "y")
        window.wait("xxxx")
        assert all(len(line) <= 40 for line in window.screen.splitlines())


def test_no_color_has_no_colour_and_sixteen_colours_are_the_most(
    home: Path, window: Terminal, folder: Path
) -> None:
    write = {"tool": "write_file", "arguments": {"path": "a.py", "content": "x = 1\n"}}
    replies = [{"calls": [write]}, {"text": "```python\nx = 1\n```\nDone."}]
    colour = re.compile(r"\x1b\[[0-9;]*\b(3[0-7]|4[0-7]|9[0-7]|38;5|38;2)")
    for variables, has_colour in (({}, True), ({"NO_COLOR": "1"}, False)):
        with model_server(home, *replies), terminal(home) as other:
            words = ("chat", "--workspace", str(folder), "--approve", "never")
            other.start(*words, size=(80, 40), **variables)
            other.wait(">")
            other.send("write")
            other.wait("Done.")
            other.wait("test-model")
            styled = other.styled
        codes = colour.findall(styled)
        assert bool(codes) == has_colour, codes
        assert not {"38;5", "38;2"} & set(codes)
        (folder / "a.py").unlink()


@pytest.mark.promise("term.2")
def test_in_vi_mode_escape_leaves_insert_first(home: Path, window: Terminal) -> None:
    with model_server(home, {"text": "Never."}):
        window.start("chat", "--vi")
        window.wait("/help")
        window.type("hello world")
        window.wait("> hello world")
        window.keys("Escape")
        window.wait(lambda _: window.caret[0] == len("> hello worl"))
        window.type("bcwthere")
        window.wait("> hello there")
        window.keys("Escape")
        window.type("0D")
        window.wait(lambda text: "hello" not in text)


@pytest.mark.promise("term.5")
def test_keryx_alone_starts_the_chat(home: Path, window: Terminal) -> None:
    with model_server(home, {"text": "Hello from a bare start."}):
        window.start()
        window.wait(">")
        window.send("hi")
        window.wait("Hello from a bare start.")
        with terminal(home) as other:
            other.start("-c")
            other.wait("Hello from a bare start.")


@pytest.mark.promise("term.4")
def test_two_chats_share_a_session_and_one_leaves_in_mid_turn(
    home: Path, window: Terminal, folder: Path
) -> None:
    wait = {"tool": "terminal", "arguments": {"command": "echo begun; sleep 60"}}
    words = ("chat", "--workspace", str(folder), "--approve", "never")
    with model_server(home, {"text": "Hello."}, {"calls": [wait]}, {"text": "Steered."}):
        window.start(*words)
        window.wait(">")
        window.send("hi")
        window.wait("Hello.")
        with terminal(home) as other:
            other.start(*words, "-c")
            other.wait("Hello.")
            other.send("start")
            other.wait("begun")
            assert "> start" in window.wait("begun")
            other.keys("C-c", "C-c")
            other.wait("left with 0")
        window.wait("Stopped by you")
        with terminal(home) as other:
            other.start(*words, "-c")
            other.wait("Stopped by you")
            other.send("again")
            window.wait("Steered.")
            other.wait("Steered.")
