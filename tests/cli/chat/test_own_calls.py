"""Calls that a person runs in the chat, without a model, and how commands that fail are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.chat.terminal import Terminal
from tests.cli.commands import keryx, model_server

pytestmark = pytest.mark.promise("term.3")
FAILS = {"tool": "terminal", "arguments": {"command": "echo hm; exit 4"}}


def start(window: Terminal, folder: Path, *words: str) -> None:
    window.start("chat", "--workspace", str(folder), *words, size=(100, 40))
    window.wait("/help")


def test_a_command_of_the_shell_is_run_without_a_model(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"text": "Hello."}):
        start(window, folder)
        window.send("!for n in $(seq 30); do echo line $n; done; exit 3")
        text = window.wait("· exit code 3 ·")
        assert "! 1 terminal for n in" in text
        assert "line 30" in text, "all of what a person asked for is shown"
        assert "Hello." not in text
        window.send("hi")
        window.wait("Hello.")


def test_code_is_run_with_the_tools(home: Path, window: Terminal, folder: Path) -> None:
    (folder / "note.txt").write_text("from a file")
    with model_server(home):
        start(window, folder)
        window.send("/exec")
        window.wait("/exec needs a value: /exec CODE")
        window.send("/exec from keryx_tools import read_file; print(read_file('note.txt'))")
        window.wait("from a file")


def test_ctrl_c_stops_a_command_and_the_chat_goes_on(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"text": "Hello."}):
        start(window, folder)
        window.send("!echo begun; sleep 600")
        window.wait("begun")
        window.send("hi")
        window.wait("Hello.")
        window.keys("C-c")
        window.wait("Cancelled: interrupt")
        window.send("!echo again")
        window.wait("✓ 2 terminal echo again")


def test_a_message_may_begin_with_a_mark(home: Path, window: Terminal, folder: Path) -> None:
    with model_server(home, {"text": "One."}, {"text": "Two."}):
        start(window, folder)
        window.send(" !important: read this")
        window.wait("One.")
        assert "> !important: read this" in window.scrollback
        # Nobody knows who wrote what comes through a pipe.
        piped = keryx(home, "chat", "--workspace", str(folder), stdin="!touch made-by-a-pipe\n")
        assert "Two." in piped.stdout
        assert not (folder / "made-by-a-pipe").exists()


def test_a_command_that_fails_is_not_shown_as_good(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"calls": [FAILS]}, {"text": "It failed."}):
        start(window, folder)
        window.send("try")
        window.wait("It failed.")
        assert "! 1 terminal echo hm; exit 4 · exit code 4 · " in window.scrollback


def test_plain_lines_run_commands_and_a_marked_block_does_not(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"text": "Read."}):
        start(window, folder, "--plain")
        window.send("!touch made-by-a-line; exit 5")
        window.wait("· exit code 5 ·")
        assert (folder / "made-by-a-line").exists()
        for line in ("/text", "!touch made-by-a-block", "/end"):
            window.send(line)
        window.wait("Read.")
        assert not (folder / "made-by-a-block").exists()
