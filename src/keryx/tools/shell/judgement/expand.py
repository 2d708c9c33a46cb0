"""Turns words into arguments, as far as their values are known before the shell runs."""

from __future__ import annotations

import re
from collections.abc import Collection

from keryx.tools.shell.rules.actions import Argument, Arguments
from keryx.tools.shell.syntax.braces import expand as expand_braces
from keryx.tools.shell.syntax.nodes import (
    Part,
    Script,
    Simple,
    Substitution,
    Text,
    Variable,
    Word,
    words_of,
)

TRACKED = frozenset({"HOME", "PWD", "CDPATH", "OLDPWD"})
"""Variables whose values matter for paths."""

_PATTERN = re.compile(r"[*?]|\[.*\]")
_ALL_ARGUMENTS = re.compile(r"\$\{?@|.*\[@\]|\$\{!.*[@*]\}")


def arguments(word: Word, tainted: Collection[str], *, fetched: bool = False) -> Arguments:
    """Return the arguments of a word; `tainted` names the variables that the script sets."""
    if is_pipe(word):
        return (Argument(word.text, is_literal=False, piped=True, fetched=fetched),)
    words = expand_braces(word)
    if words is None:
        return (Argument(word.text, is_literal=False, fetched=fetched, splits=True),)
    return tuple(_argument(expanded, tainted, fetched=fetched) for expanded in words)


def _argument(word: Word, tainted: Collection[str], *, fetched: bool) -> Argument:
    texts: list[str] = []
    is_literal, pattern, splits = True, False, False
    for index, part in enumerate(word.parts):
        if isinstance(part, Text):
            texts.append(_text_of_first(part) if index == 0 else part.value)
            is_literal &= not (index == 0 and texts[0].startswith("~") and "HOME" in tainted)
            pattern |= not part.quoted and _PATTERN.search(part.value) is not None
            continue
        text_before = "".join(texts)
        replacement = (
            _replacement(part, tainted) if text_before == "" or text_before[-1] in "=@" else None
        )
        is_literal &= replacement is not None
        splits |= replacement is None and (
            not part.quoted or _ALL_ARGUMENTS.match(part.source) is not None
        )
        texts.append(replacement if replacement is not None else part.source)
    return Argument("".join(texts), is_literal, pattern, fetched=fetched, splits=splits)


def _text_of_first(part: Text) -> str:
    """Return the text of the first part; a quoted tilde is a file name."""
    return f"./{part.value}" if part.quoted and part.value.startswith("~") else part.value


def _replacement(part: Part, tainted: Collection[str]) -> str | None:
    """Return `~` or `.` for an expansion that means home or the current directory."""
    match part:
        case Variable("HOME") if "HOME" not in tainted:
            return "~"
        case Variable("PWD") if "PWD" not in tainted:
            return "."
        case Substitution(script) if [command.words for command in script.commands()] == [_PWD]:
            return "."
        case _:
            return None


_PWD = (Word((Text("pwd", quoted=False),)),)


def is_pipe(word: Word) -> bool:
    """Return whether the whole word is a process substitution, and so not a real path."""
    return len(word.parts) == 1 and all(
        isinstance(part, Substitution) and part.source.startswith(("<(", ">("))
        for part in word.parts
    )


def tainted_in(script: Script) -> frozenset[str]:
    """Return the tracked variables that the script may set anywhere in any way."""
    names: set[str] = set()
    for stage in script.stages():
        if isinstance(stage, Simple):
            names.update(assignment.name for assignment in stage.assignments)
        names.add(getattr(stage, "name", ""))
        names.update((word.literal or "").partition("=")[0] for word in words_of(stage))
    return TRACKED & names
