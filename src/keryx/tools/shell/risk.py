"""Judges how much harm a command line could do, and what it needs beyond its confinement.

A pure function of the text and of where it would run. A line that it does not understand is high:
it fails closed. It guards against accidents and simple tricks, not against a program that hides
what it does: code in other languages (`python -c`) is low, as any local program. The confinement
restricts commands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from keryx.ports.tool import ANY_TEXT, Risk
from keryx.tools.shell.judgement.findings import Findings, Need
from keryx.tools.shell.judgement.paths import PathContext
from keryx.tools.shell.judgement.subjects import subjects
from keryx.tools.shell.judgement.walk import Walker
from keryx.tools.shell.rules.actions import Level
from keryx.tools.shell.syntax import MAX_DEPTH, ParseError, Script, parse
from keryx.tools.shell.syntax.nodes import Chain, Part, Pipeline, Simple, Text, Word

__all__ = ["Judgement", "Need", "risk"]

_GLOB_CHARACTERS = frozenset("*?[{")
_PLAIN = re.compile(r"[\w@%+=:,./^-][\w@%+=:,./^~-]*", re.ASCII)
MAX_WORDS = 40
"""The most words of a command that are searched for the dangerous ones."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a person sees before they agree."""

    level: Level
    why: str
    needs: frozenset[Need] = frozenset()
    changes: bool = True
    """Whether it may change anything at all; a read-only session refuses it then."""
    patterns: tuple[str, ...] = ()
    """What consent for always would cover, such as `git commit`; a line of several commands has
    several. Empty if a person can agree only to this single call."""
    subjects: tuple[str, ...] = ()
    """All commands that may run, for rules that forbid or ask; see `Risk.subjects`."""
    peril: str | None = None
    """The words that make a line high; see `Risk.peril`."""

    @property
    def risk(self) -> Risk:
        return Risk(self.level, self.why)

    def covered_by(self, allowed: Collection[str]) -> bool:
        """Return whether consent for always covers every command of the line.

        It covers the commands, not their needs: a person agrees to needs separately.
        """
        return bool(self.patterns) and all(pattern in allowed for pattern in self.patterns)


def risk(
    command: str,
    *,
    workspace: Path,
    home: Path | None = None,
    writable: Iterable[Path] = (),
    read_only: bool = False,
    confined: bool = True,
) -> Judgement:
    """Judge a command line that would run in the workspace.

    `writable` are trees besides the workspace where writing is harmless, such as a private folder
    for temporary files. With `read_only` every command that may change something is high.
    `confined`: the command will run confined.
    """
    try:
        script = parse(command)
    except ParseError as error:
        why = f"cannot be understood: {error}"
        return Judgement("high", why, subjects=(ANY_TEXT,), peril=command)
    path_context = PathContext.of(workspace, home, tuple(writable), confined=confined)
    findings = _judge(script, path_context)
    level, why = findings.level, findings.why or "only reads what commands may see"
    if read_only and findings.changes:
        level, why = "high", f"this session only reads, and the command {why}"
    return Judgement(
        level,
        why,
        frozenset(findings.needs),
        findings.changes,
        _patterns(script, findings),
        (ANY_TEXT,) if findings.opaque else subjects(findings.commands),
        _dangerous_words(command, script, findings, path_context) if level == "high" else None,
    )


def _judge(script: Script, path_context: PathContext) -> Findings:
    walker = Walker(path_context)
    walker.script(script, (path_context.workspace,), MAX_DEPTH)
    return walker.findings


def _dangerous_words(
    command: str, script: Script, findings: Findings, path_context: PathContext
) -> str:
    """Return the first words of a plain command that are as dangerous as the whole command."""
    if not _whole_line(script):
        return command
    words = next(script.commands()).words
    reasons = findings.high_reasons
    for count in range(1, min(len(words), MAX_WORDS)):
        start = Simple((), words[:count])
        part = Script((Chain(Pipeline((start,))),))
        if _judge(part, path_context).high_reasons == reasons:
            return _text(words[:count])
    return _text(words)


def _text(words: tuple[Word, ...]) -> str:
    texts = (word.text for word in words)
    return " ".join(text if _PLAIN.fullmatch(text) else shlex.quote(text) for text in texts)


def _patterns(script: Script, findings: Findings) -> tuple[str, ...]:
    if findings.level == "high":
        return _whole_line(script)
    acting = [pattern for changes, pattern in findings.patterns if changes]
    patterns = acting or [pattern for _, pattern in findings.patterns]
    return (
        tuple(dict.fromkeys(pattern for pattern in patterns if pattern))
        if None not in patterns
        else ()
    )


def _whole_line(script: Script) -> tuple[str, ...]:
    """Return the whole line, if it is one plain command; similar commands may be far worse."""
    stages = tuple(script.stages())
    if len(stages) != 1 or not isinstance(stages[0], Simple) or script.chains[0].background:
        return ()
    command = stages[0]
    words = [word.literal for word in command.words]
    if command.assignments or command.redirections or not words or None in words:
        return ()
    # Quoted and unquoted such a word looks the same, but means something else.
    if any(_has_glob(part) for word in command.words for part in word.parts):
        return ()
    if any(_is_tilde(word.parts[0]) for word in command.words if word.parts):
        return ()
    return (_text(command.words),)


def _has_glob(part: Part) -> bool:
    return (
        isinstance(part, Text) and not part.quoted and not _GLOB_CHARACTERS.isdisjoint(part.value)
    )


def _is_tilde(part: Part) -> bool:
    return isinstance(part, Text) and not part.quoted and part.value.startswith("~")
