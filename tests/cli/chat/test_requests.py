"""Several requests at the same time: keys and commands answer the one that was shown whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.chat.terminal import Terminal, terminal
from tests.cli.commands import model_server

NAMES = ("north", "south")
REMOVALS = [
    {"tool": "terminal", "arguments": {"command": f"rm -r {name}-folder-of-many-files"}}
    for name in NAMES
]
QUESTION = {"tool": "clarify", "arguments": {"question": "Which one?", "choices": ["red", "blue"]}}


def begin(window: Terminal, folder: Path, *words: str, **variables: str) -> None:
    for name in NAMES:
        (folder / f"{name}-folder-of-many-files").mkdir(exist_ok=True)
    window.start(
        *("chat", "--workspace", str(folder), "--approve", "ask", *words),
        size=(40, 24),
        **variables,
    )
    window.wait("/help")


def left(folder: Path) -> list[str]:
    return [name for name in NAMES if (folder / f"{name}-folder-of-many-files").exists()]


def asked(window: Terminal) -> list[str]:
    """The commands that were shown whole, in the order of their blocks."""
    return [
        line.partition("rm -r ")[2].partition("-")[0]
        for line in window.scrollback.splitlines()
        if line.startswith("rm -r ")
    ]


@pytest.mark.promise("term.2")
def test_the_keys_answer_the_request_that_was_shown_whole(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"calls": REMOVALS}, {"text": "Removed."}):
        begin(window, folder)
        window.send("remove both")
        window.wait("Waiting for you (1 of 2): ")
        assert asked(window) == ["north"], "the second is shown when it is the first"
        window.keys("C-x", "y")
        window.wait("Allowed once")
        window.wait(lambda _: asked(window) == ["north", "south"])
        window.wait(lambda _: left(folder) == ["south"])
        window.wait(lambda _: "Waiting for you: " in window.screen)
        window.keys("C-x", "n")
        window.wait("Removed.")
    assert left(folder) == ["south"]


@pytest.mark.promise("term.2")
def test_an_answer_from_elsewhere_shows_the_next_request_whole(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"calls": REMOVALS}, {"text": "Removed."}):
        begin(window, folder)
        window.send("remove both")
        window.wait("(1 of 2)")
        with terminal(home) as other:
            other.start("chat", "-c", size=(40, 24))
            other.wait("(1 of 2)")
            assert asked(other) == ["north"]
            other.keys("C-x", "n")
            other.wait("Denied")
            window.wait(lambda _: asked(window) == ["north", "south"])
            other.wait(lambda _: asked(other) == ["north", "south"])
        window.send("/allow")
        window.wait("Removed.")
    assert left(folder) == ["north"]


@pytest.mark.promise("term.2", "term.5")
def test_plain_lines_number_the_choices_of_the_request_above_them(
    home: Path, window: Terminal, folder: Path
) -> None:
    with model_server(home, {"calls": [*REMOVALS, QUESTION]}, {"text": "Answered."}):
        begin(window, folder, "--plain")
        window.send("remove both, and ask")
        window.wait("/1 Allow once")
        assert asked(window) == ["north"]
        window.send("/answer red")
        window.wait("An approval comes first; /allow or /deny")
        window.send("/4")
        window.wait(lambda text: asked(window) == ["north", "south"] and text.count("/4 Deny") == 2)
        with terminal(home) as other:
            other.start("chat", "-c", "--plain", size=(40, 24))
            other.wait("/1 Allow once")
            assert asked(other) == ["south"]
            other.send("/1")
            window.wait("Which one?")
            window.wait("/2 blue")
        window.send("/allow")
        window.wait("A question comes first; /answer TEXT")
        window.send("/2")
        window.wait("Answered.")
    assert left(folder) == ["north"]
