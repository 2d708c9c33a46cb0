"""What a shell command line is made of.

Plain values: how text becomes these is the grammar's affair, what they would do is the rules'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


class ParseError(ValueError):
    """The text is no command line that this parser understands."""


@dataclass(frozen=True, slots=True)
class Text:
    """Characters that stand for themselves; unquoted ones may be a pattern, a brace, a tilde."""

    value: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Variable:
    """A plain `$name` or `${name}`."""

    name: str
    source: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Expansion:
    """A value that only the running shell knows, and the words inside of it."""

    source: str
    parts: tuple[Part, ...]
    quoted: bool


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(...)`, backquotes, `<(...)` or `>(...)`: a script that runs to make the value."""

    script: Script
    source: str
    quoted: bool


Part: TypeAlias = Text | Variable | Expansion | Substitution


@dataclass(frozen=True, slots=True)
class Word:
    """One word, before the shell has expanded it."""

    parts: tuple[Part, ...]

    @property
    def literal(self) -> str | None:
        """Its value, unless expansions are part of it. Patterns stand as they are written."""
        if all(isinstance(part, Text) for part in self.parts):
            return self.shown
        return None

    @property
    def bare(self) -> str | None:
        """Its value if no part of it is quoted: only such words can be keywords."""
        if any(not isinstance(part, Text) or part.quoted for part in self.parts):
            return None
        return self.shown

    @property
    def shown(self) -> str:
        """For people: values where they are known, the source where not."""
        return "".join(part.value if isinstance(part, Text) else part.source for part in self.parts)

    def scripts(self) -> Iterator[Script]:
        """What runs while the shell expands the word."""
        return _scripts(self.parts)


def _scripts(parts: tuple[Part, ...]) -> Iterator[Script]:
    for part in parts:
        if isinstance(part, Substitution):
            yield part.script
        elif isinstance(part, Expansion):
            yield from _scripts(part.parts)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=value`, or `name=(values)`."""

    name: str
    values: tuple[Word, ...]


@dataclass(slots=True)
class Document:
    """The body of a here-document. It is read after the line that asks for it."""

    word: Word = Word(())


@dataclass(frozen=True, slots=True)
class Redirection:
    """`operator target`, or a here-document."""

    operator: str
    target: Word
    descriptor: str = ""
    document: Document | None = None

    @property
    def word(self) -> Word:
        """What the shell expands: the target, or the body."""
        return self.target if self.document is None else self.document.word


@dataclass(frozen=True, slots=True)
class Simple:
    """A command with its words."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """`{ ...; }` or `( ... )`."""

    body: Script
    subshell: bool


@dataclass(frozen=True, slots=True)
class If:
    """`if`: pairs of condition and body, and what runs if none holds."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None


@dataclass(frozen=True, slots=True)
class Loop:
    """`while`, `until`, `for` and `select`."""

    condition: Script | None
    body: Script
    name: str = ""
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """`case`: patterns are words too, and substitutions in them run."""

    words: tuple[Word, ...]
    bodies: tuple[Script, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """`[[ ... ]]` or `(( ... ))`: nothing but its expansions runs."""

    words: tuple[Word, ...]
    commands: tuple[Simple, ...] = ()
    """What a shell that does not know these brackets would run instead."""


@dataclass(frozen=True, slots=True)
class Function:
    """A definition; the body runs whenever the name is used."""

    name: str
    body: Stage


@dataclass(frozen=True, slots=True)
class Redirected:
    """A compound command with redirections of its own."""

    stage: Stage
    redirections: tuple[Redirection, ...]


Stage: TypeAlias = Simple | Group | If | Loop | Case | Check | Function | Redirected


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Stages that run at once, each reading what the one before prints."""

    stages: tuple[Stage, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Pipelines joined by `&&` and `||`; the operator stands before its pipeline."""

    first: Pipeline
    rest: tuple[tuple[str, Pipeline], ...] = ()
    background: bool = False

    @property
    def pipelines(self) -> tuple[Pipeline, ...]:
        return (self.first, *(pipeline for _, pipeline in self.rest))


@dataclass(frozen=True, slots=True)
class Script:
    """A whole text, or what stands between two brackets of one."""

    chains: tuple[Chain, ...]

    def stages(self) -> Iterator[Stage]:
        """Every stage at any depth, substitutions included, outer ones first."""
        for chain in self.chains:
            for pipeline in chain.pipelines:
                for stage in pipeline.stages:
                    yield from _nested(stage)

    def commands(self) -> Iterator[Simple]:
        """Every simple command that the script could run."""
        return (stage for stage in self.stages() if isinstance(stage, Simple))


def words_of(stage: Stage) -> tuple[Word, ...]:
    """The words that the shell expands for this stage itself."""
    match stage:
        case Simple(assignments, words, redirections):
            values = (value for assignment in assignments for value in assignment.values)
            return (*values, *words, *(one.word for one in redirections))
        case Loop(words=words) | Case(words=words) | Check(words=words):
            return words
        case Redirected(_, redirections):
            return tuple(one.word for one in redirections)
        case Group() | If() | Function():
            return ()


def scripts_of(stage: Stage) -> tuple[Script, ...]:
    """The scripts that stand inside of this stage."""
    match stage:
        case Group(body):
            return (body,)
        case If(branches, otherwise):
            inner = tuple(script for branch in branches for script in branch)
            return inner if otherwise is None else (*inner, otherwise)
        case Loop(condition, body):
            return (body,) if condition is None else (condition, body)
        case Case(_, bodies):
            return bodies
        case Simple() | Check() | Function() | Redirected():
            return ()


def _nested(stage: Stage) -> Iterator[Stage]:
    yield stage
    for word in words_of(stage):
        for script in word.scripts():
            yield from script.stages()
    for script in scripts_of(stage):
        yield from script.stages()
    if isinstance(stage, Function):
        yield from _nested(stage.body)
    elif isinstance(stage, Redirected):
        yield from _nested(stage.stage)
