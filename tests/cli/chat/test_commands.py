"""The slash commands, completion, history, attachments and the clipboard, on the screen."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from tests.cli.chat.terminal import Terminal, terminal
from tests.cli.commands import keryx, model_server

pytestmark = pytest.mark.promise("term.3")
WRITE = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "one\ntwo\n"}}
WAIT = {"tool": "terminal", "arguments": {"command": "echo begun; sleep 60"}}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
ASK = {"tool": "clarify", "arguments": {"question": "Which one?", "choices": ["red", "blue"]}}


def start(window: Terminal, folder: Path, *words: str, **variables: str) -> None:
    window.start(
        "chat", "--workspace", str(folder), "--approve", "never", *words, size=(80, 40), **variables
    )
    window.wait("/help")


def test_commands_about_settings_and_stored_things(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"text": "Hello.", "reasoning": "Thought\nof it"}):
        config = home / "config.toml"
        config.write_text(
            config.read_text()
            + '[profiles.default.personalities]\npirate = "Arr."\n[memory]\nproviders = ["notes"]\n'
        )
        start(window, folder)
        window.send("/effort")
        window.wait("The effort is default. Levels: none, ")
        window.send("/help")
        text = window.wait("Ctrl+L")
        assert "/queue [edit|remove NUMBER]" in text
        window.send("hi")
        window.wait("Hello.")
        assert "▸ Reasoning: 2 lines" in window.scrollback
        assert "of it" not in window.scrollback
        window.send("/reasoning")
        window.wait("Thought\nof it")
        window.send("/usage")
        window.wait("input 10, cached 0, output 5")
        window.send("/model")
        window.wait("The model is openai:test-model.")
        window.send("/model openai:other")
        window.wait("The model is now openai:other.")
        window.send("/effort low")
        window.wait("The effort is now low.")
        window.send("/effort banana")
        window.wait("there is no effort 'banana'; there are none, minimal, low, medium, high")
        window.send("/effort")
        window.wait("The effort is low. Levels: none, minimal, low, medium, high, ")
        window.send("/tools read_file,terminal")
        window.wait("Tools: read_file, terminal")
        (folder / "sub").mkdir()
        window.send("/workspace sub")
        window.wait(lambda text: "The workspace is" in text and "/work/sub." in _joined(text))
        window.send("/personality pirate")
        window.wait("The personality is pirate.")
        window.send("/personality nobody")
        window.wait("there is no personality 'nobody'")
        window.send("/memory")
        window.wait("Nothing is remembered yet.")
        window.send("/skills")
        window.wait("There are no skills in")
        window.send("/export talk.md")
        window.wait("Wrote")
        assert (folder / "sub" / "talk.md").read_text() == "> hi\n\nHello.\n"
        window.send("/diff")
        window.wait("No changes.")
        window.send("/modle")
        window.wait("Did you mean /model?")
        window.wait("> /modle")
        window.keys("C-c")
        window.send("/quit")
        window.wait("left with 0")


def test_a_look_at_the_settings_opens_no_session(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"text": "Never."}):
        start(window, folder, "--tools", "files", "--personality", "pirate")
        window.send("/new")
        window.wait("The next message starts a new session.")
        window.send("/personality")
        window.wait("The personality is pirate.")
        window.send("/model")
        window.wait("The model is openai:test-model.")
        window.send("/tools")
        window.wait("Tools: read_file, write_file, patch, search_files, list_files")
        window.send("/workspace")
        window.wait(
            lambda text: f"The workspace is{folder}." in _joined(text).replace("is /", "is/")
        )
        window.send("/diff")
        window.wait("No changes.")
        for command in ("fork", "compact", "undo", "retry"):
            window.send(f"/{command}")
        window.wait(lambda text: text.count("there is no session yet; send a message first") == 4)
        window.keys("C-d")
        window.wait("left with 0")
        assert keryx(home, "sessions", "list").stdout == ""


def _joined(text: str) -> str:
    return text.replace("\n", "")


def test_commands_about_sessions(home: Path, window: Terminal, folder: Path) -> None:
    replies = [
        {"calls": [WRITE]},
        {"text": "First answer."},
        {"text": "Second answer."},
        {"text": "Third answer."},
        {"text": "A summary."},
        {"text": "Fresh."},
    ]
    with model_server(home, *replies):
        start(window, folder)
        window.send("write")
        text = window.wait("First answer.")
        assert "+++ b/a.txt" in text, "the diff of what the call changed"
        window.send("/diff")
        window.wait(lambda text: text.count("+++ b/a.txt") == 2)
        window.send("/undo")
        window.wait("Undid the last turn.")
        assert not (folder / "a.txt").exists()
        window.send("again")
        window.wait("Second answer.")
        window.send("/retry")
        window.wait("Third answer.")
        window.send("/fork")
        window.wait("This is a copy of s_")
        window.send("/compact")
        window.wait("Compacted:")
        window.send("/new")
        window.wait("The next message starts a new session.")
        window.send("anew")
        window.wait("Fresh.")
        window.send("/sessions")
        text = window.wait("/resume NUMBER continues one")
        assert re.search(r"^ 1  s_\w+ .* anew$", text, re.MULTILINE)
        window.send("/sessions Third")
        window.wait(lambda text: text.count("/resume NUMBER") == 2)
        window.send("/resume 1")
        window.wait(lambda text: text.count("Third answer.") >= 2)


def test_commands_about_a_running_turn(home: Path, window: Terminal, folder: Path) -> None:
    with model_server(home, {"calls": [WAIT, WAIT]}, {"text": "Steered."}, {"calls": [WAIT]}):
        start(window, folder)
        window.send("start")
        window.wait("2 terminal")
        window.send("first in the queue")
        window.wait("Queued 1: first in the queue")
        window.send("second in the queue")
        window.wait("Queued 2: second in the queue")
        window.send("/queue")
        window.wait("2  second in the queue")
        window.send("/queue remove 1")
        window.wait("Queued 1: second in the queue")
        window.keys("M-Up")
        window.wait("> second in the queue")
        window.keys("C-c")
        window.wait("Up brings the draft back")
        window.send("/cancel 1")
        window.wait("■ 1 terminal")
        window.send("/steer another way")
        window.wait("> another way")
        window.wait("Steered.")
        window.send("more")
        window.wait("▶ 1 terminal")
        window.send("/stop")
        window.wait("Stopped by you")
        window.send("/stop")
        window.wait("Nothing is running.")


def test_questions_and_approvals_are_answered_by_commands(
    home: Path, window: Terminal, folder: Path
) -> None:
    replies = [
        {"calls": [ASK]},
        {"calls": [ASK]},
        {"calls": [ASK]},
        {"calls": [WRITE]},
        {"calls": [WRITE]},
        {"text": "The end."},
    ]
    with model_server(home, *replies):
        window.start("chat", "--workspace", str(folder), "--approve", "ask", size=(80, 40))
        window.wait("/help")
        window.send("ask me")
        window.wait("Ctrl+X, then: 1 red · 2 blue")
        window.keys("C-x", "2")
        window.wait("blue (terminal)")
        window.wait("Ctrl+X, then: 1 red · 2 blue")
        window.type("green")
        window.wait("> green")
        window.keys("C-x", "Enter")
        window.wait("green (terminal)")
        window.wait("Ctrl+X, then: 1 red · 2 blue")
        window.send("/answer mauve")
        window.wait("mauve (terminal)")
        window.wait("Allow write_file?")
        window.send("/deny")
        window.wait("Denied (terminal)")
        window.wait(lambda text: text.count("Waiting for you: Allow write_file?\n") == 2)
        window.send("/allow")
        window.wait("Allowed once (terminal)")
        window.wait("The end.")


@pytest.mark.promise("term.1")
def test_completion_of_commands_files_and_sessions_and_search_of_the_history(
    home: Path, window: Terminal, folder: Path
) -> None:
    (folder / "notes.md").touch()
    with model_server(home, {"text": "One."}):
        start(window, folder)
        window.send("remember me")
        window.wait("One.")
        window.type("/pers")
        window.wait("/personality [NAME]  Change the personality")
        window.keys("Tab")
        window.wait("> /personality\n")
        window.keys("C-c")
        window.type("read @no")
        window.wait("  notes.md")
        window.keys("Tab")
        window.wait("> read @notes.md")
        window.keys("C-c")
        with terminal(home) as other:
            start(other, folder)
            other.type("/resume ")
            other.wait(lambda text: bool(re.search(r"^  s_\w+  remember me", text, re.MULTILINE)))
            other.keys("Tab")
            other.wait(lambda text: bool(re.search(r"^> /resume s_", text, re.MULTILINE)))
            other.keys("Enter", "Enter")
            other.wait("One.")
            other.keys("C-r")
            other.type("ember")
            other.wait(lambda text: text.count("> remember me") == 2)
            other.keys("Enter")
            other.wait(lambda text: "ember\n" not in text.replace("remember me\n", ""))
            other.keys("End")
            other.type("!")
            other.wait("> remember me!")


@pytest.mark.promise("term.2")
def test_long_text_and_images_are_pasted(home: Path, window: Terminal, folder: Path) -> None:
    image = folder / "a picture.png"
    image.write_bytes(PNG)
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "wl-paste"
    program.write_text(f"#!/bin/sh\nexec cat '{image}'\n")
    program.chmod(0o755)
    with model_server(home, {"text": "Seen."}, {"text": "Read."}):
        path = f"{programs}:/usr/bin:/bin"
        start(window, folder, PATH=path, WAYLAND_DISPLAY="wayland-0")
        window.paste(str(image).replace(" ", "\\ "))
        window.wait("Attached a picture.png to the next message.")
        window.keys("C-v")
        window.wait("Attached clipboard.png to the next message.")
        window.wait("2 attached")
        window.send("look")
        text = window.wait("Seen.")
        assert "> look\n[a picture.png]\n[clipboard.png]" in text
        window.paste("\n".join(f"row {number}" for number in range(200)))
        window.wait("> [Pasted text 1: 200 lines]")
        window.keys("Enter")
        text = window.wait("Read.")
        assert "row 0\n" in text
        assert "row 199\n" in text
        program.write_text("#!/bin/sh\nexit 1\n")
        window.keys("C-v")
        window.wait("The clipboard holds no image.")
    with terminal(home) as other:
        start(other, folder)
        other.keys("C-v")
        other.wait("A terminal can paste only text")
        other.send("/attach nothing.png")
        # Where the line is wrapped depends on the path.
        reason = "nothing.pngwasnotattached:Nosuch"
        other.wait(lambda text: reason in "".join(text.split()))


@pytest.mark.promise("term.1")
def test_copy_bell_and_notification_reach_the_terminal(
    home: Path, window: Terminal, folder: Path, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    with model_server(home, {"calls": [ASK]}, {"text": "Some **bold** text."}):
        start(window, folder)
        window.record(written)
        window.send("ask")
        window.wait("Ctrl+X, then:")
        window.keys("C-x", "1")
        window.wait("Some bold text.")
        window.send("/copy")
        window.wait("Sent the last reply to the clipboard of the terminal.")
        data = window.recorded(written, b"Sent the last reply")
    text = base64.b64encode(b"Some **bold** text.")
    assert b"\a" in data
    assert b"\x1bPtmux;\x1b\x1b]9;Keryx is waiting for you\a\x1b\\" in data
    assert b"]52;c;" + text in data
