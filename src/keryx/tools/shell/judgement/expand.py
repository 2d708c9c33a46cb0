"""From words to arguments: what of their values can be told before the shell runs."""

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
    """The arguments that a word becomes; `tainted` names the variables that the script sets."""
    if is_pipe(word):
        return (Argument(word.shown, known=False, piped=True, fetched=fetched),)
    words = expand_braces(word)
    if words is None:
        return (Argument(word.shown, known=False, fetched=fetched, splits=True),)
    return tuple(_argument(one, tainted, fetched=fetched) for one in words)


def _argument(word: Word, tainted: Collection[str], *, fetched: bool) -> Argument:
    texts: list[str] = []
    known, pattern, splits = True, False, False
    for index, part in enumerate(word.parts):
        if isinstance(part, Text):
            texts.append(_own(part) if index == 0 else part.value)
            known &= not (index == 0 and texts[0].startswith("~") and "HOME" in tainted)
            pattern |= not part.quoted and _PATTERN.search(part.value) is not None
            continue
        lead = "".join(texts)
        replaced = _replaced(part, tainted) if lead == "" or lead[-1] in "=@" else None
        known &= replaced is not None
        splits |= replaced is None and (
            not part.quoted or _ALL_ARGUMENTS.match(part.source) is not None
        )
        texts.append(replaced if replaced is not None else part.source)
    return Argument("".join(texts), known, pattern, fetched=fetched, splits=splits)


def _own(part: Text) -> str:
    """A quoted tilde is the name of a file."""
    return f"./{part.value}" if part.quoted and part.value.startswith("~") else part.value


def _replaced(part: Part, tainted: Collection[str]) -> str | None:
    """Home and the current directory have names of their own."""
    match part:
        case Variable("HOME") if "HOME" not in tainted:
            return "~"
        case Variable("PWD") if "PWD" not in tainted:
            return "."
        case Substitution(script) if [one.words for one in script.commands()] == [_PWD]:
            return "."
        case _:
            return None


_PWD = (Word((Text("pwd", quoted=False),)),)


def is_pipe(word: Word) -> bool:
    """Whether a word is a process substitution as a whole, and so no path that anyone keeps."""
    return len(word.parts) == 1 and all(
        isinstance(part, Substitution) and part.source.startswith(("<(", ">("))
        for part in word.parts
    )


def tainted_in(script: Script) -> frozenset[str]:
    """Which of the tracked variables the script may set, anywhere and in any way."""
    found: set[str] = set()
    for stage in script.stages():
        if isinstance(stage, Simple):
            found.update(one.name for one in stage.assignments)
        found.add(getattr(stage, "name", ""))
        found.update((word.literal or "").partition("=")[0] for word in words_of(stage))
    return TRACKED & found
