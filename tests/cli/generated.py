"""Every command with its subcommands, as the parsers know them, and words that fit each.

A new command is here by itself. What its arguments could be is not: until `PLAUSIBLE` says so, the
tests that use this fail and name the argument.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keryx.cli.main import COMMANDS, parser_of

SESSION = "{session}"
SCRIPT = "{script}"
PLAUSIBLE = {
    "prompt": "Grüße ✓ 😀",
    "script": SCRIPT,
    "session": SESSION,
    "rule": "a_0123456789abcdef.0",
    "words": "herald",
    "file": f"{SCRIPT}.json",
    "folder": ".",
    "name": "a name",
    "revoke name": "made before",
    "link": "all",
    "pull name": "smollm2",
    "tool": "list_files",
    "key": "limits.steps",
    "value": "5",
    "test command": "git push --force; ls",
    "memory": "mem_0123456789abcdef",
    "operation": "consolidation_0123456789abcdef",
    "memories": "mem_0123456789abcdef",
    "text": "The user drinks green tea.",
    "call arguments": json.dumps({"path": "."}),
}
"""By the argument's name, or by its subcommand and name."""
OPTIONS = {"serve": ("--port", "0")}
"""What a command needs besides, to get in nobody's way."""
ENDLESS = {"serve"}
"""Those that go on until they are stopped."""


@dataclass(frozen=True)
class Leaf:
    """A command, or a subcommand of one."""

    words: tuple[str, ...]
    """The words that lead to it."""
    options: tuple[tuple[int, argparse.Action], ...]
    """Its options with values, each with the number of words that it stands after."""
    positionals: tuple[argparse.Action, ...]

    @property
    def name(self) -> str:
        return " ".join(self.words)

    def arguments(
        self, *, from_stdin: bool = False, replaced: Mapping[str, str] | None = None
    ) -> list[str]:
        """All words of a call that is as it should be, but for what is replaced."""
        last, other = self.words[-1], replaced or {}
        values = [
            value
            for positional in self.positionals
            for value in (
                [other[positional.dest]]
                if positional.dest in other
                else self._value(positional, from_stdin)
            )
        ]
        return [*self.words, *OPTIONS.get(last, ()), *values]

    @property
    def reads_stdin(self) -> bool:
        return any("stdin" in (positional.help or "") for positional in self.positionals)

    def _value(self, action: argparse.Action, from_stdin: bool) -> list[str]:
        if from_stdin and "stdin" in (action.help or ""):
            return ["-"]
        value = PLAUSIBLE.get(f"{self.words[-1]} {action.dest}", PLAUSIBLE.get(action.dest))
        if value is not None and action.nargs != "*":
            return [value]
        assert action.nargs in ("?", "*"), f"say in PLAUSIBLE what {self.name} takes: {action.dest}"
        return []


def leaves() -> list[Leaf]:
    return [leaf for name in COMMANDS for leaf in _below((name,), parser_of(name), ())]


def _below(
    words: tuple[str, ...],
    parser: argparse.ArgumentParser,
    before: tuple[tuple[int, argparse.Action], ...],
) -> Iterator[Leaf]:
    actions = parser._actions
    # `--home` may stand after the command and after the verb; once is enough here.
    inherited = {action.dest for _, action in before}
    takes_value = [
        action
        for action in actions
        if action.option_strings and action.nargs != 0 and action.dest not in inherited
    ]
    options = (*before, *((len(words), action) for action in takes_value))
    subs = [action for action in actions if isinstance(action.choices, dict)]
    if not subs:
        positionals = [action for action in actions if not action.option_strings]
        yield Leaf(words, options, tuple(positionals))
    for action in subs:
        choices: dict[str, argparse.ArgumentParser] = dict(action.choices or {})
        for verb, sub in choices.items():
            yield from _below((*words, verb), sub, options)


LEAVES = {leaf.name: leaf for leaf in leaves()}


def fill(words: Sequence[str], session: str, script: Path) -> list[str]:
    """The same words, with what only a home knows."""
    return [word.replace(SESSION, session).replace(SCRIPT, str(script)) for word in words]
