"""The commands that a person types after a slash: their names, values and meanings."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from keryx.errors import UserMustActError

READABLE: Final = 34
"""Columns in which an explanation is easy to read."""
LONGEST_NUMBER: Final = 9


class SlashCommand(NamedTuple):
    """A command as the help and the completion show it."""

    name: str
    about: str
    takes: str = ""

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.takes}".rstrip()


COMMANDS: Final = tuple(
    SlashCommand(*row)
    for row in (
        ("help", "Show all commands and keys"),
        ("new", "Start a new session"),
        ("sessions", "List the sessions, or find words in them", "[WORDS]"),
        ("resume", "Continue a session, by its id or its number in /sessions", "[SESSION]"),
        ("steer", "Cancel what runs and send this message now", "TEXT"),
        ("stop", "Stop the running turn, or one call by its number", "[NUMBER]"),
        ("cancel", "Stop one call by its number", "NUMBER"),
        ("queue", "Show queued messages; edit or remove one", "[edit|remove NUMBER]"),
        ("allow", "Allow the call that waits", "[session|always] [OFFER]"),
        ("deny", "Deny the call that waits"),
        ("answer", "Answer the question that waits", "TEXT"),
        ("model", "Change the model of this session", "[NAME]"),
        ("effort", "Show or change how much the model thinks", "[LEVEL]"),
        ("tools", "Show the tools, or use only these", "[NAMES]"),
        ("workspace", "Change the folder that this session works in", "[FOLDER]"),
        ("personality", "Change the personality of the agent", "[NAME]"),
        ("compact", "Replace the earlier messages with a summary", "[FOCUS]"),
        ("exec", "Run Python in the sandbox yourself, with the tools", "CODE"),
        ("fork", "Start a new session with a copy of this one"),
        ("undo", "Undo the last turn and its file changes"),
        ("retry", "Answer the last message again; the files it changed are reverted"),
        ("diff", "Show what this session changed on the disk"),
        ("usage", "Show tokens and cost of this session"),
        ("memory", "Show what Keryx remembers, or find words in it", "[WORDS]"),
        ("skills", "List the skills"),
        ("attach", "Attach a file, or the image in the clipboard", "[FILE]"),
        ("export", "Write the conversation to a file, as Markdown", "[FILE]"),
        ("copy", "Copy the last reply as Markdown"),
        ("reasoning", "Show the reasoning of the last reply"),
        ("quit", "Leave; a running turn goes on"),
    )
)
NAMES: Final = tuple(command.name for command in COMMANDS)
KEYS: Final = (
    ("Enter", "Send the message, or queue it while a turn runs"),
    ("Alt+Enter, Ctrl+Enter", "Steer: cancel what runs and send the message now"),
    ("Ctrl+J, Shift+Enter", "New line"),
    ("Ctrl+C", "Clear the draft (Up brings it back), then stop the turn; twice: leave"),
    ("Ctrl+D", "Leave, if the draft is empty; a running turn goes on"),
    ("Ctrl+X Y · S · A · N", "Allow once · for this session · always · deny"),
    ("Ctrl+X 1 to 9", "Pick an answer of the question that waits"),
    ("Ctrl+X Enter", "Answer the question that waits with the draft"),
    ("Alt+Up", "Take the last queued message back into the draft"),
    ("Up, Down, Ctrl+R", "Earlier messages"),
    ("Ctrl+V", "Attach the image in the clipboard"),
    ("Tab", "Complete commands, @files and sessions"),
    ("Ctrl+L", "Draw the screen again"),
)
PREFIXES: Final = (
    ("@PATH", "Insert the path of a file in the workspace"),
    ("!COMMAND", "Run a command of the shell yourself, without a model"),
)


def parse(text: str) -> tuple[str, str] | None:
    """Return the command and its value; None: the text is a message."""
    if not text.startswith("/") or text.startswith(("//", "/ ")) or len(text) == 1:
        return None
    name, _, value = text[1:].partition(" ")
    if "\n" in name or "/" in name:  # a path, such as /usr/bin/env
        return None
    return name.lower(), value.strip()


def number_in(word: str) -> int | None:
    """Return the number that a person typed; None: it is none, or far too long to be one."""
    return int(word) if word.isdecimal() and len(word) <= LONGEST_NUMBER else None


def typed_path(folder: str, word: str) -> Path:
    """Return the path that a person typed, which begins in this folder."""
    try:
        return Path(folder) / Path(word).expanduser()
    except RuntimeError as error:
        raise UserMustActError(f"{word} begins with a user who does not exist here") from error


def unknown(name: str) -> str:
    """Return an error text for a command that does not exist."""
    close = difflib.get_close_matches(name, NAMES, n=1)
    advice = f"Did you mean /{close[0]}?" if close else "/help shows all commands."
    return (
        f"There is no command /{name}. {advice} To send this as a message, put a space before it."
    )


def help_text(columns: int, others: Sequence[tuple[str, str]] = ()) -> str:
    """Return all commands and keys, in rows that fit; `others` are commands of the view."""
    rows = [(command.usage, command.about) for command in COMMANDS] + list(others)
    keys = [*KEYS, *PREFIXES]
    lines = ["Commands", *_aligned(rows, columns), "", "Keys", *_aligned(keys, columns)]
    return "\n".join(lines)


def _aligned(rows: Sequence[tuple[str, str]], columns: int) -> list[str]:
    """Return two columns, or in a narrow terminal each explanation below its name."""
    width = min(31, max(len(name) for name, _ in rows))
    is_narrow = columns < width + READABLE
    lines: list[str] = []
    for name, about in rows:
        margin = "    " if is_narrow else " " * (width + 4)
        parts = textwrap.wrap(about, max(READABLE // 2, columns - len(margin)))
        if is_narrow:
            lines += [*textwrap.wrap(f"  {name}", columns, subsequent_indent="  ")]
            lines += [f"{margin}{part}" for part in parts]
        else:
            lines.append(f"  {name:<{width}}  {parts[0]}")
            lines += [f"{margin}{part}" for part in parts[1:]]
    return lines
