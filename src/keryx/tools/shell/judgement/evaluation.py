"""Finds values that look like data, but the shell runs them when it expands or calculates."""

from __future__ import annotations

import re
from collections.abc import Iterable

from keryx.tools.shell.syntax.nodes import Expansion, Part, Text, Word

# `a[$(command)]`, written so that only arithmetic will see it: as the name of a variable, in a
# value that is calculated with later, or quoted inside of a calculation.
# `declare 'x=($(command))'` too.
_SUBSCRIPT = re.compile(r"\w\[[^\]]*?(?:\$\(|\$\{|`)|^\w+\+?=\(.*?(?:\$\(|`)")
_PROMPT = re.compile(r"@P\}?$")


def hidden_command(word: Word) -> str:
    """Return why the shell may run text of the word as a command; empty if it does not."""
    if any(_PROMPT.search(part.source) for part in _expansions(word.parts)):
        return "runs what a variable holds, as a prompt"
    if _SUBSCRIPT.search(_literal(word.parts)):
        return "hides a command in a subscript, which the shell runs when it calculates"
    return ""


def _literal(parts: Iterable[Part]) -> str:
    """Return the literal text, without plain expansions."""
    pieces: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            pieces.append(part.value)
        elif isinstance(part, Expansion):
            pieces.append(_literal(part.parts))
    return "".join(pieces)


def _expansions(parts: Iterable[Part]) -> Iterable[Expansion]:
    for part in parts:
        if isinstance(part, Expansion):
            yield part
            yield from _expansions(part.parts)
