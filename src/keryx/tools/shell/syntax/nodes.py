"""The syntax tree of a shell command line.

Plain values: the grammar creates them, and the rules know what they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


class ParseError(ValueError):
    """The text is not a command line that this parser understands."""


@dataclass(frozen=True, slots=True)
class Text:
    """Literal characters; unquoted ones may be a pattern, a brace or a tilde."""

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
    """A value that only the running shell knows, and the parts inside of it."""

    source: str
    parts: tuple[Part, ...]
    quoted: bool


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(...)`, backquotes, `<(...)` or `>(...)`: a script whose output is the value."""

    script: Script
    source: str
    quoted: bool


Part: TypeAlias = Text | Variable | Expansion | Substitution


@dataclass(frozen=True, slots=True)
class Word:
    """One word, before the shell expands it."""

    parts: tuple[Part, ...]

    @property
    def literal(self) -> str | None:
        """Its value; None if it has expansions. Patterns are not expanded."""
        if all(isinstance(part, Text) for part in self.parts):
            return self.text
        return None

    @property
    def bare(self) -> str | None:
        """Its value if it has no quotes and no expansions: only such words can be keywords."""
        if any(not isinstance(part, Text) or part.quoted for part in self.parts):
            return None
        return self.text

    @property
    def text(self) -> str:
        """The text for people: values where they are known, else the source."""
        return "".join(part.value if isinstance(part, Text) else part.source for part in self.parts)

    def scripts(self) -> Iterator[Script]:
        """Yield the scripts that run while the shell expands the word."""
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
    """The body of a here-document. It is read after the line that names it."""

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
        """The word that the shell expands: the target, or the body."""
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
    """`if`: pairs of condition and body, and the script of `else`."""

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
    """`[[ ... ]]` or `(( ... ))`: only its expansions run."""

    words: tuple[Word, ...]
    commands: tuple[Simple, ...] = ()
    """The commands that a shell without these brackets would run instead."""


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
    """Stages that run at the same time; each reads the output of the one before."""

    stages: tuple[Stage, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Pipelines joined by `&&` and `||`; each operator is stored with the pipeline after it."""

    first: Pipeline
    following: tuple[tuple[str, Pipeline], ...] = ()
    background: bool = False

    @property
    def pipelines(self) -> tuple[Pipeline, ...]:
        return (self.first, *(pipeline for _, pipeline in self.following))


@dataclass(frozen=True, slots=True)
class Script:
    """A whole text, or the text between two brackets."""

    chains: tuple[Chain, ...]

    def stages(self) -> Iterator[Stage]:
        """Yield every stage at any depth, with substitutions, outer ones first."""
        for chain in self.chains:
            for pipeline in chain.pipelines:
                for stage in pipeline.stages:
                    yield from _nested(stage)

    def commands(self) -> Iterator[Simple]:
        """Yield every simple command that the script could run."""
        return (stage for stage in self.stages() if isinstance(stage, Simple))


def words_of(stage: Stage) -> tuple[Word, ...]:
    """Return the words that the shell expands for this stage itself."""
    match stage:
        case Simple(assignments, words, redirections):
            values = (value for assignment in assignments for value in assignment.values)
            return (*values, *words, *(redirection.word for redirection in redirections))
        case Loop(words=words) | Case(words=words) | Check(words=words):
            return words
        case Redirected(_, redirections):
            return tuple(redirection.word for redirection in redirections)
        case Group() | If() | Function():
            return ()


def scripts_of(stage: Stage) -> tuple[Script, ...]:
    """Return the scripts inside of this stage."""
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
