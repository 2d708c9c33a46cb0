"""Weighs simple commands: their words, assignments and redirections, and all that they start."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from keryx.tools.shell.judgement import evaluation, expand, variables
from keryx.tools.shell.judgement.findings import Findings
from keryx.tools.shell.judgement.flow import NOTHING, After, Bases, Feed, merged
from keryx.tools.shell.judgement.paths import Ground
from keryx.tools.shell.judgement.variables import SECRET_VARIABLE
from keryx.tools.shell.judgement.weigh import Scale
from keryx.tools.shell.rules import Action, Argument, Arguments, deed
from keryx.tools.shell.rules.running.wrappers import SUSPECT
from keryx.tools.shell.syntax import ParseError, Script, parse
from keryx.tools.shell.syntax.nodes import Assignment, Redirection, Simple, Variable, Word

_OUTPUTS = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})


class WalkScript(Protocol):
    def __call__(self, script: Script, bases: Bases, depth: int, feed: Feed, /) -> After: ...


CallFunction = Callable[[str, Bases, int, Feed], After | None]


class Runner:
    """Weighs commands for one walk; scripts and functions inside of them are the walk's again."""

    def __init__(self, ground: Ground, script: WalkScript, function: CallFunction) -> None:
        self._ground = ground
        self._script = script
        self._function = function
        self.findings = Findings()
        self.tainted: frozenset[str] = frozenset()
        """The tracked variables that the script may have set."""
        self._doubted: set[tuple[Arguments, Bases]] = set()

    @property
    def _scale(self) -> Scale:
        return Scale(self._ground, self.findings)

    @contextmanager
    def apart(self) -> Generator[Findings]:
        """What is found inside, also seen by itself."""
        outer = self.findings
        self.findings = Findings(downloads=outer.downloads)
        try:
            yield self.findings
        finally:
            outer.merge(self.findings)
            self.findings = outer

    def words(self, words: Iterable[Word], bases: Bases, depth: int) -> Arguments:
        """What the words become; what runs inside of them is weighed."""
        return tuple(argument for word in words for argument in self._word(word, bases, depth))

    def _word(self, word: Word, bases: Bases, depth: int) -> Arguments:
        with self.apart() as found:
            for script in word.scripts():
                # `>(...)` reads what the command around it prints.
                reads = any(getattr(part, "source", "").startswith(">(") for part in word.parts)
                self._script(script, bases, depth - 1, Feed(piped=reads, doubtful=reads))
            if why := evaluation.hidden(word):
                self.findings.hide(why)
            for part in word.parts:
                if isinstance(part, Variable) and SECRET_VARIABLE.match(part.name):
                    why = f"uses a secret of the environment: {part.name}"
                    self.findings.add("low", why, changes=False)
        return expand.arguments(word, self.tainted, fetched=found.uses_network)

    def simple(self, command: Simple, bases: Bases, depth: int, feed: Feed) -> After:
        """A command as it is written."""
        marks = self._assignments(command.assignments, bases, depth)
        words = self.words(command.words, bases, depth)
        with self.apart() as found:
            feed = self.redirections(command.redirections, bases, depth, feed)
        tail = " >" if found.changes else ""
        after = After.staying(bases)
        with self.apart() as found:
            if words:
                after = self._command(words, bases, depth, feed, (marks, tail))
            elif marks or tail:
                self.findings.patterns[True, f"{marks}{tail}".strip()] = None
        if found.uses_network:
            for one in command.redirections:
                if one.operator in _OUTPUTS:
                    self._scale.keep(Argument(one.target.shown), bases)
        return after

    def _command(
        self, words: Arguments, bases: Bases, depth: int, feed: Feed, marks: tuple[str, str]
    ) -> After:
        """One command, and all that it starts. `marks` go around what consent would cover."""
        if depth <= 0:
            self.findings.hide("is nested too deep to be judged")
            return After.staying(bases)
        if not words:
            return After.staying(bases)
        name = words[0].text if words[0].known else ""
        after = self._function(name, bases, depth, feed)
        if after is not None:
            return after
        does = deed(words)
        if does.stdin == "statements" and feed.text is not None:
            does = deed((*words, feed.text))
        self._record(words, does)
        before, tail = marks
        with self.apart() as found:
            before += "".join(self._assign(*one, bases, depth) for one in does.assigns)
            self._scale.weigh(does, bases)
            self._fed(does, feed, bases, depth)
        if not does.commands and not does.texts:
            pattern = None if does.pattern is None else f"{before}{does.pattern}{tail}"
            self.findings.patterns[found.level != "none" or bool(tail), pattern] = None
        inside = bases
        if does.directory is not None:
            inside = tuple(self._ground.resolve(does.directory, base) for base in bases)
        for inner in does.commands:
            self._command(inner, inside, depth - 1, feed, (before, tail))
        for inner in does.doubtful:
            self._doubtful(inner, inside, depth - 1)
        for text in does.texts:
            self._text(text, inside, depth - 1, feed)
        return self._entered(does, bases)

    def _doubtful(self, words: Arguments, bases: Bases, depth: int) -> None:
        """What may run, if it would be bad; consent to the command around it covers the rest."""
        self.findings.commands[words] = False
        if words[0].text.rpartition("/")[2] not in SUSPECT or (words, bases) in self._doubted:
            return
        self._doubted.add((words, bases))
        outer = self.findings
        self.findings = Findings(downloads=outer.downloads)
        self._command(words, bases, depth, NOTHING, ("", ""))
        inner, self.findings = self.findings, outer
        if inner.level == "high":
            inner.patterns.clear()
            outer.merge(inner)

    def _record(self, words: Arguments, does: Action) -> None:
        """What rules that forbid or ask are asked about."""
        self.findings.commands[words] = not does.plain and not does.commands
        if does.plain:
            self.findings.commands[does.plain] = True
        ahead = [words[: len(words) - len(inner)] for inner in does.commands]
        if does.plain:
            ahead.append(words[: len(words) - len(does.plain) + 1])
        # What may become several words may be the command itself.
        shifted = any(one.splits for before in ahead for one in before)
        self.findings.opaque |= does.opaque or shifted

    def _entered(self, does: Action, bases: Bases) -> After:
        target = does.enters
        if target is None:
            return After.staying(bases)
        # With CDPATH a plain name may lead elsewhere.
        free = "CDPATH" in self.tainted and not target.text.startswith(("/", "~", "."))
        free |= "HOME" in self.tainted and target.text.startswith("~")
        success = tuple(None if free else self._ground.resolve(target, base) for base in bases)
        return After(merged(success), bases)

    def _text(self, text: Argument, bases: Bases, depth: int, feed: Feed = NOTHING) -> None:
        """A script that is given as text."""
        if text.fetched:
            self.findings.hide("runs what comes over the network")
        elif not text.known:
            self.findings.hide(f"runs a script that only the shell knows: {text.text}")
        else:
            try:
                script = parse(text.text, depth=depth)
            except ParseError as error:
                self.findings.hide(f"runs a script that cannot be understood: {error}")
            else:
                self._script(script, bases, depth, feed)

    def _fed(self, does: Action, feed: Feed, bases: Bases, depth: int) -> None:
        """What comes in is a program, for those that take one there."""
        if does.stdin in ("", "statements"):
            return
        if feed.doubtful or (feed.text is not None and feed.text.fetched):
            self.findings.hide("runs what comes over the network, or was made unreadable")
        elif feed.file is not None:
            self._scale.program(feed.file, bases)
        elif does.stdin == "shell" and feed.text is not None:
            self._text(feed.text, bases, depth - 1)
        elif does.stdin == "shell" and feed.piped:
            self.findings.hide("runs what another command prints")
        else:
            self.findings.opaque = True

    def _assignments(self, assignments: Iterable[Assignment], bases: Bases, depth: int) -> str:
        marks = ""
        for assignment in assignments:
            for value in self.words(assignment.values, bases, depth):
                marks += self._assign(assignment.name, value, bases, depth)
        return marks

    def _assign(self, name: str, value: Argument, bases: Bases, depth: int) -> str:
        if variables.is_command(name) and value.text:
            self._text(value, bases, depth - 1)
        return self._scale.assign(name, value)

    def redirections(
        self, redirections: Iterable[Redirection], bases: Bases, depth: int, feed: Feed
    ) -> Feed:
        """Weigh where output goes; what comes in then."""
        for one in redirections:
            targets = self._word(one.word, bases, depth)
            fetched = any(target.fetched for target in targets)
            target = targets[0] if len(targets) == 1 else Argument(one.word.shown, known=False)
            if one.document is not None or one.operator == "<<<":
                known = one.word.literal is not None
                feed = Feed(text=Argument(one.word.shown, known, fetched=fetched))
            elif one.operator in _OUTPUTS:
                self._output(one, target, bases)
            elif expand.is_pipe(one.word):
                feed = Feed(piped=True, doubtful=fetched)
            elif one.operator == "<":
                self._scale.read(target, bases)
                feed = Feed(file=target)
        return feed

    def _output(self, one: Redirection, target: Argument, bases: Bases) -> None:
        copies = one.operator == ">&" and target.text.rstrip("-").isdigit()
        if not (copies or expand.is_pipe(one.word) or target.text == "-"):
            self._scale.write(replace(target, pattern=False), bases)
