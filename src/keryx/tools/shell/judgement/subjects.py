"""How a command may be written, for rules that forbid it or ask about it.

A rule such as `git push --force*` must also see `/usr/bin/git -C . push origin --force`. So
every command is named in several ways, and what only the shell knows stands for any text.
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

LONGEST = 2000
"""Characters of a command that rules see; the rest may be anything."""
MOST_COMMANDS = 100
"""Commands that are named in every way; of more, rules see the words as they are written."""
MOST_WORDS = 40
_POSITIONS = (1, 2, 3)
"""Where an option may stand in a rule: after the name, or after a subcommand of a word or two."""
_LETTERS = range(2, 5)

_GLOB = re.compile(r"\*+|\?|\[[^]]*\]")
_SHORT = re.compile(r"-[A-Za-z]+$")
_LONG = re.compile(r"--[a-z][a-z-]+$")


def subjects(commands: Mapping[Arguments, bool]) -> tuple[str, ...]:
    """What rules are compared with, for all commands of a line; see `Findings.commands`."""
    texts: dict[str, None] = {}
    for words, movable in commands.items():
        if movable and len(commands) <= MOST_COMMANDS and len(words) <= MOST_WORDS:
            texts.update(dict.fromkeys(_spellings(words)))
        else:
            texts.update(dict.fromkeys(_named(words)))
    return tuple(_cut(text) for text in texts)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + ANY_TEXT


def _named(words: Arguments) -> Iterator[str]:
    """The command with the names that its program has, and with paths below home in full."""
    command, arguments = words[0], words[1:]
    if not command.known or command.pattern:
        yield ANY_TEXT
        return
    texts = [_joined(arguments)]
    if any(one.text.startswith("~") for one in arguments):
        texts.append(_joined(tuple(map(_in_full, arguments))))
    for name in dict.fromkeys((command.text, basename(command.text), name_of(command.text))):
        for text in texts:
            yield name + text
            # `python3.12` is `python3` and `python`.
            yield re.sub(r"[.][0-9]+$", "", name) + text


def _in_full(argument: Argument) -> Argument:
    if not argument.text.startswith("~"):
        return argument
    _, slash, rest = argument.text.partition("/")
    return replace(argument, text=ANY_TEXT + slash + rest)


def _spellings(words: Arguments) -> Iterator[str]:
    for order in _orders(words):
        yield from _named(order)


def _orders(words: Arguments) -> Iterator[Arguments]:
    yield words
    options = [index for index, one in enumerate(words) if index and one.text.startswith("-")]
    for index in options:
        option = _abbreviated(words[index])
        rest = words[:index] + words[index + 1 :]
        for position in _POSITIONS:
            if position <= len(rest):
                yield (*rest[:position], option, *rest[position:])
    clusters = [index for index in options if _SHORT.match(words[index].text)]
    letters = "".join(dict.fromkeys("".join(words[index].text[1:] for index in clusters)))
    if len(letters) not in _LETTERS:
        return
    rest = tuple(one for index, one in enumerate(words) if index not in clusters)
    for order in permutations(letters):
        cluster = Argument("-" + "".join(order))
        for position in _POSITIONS:
            if position <= len(rest):
                yield (*rest[:position], cluster, *rest[position:])


def _abbreviated(option: Argument) -> Argument:
    """A long option may be the beginning of its name."""
    return Argument(option.text + ANY_TEXT) if _LONG.match(option.text) else option


def _joined(words: Arguments) -> str:
    # Words that may vanish take the space before them along.
    return "".join(ANY_TEXT if one.splits else f" {_text(one)}" for one in words)


def _text(argument: Argument) -> str:
    if not argument.known:
        return ANY_TEXT
    if not argument.pattern:
        return argument.text
    text = _GLOB.sub(ANY_TEXT, argument.text)
    # Files have names that do not look like options, or whoever made them wants trouble.
    return ANY_NAME + text if text.startswith(ANY_TEXT) else text
