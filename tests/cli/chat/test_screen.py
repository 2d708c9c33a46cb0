"""The interactive terminal, driven in a real one: its scrollback, its draft, its idle time."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.cli.chat.terminal import Terminal
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
        window.tmux("pipe-pane", f"cat >> {written}")
        window.type("a")
        window.wait("> a")

        def is_silent(_: str) -> bool:
            """Return whether nothing is written for longer than any timer of the screen takes."""
            size = written.stat().st_size
            time.sleep(2.5)
            return written.stat().st_size == size > 0

        window.wait(is_silent)
