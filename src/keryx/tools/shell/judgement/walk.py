"""Goes through a script as the shell would: lists, branches, loops, functions, pipes.

Knows where each command may run and what flows into it. What the command does there is
`commands`' affair.
"""

from __future__ import annotations

from collections.abc import Iterable

from keryx.tools.shell.judgement import expand
from keryx.tools.shell.judgement.command_risk import CommandJudge
from keryx.tools.shell.judgement.findings import Findings
from keryx.tools.shell.judgement.flow import NO_INPUT, After, Bases, Input, merged
from keryx.tools.shell.judgement.paths import PathContext
from keryx.tools.shell.rules import is_known
from keryx.tools.shell.syntax import Script
from keryx.tools.shell.syntax.nodes import (
    Case,
    Chain,
    Check,
    Function,
    Group,
    If,
    Loop,
    Pipeline,
    Redirected,
    Simple,
    Stage,
)

MAX_STAGES = 5000
"""The most commands of one judgement; a longer script is high."""

_DECODERS = frozenset({"base64", "base32", "xxd", "openssl", "gunzip", "zcat", "uudecode", "rev"})


class Walker:
    """Walks through one script. `depth` is how much deeper scripts may nest."""

    def __init__(self, path_context: PathContext) -> None:
        self._judge = CommandJudge(path_context, self.script, self._call)
        self._functions: dict[str, Stage] = {}
        self._call_stack: list[str] = []
        self._stages = 0

    @property
    def findings(self) -> Findings:
        return self._judge.findings

    def script(self, script: Script, bases: Bases, depth: int, input_: Input = NO_INPUT) -> After:
        """Judge a script; return the directories where it may end."""
        if depth <= 0:
            self.findings.add_opaque("is nested too deep to be judged")
            return After.unchanged(bases)
        tainted = self._judge.tainted
        self._judge.tainted |= expand.tainted_in(script)
        after = After.unchanged(bases)
        for chain in script.chains:
            start = after.either
            after = self._chain(chain, start, depth, input_)
            if chain.background:
                after = After.unchanged(start)
        self._judge.tainted = tainted
        return after

    def _chain(self, chain: Chain, bases: Bases, depth: int, input_: Input) -> After:
        after = self._pipeline(chain.first, bases, depth, input_)
        for operator, pipeline in chain.following:
            if operator == "&&":
                next_after = self._pipeline(pipeline, after.success, depth, input_)
                after = After(next_after.success, merged(after.failure, next_after.failure))
            else:
                next_after = self._pipeline(pipeline, after.failure, depth, input_)
                after = After(merged(after.success, next_after.success), next_after.failure)
        return after

    def _pipeline(self, pipeline: Pipeline, bases: Bases, depth: int, input_: Input) -> After:
        if len(pipeline.stages) == 1:
            after = self._stage(pipeline.stages[0], bases, depth, input_)
            return After(after.failure, after.success) if pipeline.negated else after
        last = After.unchanged(bases)
        for stage in pipeline.stages:
            with self._judge.separate_findings() as stage_findings:
                last = self._stage(stage, bases, depth, input_)
            doubtful = input_.doubtful or stage_findings.uses_network or _decodes(stage)
            input_ = Input(piped=True, doubtful=doubtful)
        # Some shells run the last stage in the shell itself, others in a subshell.
        return After.unchanged(merged(bases, last.either))

    def _stage(self, stage: Stage, bases: Bases, depth: int, input_: Input) -> After:
        self._stages += 1
        if self._stages > MAX_STAGES:
            self.findings.add_opaque("has too many commands to be judged")
            return After.unchanged(bases)
        match stage:
            case Simple():
                return self._judge.simple(stage, bases, depth, input_)
            case Redirected(inner, redirections):
                input_ = self._judge.redirections(redirections, bases, depth, input_)
                return self._stage(inner, bases, depth, input_)
            case Group(body, subshell):
                after = self.script(body, bases, depth - 1, input_)
                return After.unchanged(bases) if subshell else after
            case Function(name, body):
                self._define(name, body, bases, depth)
            case Check(words, commands):
                self._judge.words(words, bases, depth)
                self._check_as_commands(commands, bases, depth)
            case If() | Loop() | Case():
                return After.unchanged(self._compound(stage, bases, depth, input_))
        return After.unchanged(bases)

    def _check_as_commands(self, commands: Iterable[Simple], bases: Bases, depth: int) -> None:
        """Judge the words in `[[` or `((` as commands, for shells without these brackets."""
        for command in commands:
            name = command.words[0].literal if command.words else ""
            if name is not None and (not name or is_known(name) or "/" in name):
                self._judge.simple(command, bases, depth, NO_INPUT)

    def _compound(self, stage: If | Loop | Case, bases: Bases, depth: int, input_: Input) -> Bases:
        match stage:
            case If():
                return self._if(stage, bases, depth, input_)
            case Loop():
                return self._loop(stage, bases, depth, input_)
            case Case(words, bodies):
                self._judge.words(words, bases, depth)
                ends = [self.script(body, bases, depth - 1, input_).either for body in bodies]
                return merged(bases, *ends)

    def _if(self, stage: If, bases: Bases, depth: int, input_: Input) -> Bases:
        ends: list[Bases] = []
        for condition, body in stage.branches:
            condition_after = self.script(condition, bases, depth - 1, input_)
            ends.append(self.script(body, condition_after.success, depth - 1, input_).either)
            bases = condition_after.failure
        if stage.otherwise is not None:
            bases = self.script(stage.otherwise, bases, depth - 1, input_).either
        return merged(*ends, bases)

    def _loop(self, loop: Loop, bases: Bases, depth: int, input_: Input) -> Bases:
        self._judge.words(loop.words, bases, depth)
        end = self._round(loop, bases, depth, input_)
        if set(end) == set(bases):
            return end
        # The directories of later rounds are unknown: each starts where the one before ended.
        return self._round(loop, merged(end, bases, (None,)), depth, input_)

    def _round(self, loop: Loop, bases: Bases, depth: int, input_: Input) -> Bases:
        start = bases
        if loop.condition is not None:
            bases = self.script(loop.condition, bases, depth - 1, input_).either
        return merged(self.script(loop.body, bases, depth - 1, input_).either, start)

    def _define(self, name: str, body: Stage, bases: Bases, depth: int) -> None:
        if any(command.words and command.words[0].literal == name for command in _commands(body)):
            self.findings.add("high", f"defines a function that calls itself without end: {name}")
        elif is_known(name):
            self.findings.add("high", f"gives a command another meaning: {name}")
        self._functions[name] = body
        # It may never be called, so it is judged once where it is defined.
        self._call(name, bases, depth, NO_INPUT)

    def _call(self, name: str, bases: Bases, depth: int, input_: Input) -> After | None:
        """Judge a call of a function, if the name is one."""
        body = self._functions.get(name)
        if body is None:
            return None
        if name in self._call_stack or depth <= 0:
            self.findings.add_opaque(f"calls a function that calls itself: {name}")
            return After.unchanged(bases)
        self._call_stack.append(name)
        after = self._stage(body, bases, depth - 1, input_)
        self._call_stack.pop()
        return after


def _commands(stage: Stage) -> Iterable[Simple]:
    return Script((Chain(Pipeline((stage,))),)).commands()


def _decodes(stage: Stage) -> bool:
    return any(
        bool(command.words) and command.words[0].literal in _DECODERS
        for command in _commands(stage)
    )
