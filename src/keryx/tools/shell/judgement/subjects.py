"""The spellings of a command, for rules that forbid it or ask about it.

A rule such as `git push --force*` must also match `/usr/bin/git -C . push origin --force`. So
every command gets several spellings, and a value that only the shell knows matches any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from posixpath import basename

from keryx.ports.tool import ANY_NAME, ANY_TEXT
from keryx.tools.shell.rules import name_of
from keryx.tools.shell.rules.actions import Argument, Arguments

MAX_LENGTH = 2000
"""The most characters of a command that rules see; the rest may be anything."""
MAX_COMMANDS = 100
"""Up to so many commands get all spellings; in longer lines each gets its own words only."""
MAX_WORDS = 40
_POSITIONS = (1, 2, 3)
"""The positions of an option in a rule: after the name, or after one or two subcommand words."""
_LETTERS = range(2, 5)

_GLOB = re.compile(r"\*+|\?|\[[^]]*\]")
_SHORT = re.compile(r"-[A-Za-z]+$")
_LONG = re.compile(r"--[a-z][a-z-]+$")


def subjects(commands: Mapping[Arguments, bool]) -> tuple[str, ...]:
    """Return the texts that rules are compared with, for all commands; see `Findings.commands`."""
    texts: dict[str, None] = {}
    for words, movable in commands.items():
        if movable and len(commands) <= MAX_COMMANDS and len(words) <= MAX_WORDS:
            texts.update(dict.fromkeys(_spellings(words)))
        else:
            texts.update(dict.fromkeys(_with_names(words)))
    return tuple(_cut(text) for text in texts)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH] + ANY_TEXT


def _with_names(words: Arguments) -> Iterator[str]:
    """Yield the command with each name of its program, and with absolute paths for `~`."""
    command, arguments = words[0], words[1:]
    if not command.is_literal or command.pattern:
        yield ANY_TEXT
        return
    texts = [_joined(arguments)]
    if any(argument.text.startswith("~") for argument in arguments):
        texts.append(_joined(tuple(map(_without_tilde, arguments))))
    for name in dict.fromkeys((command.text, basename(command.text), name_of(command.text))):
        for text in texts:
            yield name + text
            # `python3.12` is `python3` and `python`.
            yield re.sub(r"[.][0-9]+$", "", name) + text


def _without_tilde(argument: Argument) -> Argument:
    if not argument.text.startswith("~"):
        return argument
    _, slash, path_below = argument.text.partition("/")
    return replace(argument, text=ANY_TEXT + slash + path_below)


def _spellings(words: Arguments) -> Iterator[str]:
    for order in _orders(words):
        yield from _with_names(order)


def _orders(words: Arguments) -> Iterator[Arguments]:
    yield words
    options = [index for index, word in enumerate(words) if index and word.text.startswith("-")]
    for index in options:
        option = _abbreviated(words[index])
        others = words[:index] + words[index + 1 :]
        for position in _POSITIONS:
            if position <= len(others):
                yield (*others[:position], option, *others[position:])
    clusters = [index for index in options if _SHORT.match(words[index].text)]
    letters = "".join(dict.fromkeys("".join(words[index].text[1:] for index in clusters)))
    if len(letters) not in _LETTERS:
        return
    others = tuple(word for index, word in enumerate(words) if index not in clusters)
    for order in permutations(letters):
        cluster = Argument("-" + "".join(order))
        for position in _POSITIONS:
            if position <= len(others):
                yield (*others[:position], cluster, *others[position:])


def _abbreviated(option: Argument) -> Argument:
    """Return a long option as a prefix, because long options may be abbreviated."""
    return Argument(option.text + ANY_TEXT) if _LONG.match(option.text) else option


def _joined(words: Arguments) -> str:
    # A word that may vanish removes the space before it too.
    return "".join(ANY_TEXT if word.splits else f" {_text(word)}" for word in words)


def _text(argument: Argument) -> str:
    if not argument.is_literal:
        return ANY_TEXT
    if not argument.pattern:
        return argument.text
    text = _GLOB.sub(ANY_TEXT, argument.text)
    # A pattern matches file names, and these do not begin like options.
    return ANY_NAME + text if text.startswith(ANY_TEXT) else text
