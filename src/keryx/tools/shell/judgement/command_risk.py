"""Judges simple commands: their words, assignments and redirections, and all that they start."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from keryx.tools.shell.judgement import evaluation, expand, variables
from keryx.tools.shell.judgement.effect_risk import EffectJudge
from keryx.tools.shell.judgement.findings import Findings
from keryx.tools.shell.judgement.flow import NO_INPUT, After, Bases, Input, merged
from keryx.tools.shell.judgement.paths import PathContext
from keryx.tools.shell.judgement.variables import SECRET_VARIABLE
from keryx.tools.shell.rules import Action, Argument, Arguments, action_of_command
from keryx.tools.shell.rules.running.wrappers import SUSPECT
from keryx.tools.shell.syntax import ParseError, Script, parse
from keryx.tools.shell.syntax.nodes import Assignment, Redirection, Simple, Variable, Word

_OUTPUTS = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})


class WalkScript(Protocol):
    def __call__(self, script: Script, bases: Bases, depth: int, input_: Input, /) -> After: ...


CallFunction = Callable[[str, Bases, int, Input], After | None]


class CommandJudge:
    """Judges commands; the walker judges the scripts and functions inside of them."""

    def __init__(
        self, path_context: PathContext, script: WalkScript, function: CallFunction
    ) -> None:
        self._paths = path_context
        self._script = script
        self._function = function
        self.findings = Findings()
        self.tainted: frozenset[str] = frozenset()
        """The tracked variables that the script may have set."""
        self._checked_doubtful: set[tuple[Arguments, Bases]] = set()

    @property
    def _effects(self) -> EffectJudge:
        return EffectJudge(self._paths, self.findings)

    @contextmanager
    def separate_findings(self) -> Generator[Findings]:
        """Collect the findings of the block separately; they are merged at its end."""
        outer = self.findings
        self.findings = Findings(downloads=outer.downloads)
        try:
            yield self.findings
        finally:
            outer.merge(self.findings)
            self.findings = outer

    def words(self, words: Iterable[Word], bases: Bases, depth: int) -> Arguments:
        """Return the arguments that the words become; judge what runs inside of them."""
        return tuple(argument for word in words for argument in self._word(word, bases, depth))

    def _word(self, word: Word, bases: Bases, depth: int) -> Arguments:
        with self.separate_findings() as inner:
            for script in word.scripts():
                # `>(...)` reads the output of the command around it.
                reads = any(getattr(part, "source", "").startswith(">(") for part in word.parts)
                self._script(script, bases, depth - 1, Input(piped=reads, doubtful=reads))
            if why := evaluation.hidden_command(word):
                self.findings.add_opaque(why)
            for part in word.parts:
                if isinstance(part, Variable) and SECRET_VARIABLE.match(part.name):
                    why = f"uses a secret of the environment: {part.name}"
                    self.findings.add("low", why, changes=False)
        return expand.arguments(word, self.tainted, fetched=inner.uses_network)

    def simple(self, command: Simple, bases: Bases, depth: int, input_: Input) -> After:
        """Judge a simple command."""
        marks = self._assignments(command.assignments, bases, depth)
        words = self.words(command.words, bases, depth)
        with self.separate_findings() as redirected:
            input_ = self.redirections(command.redirections, bases, depth, input_)
        suffix = " >" if redirected.changes else ""
        after = After.unchanged(bases)
        with self.separate_findings() as own:
            if words:
                after = self._command(words, bases, depth, input_, (marks, suffix))
            elif marks or suffix:
                self.findings.patterns[True, f"{marks}{suffix}".strip()] = None
        if own.uses_network:
            for redirection in command.redirections:
                if redirection.operator in _OUTPUTS:
                    self._effects.mark_download(Argument(redirection.target.text), bases)
        return after

    def _command(
        self, words: Arguments, bases: Bases, depth: int, input_: Input, marks: tuple[str, str]
    ) -> After:
        """Judge one command and all that it starts. `marks` go around the pattern of consent."""
        if depth <= 0:
            self.findings.add_opaque("is nested too deep to be judged")
            return After.unchanged(bases)
        if not words:
            return After.unchanged(bases)
        name = words[0].text if words[0].is_literal else ""
        after = self._function(name, bases, depth, input_)
        if after is not None:
            return after
        action = action_of_command(words)
        if action.stdin == "statements" and input_.text is not None:
            action = action_of_command((*words, input_.text))
        self._record(words, action)
        prefix, suffix = marks
        with self.separate_findings() as own:
            prefix += "".join(
                self._assign(*assignment, bases, depth) for assignment in action.assigns
            )
            self._effects.judge(action, bases)
            self._check_stdin(action, input_, bases, depth)
        if not action.commands and not action.texts:
            pattern = None if action.pattern is None else f"{prefix}{action.pattern}{suffix}"
            self.findings.patterns[own.level != "none" or bool(suffix), pattern] = None
        inner_bases = bases
        if action.directory is not None:
            inner_bases = tuple(self._paths.resolve(action.directory, base) for base in bases)
        for inner in action.commands:
            self._command(inner, inner_bases, depth - 1, input_, (prefix, suffix))
        for inner in action.doubtful:
            self._check_doubtful(inner, inner_bases, depth - 1)
        for text in action.texts:
            self._script_text(text, inner_bases, depth - 1, input_)
        return self._after(action, bases)

    def _check_doubtful(self, words: Arguments, bases: Bases, depth: int) -> None:
        """Judge a command that may run; report it only if it is high."""
        self.findings.commands[words] = False
        if (
            words[0].text.rpartition("/")[2] not in SUSPECT
            or (words, bases) in self._checked_doubtful
        ):
            return
        self._checked_doubtful.add((words, bases))
        outer = self.findings
        self.findings = Findings(downloads=outer.downloads)
        self._command(words, bases, depth, NO_INPUT, ("", ""))
        inner, self.findings = self.findings, outer
        if inner.level == "high":
            inner.patterns.clear()
            outer.merge(inner)

    def _record(self, words: Arguments, action: Action) -> None:
        """Record the commands for the user's rules that forbid or ask."""
        self.findings.commands[words] = not action.plain and not action.commands
        if action.plain:
            self.findings.commands[action.plain] = True
        words_before = [words[: len(words) - len(inner)] for inner in action.commands]
        if action.plain:
            words_before.append(words[: len(words) - len(action.plain) + 1])
        # A word that may become several words may be the command itself.
        shifted = any(argument.splits for before in words_before for argument in before)
        self.findings.opaque |= action.opaque or shifted

    def _after(self, action: Action, bases: Bases) -> After:
        target = action.enters
        if target is None:
            return After.unchanged(bases)
        # With CDPATH a plain name may lead to another folder.
        is_unknown = "CDPATH" in self.tainted and not target.text.startswith(("/", "~", "."))
        is_unknown |= "HOME" in self.tainted and target.text.startswith("~")
        success = tuple(None if is_unknown else self._paths.resolve(target, base) for base in bases)
        return After(merged(success), bases)

    def _script_text(
        self, text: Argument, bases: Bases, depth: int, input_: Input = NO_INPUT
    ) -> None:
        """Judge a script that is given as text."""
        if text.fetched:
            self.findings.add_opaque("runs what comes over the network")
        elif not text.is_literal:
            self.findings.add_opaque(f"runs a script that only the shell knows: {text.text}")
        else:
            try:
                script = parse(text.text, depth=depth)
            except ParseError as error:
                self.findings.add_opaque(f"runs a script that cannot be understood: {error}")
            else:
                self._script(script, bases, depth, input_)

    def _check_stdin(self, action: Action, input_: Input, bases: Bases, depth: int) -> None:
        """Judge the standard input of a command that runs it as a program."""
        if action.stdin in ("", "statements"):
            return
        if input_.doubtful or (input_.text is not None and input_.text.fetched):
            self.findings.add_opaque("runs what comes over the network, or was made unreadable")
        elif input_.file is not None:
            self._effects.program(input_.file, bases)
        elif action.stdin == "shell" and input_.text is not None:
            self._script_text(input_.text, bases, depth - 1)
        elif action.stdin == "shell" and input_.piped:
            self.findings.add_opaque("runs what another command prints")
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
            self._script_text(value, bases, depth - 1)
        return self._effects.assign(name, value)

    def redirections(
        self, redirections: Iterable[Redirection], bases: Bases, depth: int, input_: Input
    ) -> Input:
        """Judge where output goes; return what comes in on standard input."""
        for redirection in redirections:
            targets = self._word(redirection.word, bases, depth)
            fetched = any(target.fetched for target in targets)
            target = (
                targets[0]
                if len(targets) == 1
                else Argument(redirection.word.text, is_literal=False)
            )
            if redirection.document is not None or redirection.operator == "<<<":
                is_literal = redirection.word.literal is not None
                input_ = Input(text=Argument(redirection.word.text, is_literal, fetched=fetched))
            elif redirection.operator in _OUTPUTS:
                self._output(redirection, target, bases)
            elif expand.is_pipe(redirection.word):
                input_ = Input(piped=True, doubtful=fetched)
            elif redirection.operator == "<":
                self._effects.read(target, bases)
                input_ = Input(file=target)
        return input_

    def _output(self, redirection: Redirection, target: Argument, bases: Bases) -> None:
        copies = redirection.operator == ">&" and target.text.rstrip("-").isdigit()
        if not (copies or expand.is_pipe(redirection.word) or target.text == "-"):
            self._effects.write(replace(target, pattern=False), bases)
