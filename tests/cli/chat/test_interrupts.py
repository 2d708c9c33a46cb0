"""Ctrl+C in every phase, signals, a slow terminal, and what survives the end of a chat."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.chat import slow_terminal
from tests.cli.chat.terminal import Terminal, terminal
from tests.cli.commands import model_server

WAIT = {"tool": "terminal", "arguments": {"command": "echo begun; sleep 60"}}
WRITE = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "one\n"}}
ENDLESS = {"text": "It begins here and goes on", "chunk": 5, "fault": "hang mid-stream", "after": 5}


def leave(window: Terminal) -> str:
    """Press Ctrl+C twice; return what is left on the terminal."""
    window.keys("C-c")
    window.wait("Ctrl+C again leaves")
    window.keys("C-c")
    return window.wait("left with 0")


@pytest.mark.promise("term.3")
def test_ctrl_c_with_nothing_to_stop_leaves_if_pressed_twice(home: Path, window: Terminal) -> None:
    with model_server(home, {"text": "Never."}):
        window.start("chat")
        window.wait("/help")
        window.type("a draft")
        window.wait("> a draft")
        window.keys("C-c")
        window.wait("Up brings the draft back")
        text = leave(window)
    assert " icanon" in text, "the terminal is as it was"
    assert " echo " in text
    assert "Starting…" not in text


@pytest.mark.promise("term.3", "001.5")
def test_ctrl_c_stops_a_reply_and_the_next_message_starts(home: Path, window: Terminal) -> None:
    with model_server(home, ENDLESS, {"text": "Next."}):
        window.start("chat")
        window.wait(">")
        window.send("begin")
        window.wait("It begins")
        window.type("half a draft")
        window.wait("> half a draft")
        window.keys("C-c")
        window.wait("Up brings the draft back")
        window.keys("C-c")
        window.wait("Stopped by you")
        window.send("go on")
        window.wait("Next.")


@pytest.mark.promise("term.3")
def test_ctrl_c_takes_an_open_approval_away_with_its_turn(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"calls": [WRITE]}):
        window.start("chat", "--workspace", str(folder), "--approve", "ask")
        window.wait(">")
        window.send("write")
        window.wait("Ctrl+X, then:")
        window.keys("C-c")
        window.wait("Stopped by you")
        window.wait(lambda _: "Ctrl+X, then:" not in window.screen.rstrip().splitlines()[-1])
        window.keys("C-d")
        window.wait("left with 0")
    assert not (folder / "a.txt").exists()


@pytest.mark.promise("term.3")
def test_a_second_ctrl_c_leaves_while_the_turn_goes_on_elsewhere(
    home: Path, window: Terminal, folder: Path
) -> None:
    """Leaving does not wait for the turn; it is suspended, and found again."""
    with model_server(home, {"calls": [WAIT]}, {"text": "Came back."}):
        window.start("chat", "--workspace", str(folder), "--approve", "never")
        window.wait(">")
        window.send("start")
        window.wait("begun")
        window.keys("C-c", "C-c")
        window.wait("left with 0")


@pytest.mark.promise("term.2")
def test_what_is_typed_while_the_chat_starts_is_kept_and_ctrl_c_works(
    home: Path, window: Terminal
) -> None:
    with model_server(home, {"text": "Answered."}):
        config = home / "config.toml"
        content = config.read_text()
        config.unlink()
        os.mkfifo(config)  # whoever reads it waits
        window.start("chat")
        window.wait("Starting…")
        window.type("unwanted")
        window.wait("> unwanted")
        window.keys("C-c")
        window.wait("Up brings the draft back")
        window.send("sent early")
        window.wait("Connecting…")
        window.type("typed early")
        window.wait("> typed early")
        with config.open("w") as pipe:
            (home / "new.toml").write_text(content)
            (home / "new.toml").replace(config)
            pipe.write(content)
        text = window.wait("Answered.")
        assert "> sent early" in text
        window.wait("> typed early")
        window.keys("C-c")
        window.wait("Up brings the draft back")
        window.keys("Up")
        window.wait("> typed early")


@contextmanager
def unreadable(config: Path) -> Generator[None]:
    """Let whoever reads the configuration wait until the block ends."""
    content = config.read_text()
    config.unlink()
    os.mkfifo(config)
    yield
    with config.open("w") as pipe:
        new = config.with_name("new.toml")
        new.write_text(content)
        new.replace(config)
        pipe.write(content)


@pytest.mark.promise("term.3")
@pytest.mark.parametrize("begins", ["connected", "starting", "plain"])
def test_ctrl_c_stops_the_turn_of_a_message_that_is_being_sent(
    home: Path, window: Terminal, begins: str
) -> None:
    """A new session reads the configuration before its first message is sent."""
    words = ("chat", "--plain") if begins == "plain" else ("chat",)
    with model_server(home, ENDLESS, {"text": "Next."}):
        if begins != "starting":
            window.start(*words)
            window.wait("/help")
        with unreadable(home / "config.toml"):
            if begins == "starting":
                window.start(*words)
                window.wait("Starting…")
            window.type("begin")
            window.wait("begin")
            if begins == "plain":
                window.keys("Enter")
                window.send("/stop")
                window.send("/queue")
                window.wait("No queued messages.")
            else:
                window.keys("Enter", "C-c")
                window.wait("Stopping… Ctrl+C again leaves")
        window.wait("Stopped by you")
        window.send("go on")
        window.wait("> go on")


@pytest.mark.promise("term.3")
def test_nothing_waits_for_a_summary_that_does_not_come(home: Path, window: Terminal) -> None:
    hanging = {"text": "A summary.", "fault": "hang before headers"}
    with model_server(home, {"text": "First."}, hanging, {"text": "Second."}, ENDLESS):
        window.start("chat")
        window.wait("/help")
        window.send("hello")
        window.wait("First.")
        window.send("/compact")
        window.wait("Compacting the context…")
        window.keys("C-c")
        window.wait("The summary goes on; Ctrl+C again leaves")
        window.send("/stop")
        window.wait("Only a summary is being written.")
        window.send("another message")
        window.wait("Second.")
        window.send("and one more")
        window.wait("It begins")
        window.keys("C-c")
        window.wait("Stopped by you")
        assert "Compacting the context…" in window.screen, "the summary is still being written"


@pytest.mark.promise("term.3")
def test_ctrl_c_leaves_a_chat_that_cannot_start(home: Path, window: Terminal) -> None:
    home.mkdir()
    os.mkfifo(home / "config.toml")
    window.start("chat")
    window.wait("Starting…")
    leave(window)


@pytest.mark.promise("term.2")
def test_a_slow_terminal_loses_no_key_and_makes_no_signal(
    home: Path, window: Terminal, tmp_path: Path
) -> None:
    lines = "\n".join(f"line {number:03}" for number in range(150))
    with model_server(home, {"text": f"```\n{lines}\n```", "chunk": 60}, ENDLESS, {"text": "!"}):
        window.through = (sys.executable, slow_terminal.__file__)
        window.start("chat")
        window.wait("/help")
        window.send("count")
        for word in ("slow", "lines", "keep", "every", "key"):
            window.type(f"{word} ")
        window.paste("pasted\nlines")
        text = window.wait("line 149")
        window.wait("> slow lines keep every key pasted\nlines")
        window.keys("C-c")
        window.wait("Up brings the draft back")
        window.send("again")
        window.wait("It begins")
        window.keys("C-c")
        text = window.wait("Stopped by you")
        assert [f"line {number:03}" in text for number in range(150)] == [True] * 150
        window.keys("C-d")
        window.wait("left with 0")


@pytest.mark.promise("term.2")
def test_a_draft_survives_a_kill_before_the_first_message(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"text": "Never."}):
        window.start("chat")
        window.wait("/help")
        window.type("a long thought")
        drafts = home / "chat_drafts"
        window.wait(lambda _: any("thought" in file.read_text() for file in drafts.iterdir()))
        with terminal(home) as living:
            living.start("chat")
            living.wait("/help")
            living.type("mine")
            assert "thought" not in living.wait("> mine"), "a draft belongs to its living chat"
            os.kill(window.pid, signal.SIGKILL)
            window.wait("left with 137")
            with terminal(home) as other:
                other.start("chat")
                text = other.wait("> a long thought")
    assert "mine" not in text


@pytest.mark.promise("term.4")
def test_a_kill_in_mid_turn_is_found_again_with_resume_and_with_c(
    home: Path, window: Terminal, folder: Path
) -> None:
    words = ("chat", "--workspace", str(folder), "--approve", "ask")
    with model_server(home, {"calls": [WRITE]}, {"text": "Written."}):
        window.start(*words)
        window.wait(">")
        window.send("write it")
        window.wait("Ctrl+X, then:")
        window.type("and a draft")
        window.wait("> and a draft")
        with terminal(home) as second:
            second.start(*words)
            second.wait("/help")
            second.send("/resume")
            second.wait("Ctrl+X, then:")
            os.kill(window.pid, signal.SIGKILL)
            window.wait("left with 137")
            second.wait("Ctrl+X, then:")
            os.kill(second.pid, signal.SIGKILL)
            second.wait("left with 137")
        with terminal(home) as third:
            third.start(*words, "-c")
            text = third.wait("Ctrl+X, then:")
            assert "> write it" in text
            third.keys("C-x", "y")
            third.wait("Written.")
    assert (folder / "a.txt").read_text() == "one\n"


@pytest.mark.promise("term.2")
def test_sigterm_keeps_the_draft_and_restores_the_terminal(home: Path, window: Terminal) -> None:
    with model_server(home, {"text": "Never."}):
        window.start("chat")
        window.wait("/help")
        window.type("unfinished")
        window.wait("> unfinished")
        os.kill(window.pid, signal.SIGTERM)
        text = window.wait("left with 0")
        assert " icanon" in text
        with terminal(home) as other:
            other.start("chat")
            other.wait("/help")
            other.keys("Up")
            other.wait("> unfinished")


@pytest.mark.promise("term.2")
def test_ctrl_z_and_fg_bring_the_chat_back_with_its_draft(home: Path, window: Terminal) -> None:
    with model_server(home, {"text": "Never."}):
        window.in_shell = True
        window.start("chat")
        window.wait("/help")
        window.type("a draft")
        window.wait("> a draft")
        window.keys("C-z")
        window.wait("Stopped")
        window.type("echo in the shell")
        window.keys("Enter")
        window.wait("\nin the shell\n")
        window.type("fg")
        window.keys("Enter")
        window.wait(lambda _: "> a draft" in window.screen)
        window.type(" goes on")
        window.wait("> a draft goes on")
