"""How much harm a command line could do, and what it needs that a confined one does not have.

A pure function of the text and of where it would run. What it cannot understand is high: it
fails closed. It guards against accidents and plain tricks, not against a program that hides what
it does: code in other languages (`python -c`) counts as any local program does, and is low.
Keeping commands in is the confinement's work.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from keryx.ports.tool import ANY_TEXT, Risk
from keryx.tools.shell.judgement.findings import Findings, Need
from keryx.tools.shell.judgement.paths import Ground
from keryx.tools.shell.judgement.subjects import subjects
from keryx.tools.shell.judgement.walk import Walker
from keryx.tools.shell.rules.actions import Level
from keryx.tools.shell.syntax import DEPTH, ParseError, Script, parse
from keryx.tools.shell.syntax.nodes import Chain, Part, Pipeline, Simple, Text, Word

__all__ = ["Judgement", "Need", "risk"]

_ACTIVE = frozenset("*?[{")
_PLAIN = re.compile(r"[\w@%+=:,./^-][\w@%+=:,./^~-]*", re.ASCII)
MOST_WORDS = 40
"""Words of a command that are searched for what makes it high."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a person is told before they agree."""

    level: Level
    why: str
    needs: frozenset[Need] = frozenset()
    changes: bool = True
    """Whether it may change anything at all; a session that only reads refuses it then."""
    patterns: tuple[str, ...] = ()
    """What consent for always would cover, such as `git commit`; a line of several commands has
    several. Empty if only this very call can be agreed to."""
    subjects: tuple[str, ...] = ()
    """All commands that may run, for rules that forbid or ask; see `Risk.subjects`."""
    peril: str | None = None
    """The words that make a line high; see `Risk.peril`."""

    @property
    def risk(self) -> Risk:
        return Risk(self.level, self.why)

    def covered_by(self, allowed: Collection[str]) -> bool:
        """Whether consent that was given for always covers every command of the line.

        It covers what the commands are, not what they need: needs are agreed to by themselves.
        """
        return bool(self.patterns) and all(one in allowed for one in self.patterns)


def risk(
    command: str,
    *,
    workspace: Path,
    home: Path | None = None,
    writable: Iterable[Path] = (),
    read_only: bool = False,
    walled: bool = True,
) -> Judgement:
    """Judge a command line that would run in the workspace.

    `writable` are trees besides the workspace where writing is nobody's concern, such as a
    private folder for temporary files. With `read_only` whatever may change anything is high.
    `walled` says that it will be confined.
    """
    try:
        script = parse(command)
    except ParseError as error:
        why = f"cannot be understood: {error}"
        return Judgement("high", why, subjects=(ANY_TEXT,), peril=command)
    ground = Ground.of(workspace, home, tuple(writable), walled=walled)
    found = _findings(script, ground)
    level, why = found.level, found.why or "only reads what commands may see"
    if read_only and found.changes:
        level, why = "high", f"this session only reads, and the command {why}"
    return Judgement(
        level,
        why,
        frozenset(found.needs),
        found.changes,
        _patterns(script, found),
        (ANY_TEXT,) if found.opaque else subjects(found.commands),
        _peril(command, script, found, ground) if level == "high" else None,
    )


def _findings(script: Script, ground: Ground) -> Findings:
    walker = Walker(ground)
    walker.script(script, (ground.workspace,), DEPTH)
    return walker.findings


def _peril(command: str, script: Script, found: Findings, ground: Ground) -> str:
    """The first words of a plain command that are as dangerous as all of it."""
    if not _itself(script):
        return command
    words = next(script.commands()).words
    reasons = found.dangers
    for count in range(1, min(len(words), MOST_WORDS)):
        start = Simple((), words[:count])
        part = Script((Chain(Pipeline((start,))),))
        if _findings(part, ground).dangers == reasons:
            return _text(words[:count])
    return _text(words)


def _text(words: tuple[Word, ...]) -> str:
    texts = (word.shown for word in words)
    return " ".join(text if _PLAIN.fullmatch(text) else shlex.quote(text) for text in texts)


def _patterns(script: Script, found: Findings) -> tuple[str, ...]:
    if found.level == "high":
        return _itself(script)
    acting = [pattern for acts, pattern in found.patterns if acts]
    patterns = acting or [pattern for _, pattern in found.patterns]
    return tuple(dict.fromkeys(one for one in patterns if one)) if None not in patterns else ()


def _itself(script: Script) -> tuple[str, ...]:
    """The whole line, if it is one plain command: its like may do far worse."""
    stages = tuple(script.stages())
    if len(stages) != 1 or not isinstance(stages[0], Simple) or script.chains[0].background:
        return ()
    command = stages[0]
    words = [word.literal for word in command.words]
    if command.assignments or command.redirections or not words or None in words:
        return ()
    # Quoted or not, such a word would read the same, and mean something else.
    if any(_is_pattern(part) for word in command.words for part in word.parts):
        return ()
    if any(_is_tilde(word.parts[0]) for word in command.words if word.parts):
        return ()
    return (_text(command.words),)


def _is_pattern(part: Part) -> bool:
    return isinstance(part, Text) and not part.quoted and not _ACTIVE.isdisjoint(part.value)


def _is_tilde(part: Part) -> bool:
    return isinstance(part, Text) and not part.quoted and part.value.startswith("~")
