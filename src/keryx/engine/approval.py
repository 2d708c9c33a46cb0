"""Whether a call may run: at once, never, or after a person said so. Pure.

A tool judges its own arguments (`Risk`); rules that people made come first, then the mode.
Waiting for the answer, and logging it, is not done here.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Literal, Protocol

import msgspec

from keryx.engine.calls.witness import CallView
from keryx.engine.log.state import Settings
from keryx.messages import NO_NEEDS, ApprovalMode, Needs
from keryx.ports.effects import Effects
from keryx.ports.tool import Risk

Verdict = Literal["allow", "ask", "deny"]


class Rule(msgspec.Struct, frozen=True):
    """What people decided about calls like this one. Names may hold * and ?."""

    verdict: Verdict
    tool: str
    pattern: str = "*"
    needs: Needs = NO_NEEDS
    """What it grants beyond the session's confinement."""

    def speaks_of(self, tool: str, pattern: str | None) -> bool:
        """Whether it speaks of such calls. None: of the tool as a whole."""
        if not fnmatchcase(tool, self.tool):
            return False
        return self.pattern == "*" or (pattern is not None and fnmatchcase(pattern, self.pattern))


def rule(verdict: Verdict, written: str) -> Rule:
    """A rule as people write it: `tool`, or `tool:pattern`."""
    tool, _, pattern = written.partition(":")
    return Rule(verdict, tool.strip(), pattern.strip() or "*")


class Judgement(msgspec.Struct, frozen=True):
    """What is to be done with a call, why, and what it is granted if it runs."""

    verdict: Verdict
    risk: Risk
    reason: str = ""
    needs: Needs = NO_NEEDS


class Judge(Protocol):
    """Decides on calls; the host's own is `Approvals`."""

    @property
    def expires(self) -> float | None:
        """Seconds after which nobody may answer any more."""
        ...

    def judge(self, call: CallView, settings: Settings, rules: Sequence[Rule]) -> Judgement: ...


class Approvals(msgspec.Struct):
    """A host's policy: its rules, and the mode of sessions that have none of their own."""

    mode: ApprovalMode = "auto"
    rules: tuple[Rule, ...] = ()
    expires: float | None = None
    always: list[Rule] = msgspec.field(default_factory=list[Rule])
    """What people answered with `always`, in any session."""

    def judge(self, call: CallView, settings: Settings, rules: Sequence[Rule]) -> Judgement:
        """What is to be done with this call, in a session with these rules of its own."""
        risk, tool = _risk_of(call), call.tool.name
        known = (*self.rules, *self.always, *rules)
        if _speaking("deny", known, tool, risk):
            return Judgement("deny", risk, "a rule forbids it")
        if settings.read_only and _changes(risk, call.effects):
            return Judgement("deny", risk, "the session is read-only")
        granted = _granted(known, tool, risk)
        if granted is not None and risk.needs.within(granted):
            return Judgement("allow", risk, needs=risk.needs)
        mode = settings.approvals or self.mode
        if mode == "never":
            return Judgement("allow", risk)
        asks = _speaking("ask", known, tool, risk) or bool(risk.needs) or risk.level == "high"
        asks = asks or (mode == "ask" and _matters(risk, call.effects))
        return Judgement("ask" if asks else "allow", risk, needs=risk.needs)


def covers(given: tuple[str, ...] | None, wanted: tuple[str, ...] | None) -> bool:
    """Whether consent to the first is consent to the second, of the same tool."""
    if given is None or wanted is None:
        return given is None
    return bool(wanted) and set(wanted) <= set(given)


def consent_rules(tool: str, patterns: tuple[str, ...] | None, needs: Needs) -> tuple[Rule, ...]:
    """The rules that lasting consent to such a call makes. What it was, it was literally."""
    if patterns is None:
        return (Rule("allow", glob.escape(tool), "*", needs),)
    return tuple(Rule("allow", glob.escape(tool), glob.escape(each), needs) for each in patterns)


def _patterns(risk: Risk) -> tuple[str | None, ...]:
    return (None,) if not risk.patterns else risk.patterns


def _speaking(verdict: Verdict, rules: Iterable[Rule], tool: str, risk: Risk) -> bool:
    return any(
        each.verdict == verdict and any(each.speaks_of(tool, one) for one in _patterns(risk))
        for each in rules
    )


def _granted(rules: Sequence[Rule], tool: str, risk: Risk) -> Needs | None:
    """What the rules that allow the call grant; None if some part of it is not allowed."""
    found = NO_NEEDS
    for pattern in _patterns(risk):
        allowing = [each for each in rules if each.verdict == "allow"]
        allowing = [each for each in allowing if each.speaks_of(tool, pattern)]
        if not allowing:
            return None
        for each in allowing:
            found |= each.needs
    return found


def _risk_of(call: CallView) -> Risk:
    try:
        return call.tool.risk(call.args, call.workspace)
    except Exception as error:  # noqa: BLE001 (a tool's own judgement; without one a person decides)
        return Risk("high", f"nobody can tell: its own judgement failed ({error!r})")


def _matters(risk: Risk, effects: Effects) -> bool:
    return risk.level != "none" or _changes(risk, effects)


def _changes(risk: Risk, effects: Effects) -> bool:
    if risk.changes is not None:
        return risk.changes
    return effects.exclusive or any(access.writes for access in effects.accesses)
