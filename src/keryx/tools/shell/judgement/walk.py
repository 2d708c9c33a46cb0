"""Goes through a script as the shell would: lists, branches, loops, functions, pipes.

Knows where each command may run and what flows into it. What the command does there is
`commands`' affair.
"""

from __future__ import annotations

from collections.abc import Iterable

from keryx.tools.shell.judgement import expand
from keryx.tools.shell.judgement.command_risk import Runner
from keryx.tools.shell.judgement.findings import Findings
from keryx.tools.shell.judgement.flow import NOTHING, After, Bases, Feed, merged
from keryx.tools.shell.judgement.paths import Ground
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

STAGES = 5000
"""Commands that are weighed for one judgement; who writes more asks for too much trust."""

_DECODERS = frozenset({"base64", "base32", "xxd", "openssl", "gunzip", "zcat", "uudecode", "rev"})


class Walker:
    """One walk. `depth` says how much deeper scripts may nest."""

    def __init__(self, ground: Ground) -> None:
        self._runner = Runner(ground, self.script, self._call)
        self._functions: dict[str, Stage] = {}
        self._running: list[str] = []
        self._stages = 0

    @property
    def findings(self) -> Findings:
        return self._runner.findings

    def script(self, script: Script, bases: Bases, depth: int, feed: Feed = NOTHING) -> After:
        """A script, from where it starts to where it may end."""
        if depth <= 0:
            self.findings.hide("is nested too deep to be judged")
            return After.staying(bases)
        tainted = self._runner.tainted
        self._runner.tainted |= expand.tainted_in(script)
        after = After.staying(bases)
        for chain in script.chains:
            start = after.either
            after = self._chain(chain, start, depth, feed)
            if chain.background:
                after = After.staying(start)
        self._runner.tainted = tainted
        return after

    def _chain(self, chain: Chain, bases: Bases, depth: int, feed: Feed) -> After:
        after = self._pipeline(chain.first, bases, depth, feed)
        for operator, pipeline in chain.rest:
            if operator == "&&":
                then = self._pipeline(pipeline, after.success, depth, feed)
                after = After(then.success, merged(after.failure, then.failure))
            else:
                then = self._pipeline(pipeline, after.failure, depth, feed)
                after = After(merged(after.success, then.success), then.failure)
        return after

    def _pipeline(self, pipeline: Pipeline, bases: Bases, depth: int, feed: Feed) -> After:
        if len(pipeline.stages) == 1:
            after = self._stage(pipeline.stages[0], bases, depth, feed)
            return After(after.failure, after.success) if pipeline.negated else after
        last = After.staying(bases)
        for stage in pipeline.stages:
            with self._runner.apart() as found:
                last = self._stage(stage, bases, depth, feed)
            doubtful = feed.doubtful or found.uses_network or _decodes(stage)
            feed = Feed(piped=True, doubtful=doubtful)
        # Some shells run the last stage themselves, others a copy of the shell.
        return After.staying(merged(bases, last.either))

    def _stage(self, stage: Stage, bases: Bases, depth: int, feed: Feed) -> After:
        self._stages += 1
        if self._stages > STAGES:
            self.findings.hide("has too many commands to be judged")
            return After.staying(bases)
        match stage:
            case Simple():
                return self._runner.simple(stage, bases, depth, feed)
            case Redirected(inner, redirections):
                feed = self._runner.redirections(redirections, bases, depth, feed)
                return self._stage(inner, bases, depth, feed)
            case Group(body, subshell):
                after = self.script(body, bases, depth - 1, feed)
                return After.staying(bases) if subshell else after
            case Function(name, body):
                self._define(name, body, bases, depth)
            case Check(words, commands):
                self._runner.words(words, bases, depth)
                self._unbracketed(commands, bases, depth)
            case If() | Loop() | Case():
                return After.staying(self._compound(stage, bases, depth, feed))
        return After.staying(bases)

    def _unbracketed(self, commands: Iterable[Simple], bases: Bases, depth: int) -> None:
        """Names in brackets are values, unless a shell does not know the brackets."""
        for command in commands:
            name = command.words[0].literal if command.words else ""
            if name is not None and (not name or is_known(name) or "/" in name):
                self._runner.simple(command, bases, depth, NOTHING)

    def _compound(self, stage: If | Loop | Case, bases: Bases, depth: int, feed: Feed) -> Bases:
        match stage:
            case If():
                return self._if(stage, bases, depth, feed)
            case Loop():
                return self._loop(stage, bases, depth, feed)
            case Case(words, bodies):
                self._runner.words(words, bases, depth)
                ends = [self.script(body, bases, depth - 1, feed).either for body in bodies]
                return merged(bases, *ends)

    def _if(self, stage: If, bases: Bases, depth: int, feed: Feed) -> Bases:
        ends: list[Bases] = []
        for condition, body in stage.branches:
            tried = self.script(condition, bases, depth - 1, feed)
            ends.append(self.script(body, tried.success, depth - 1, feed).either)
            bases = tried.failure
        if stage.otherwise is not None:
            bases = self.script(stage.otherwise, bases, depth - 1, feed).either
        return merged(*ends, bases)

    def _loop(self, loop: Loop, bases: Bases, depth: int, feed: Feed) -> Bases:
        self._runner.words(loop.words, bases, depth)
        end = self._round(loop, bases, depth, feed)
        if set(end) == set(bases):
            return end
        # Where later rounds run cannot be told: each starts where the one before ended.
        return self._round(loop, merged(end, bases, (None,)), depth, feed)

    def _round(self, loop: Loop, bases: Bases, depth: int, feed: Feed) -> Bases:
        start = bases
        if loop.condition is not None:
            bases = self.script(loop.condition, bases, depth - 1, feed).either
        return merged(self.script(loop.body, bases, depth - 1, feed).either, start)

    def _define(self, name: str, body: Stage, bases: Bases, depth: int) -> None:
        if any(one.words and one.words[0].literal == name for one in _commands(body)):
            self.findings.add("high", f"defines a function that calls itself without end: {name}")
        elif is_known(name):
            self.findings.add("high", f"gives a command another meaning: {name}")
        self._functions[name] = body
        # It may never be called; then what it would do where it is written counts.
        self._call(name, bases, depth, NOTHING)

    def _call(self, name: str, bases: Bases, depth: int, feed: Feed) -> After | None:
        """Run a function, if the name is one's."""
        body = self._functions.get(name)
        if body is None:
            return None
        if name in self._running or depth <= 0:
            self.findings.hide(f"calls a function that calls itself: {name}")
            return After.staying(bases)
        self._running.append(name)
        after = self._stage(body, bases, depth - 1, feed)
        self._running.pop()
        return after


def _commands(stage: Stage) -> Iterable[Simple]:
    return Script((Chain(Pipeline((stage,))),)).commands()


def _decodes(stage: Stage) -> bool:
    return any(bool(one.words) and one.words[0].literal in _DECODERS for one in _commands(stage))
