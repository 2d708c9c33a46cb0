"""How much harm a command line could do, and what it needs that a confined one does not have.

A pure function of the text and of where it would run. What it cannot understand is high: it
fails closed. It guards against accidents and plain tricks, not against a program that hides what
it does: code in other languages (`python -c`) counts as any local program does, and is low.
Keeping commands in is the confinement's work.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from keryx.ports.tool import Risk
from keryx.tools.shell.judgement.findings import Findings, Need
from keryx.tools.shell.judgement.paths import Ground
from keryx.tools.shell.judgement.walk import Walker
from keryx.tools.shell.rules.deeds import Level
from keryx.tools.shell.syntax import DEPTH, ParseError, Script, parse
from keryx.tools.shell.syntax.nodes import Part, Simple, Text

__all__ = ["Judgement", "Need", "risk"]

_ACTIVE = frozenset("*?[{~")


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
) -> Judgement:
    """Judge a command line that would run in the workspace.

    `writable` are trees besides the workspace where writing is nobody's concern, such as a
    private folder for temporary files. With `read_only` whatever may change anything is high.
    """
    try:
        script = parse(command)
    except ParseError as error:
        return Judgement("high", f"cannot be understood: {error}")
    ground = Ground.of(workspace, home, tuple(writable))
    walker = Walker(ground)
    walker.script(script, (ground.workspace,), DEPTH)
    found = walker.findings
    level, why = found.level, found.why or "only reads inside of the workspace"
    if read_only and found.changes:
        level, why = "high", f"this session only reads, and the command {why}"
    return Judgement(level, why, frozenset(found.needs), found.changes, _patterns(script, found))


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
    return (shlex.join(word for word in words if word is not None),)


def _is_pattern(part: Part) -> bool:
    return isinstance(part, Text) and not part.quoted and not _ACTIVE.isdisjoint(part.value)
