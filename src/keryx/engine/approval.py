"""Whether a call may run: at once, never, or after a person said so. Pure.

A tool judges its own arguments (`Risk`); rules that people made come first, then the mode.
Waiting for the answer, and logging it, is not done here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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

    def matches(self, tool: str, risk: Risk) -> bool:
        """Whether it speaks of this call. One with a pattern says nothing of a call without."""
        if not fnmatchcase(tool, self.tool):
            return False
        return self.pattern == "*" or bool(risk.pattern and fnmatchcase(risk.pattern, self.pattern))


def rule(verdict: Verdict, written: str) -> Rule:
    """A rule as people write it: `tool`, or `tool:pattern`."""
    tool, _, pattern = written.partition(":")
    return Rule(verdict, tool.strip(), pattern.strip() or "*")


@dataclass(frozen=True, slots=True)
class Judgement:
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


@dataclass(slots=True)
class Approvals:
    """A host's policy: its rules, and the mode of sessions that have none of their own."""

    mode: ApprovalMode = "auto"
    rules: tuple[Rule, ...] = ()
    expires: float | None = None
    always: list[Rule] = field(default_factory=list[Rule])
    """What people answered with `always`, in any session."""

    def judge(self, call: CallView, settings: Settings, rules: Sequence[Rule]) -> Judgement:
        """What is to be done with this call, in a session with these rules of its own."""
        risk = _risk_of(call)
        known = [
            each
            for each in (*self.rules, *self.always, *rules)
            if each.matches(call.tool.name, risk)
        ]
        if any(each.verdict == "deny" for each in known):
            return Judgement("deny", risk, "a rule forbids it")
        if settings.read_only and _changes(call.effects):
            return Judgement("deny", risk, "the session is read-only")
        granted = _granted(known)
        if granted is not None and risk.needs.within(granted):
            return Judgement("allow", risk, needs=risk.needs)
        mode = settings.approvals or self.mode
        if mode == "never":
            return Judgement("allow", risk)
        asks = any(each.verdict == "ask" for each in known) or bool(risk.needs)
        asks = asks or risk.level == "high" or (mode == "ask" and _matters(risk, call.effects))
        return Judgement("ask" if asks else "allow", risk, needs=risk.needs)


def _granted(rules: Iterable[Rule]) -> Needs | None:
    """All that the rules which allow the call grant; None if none of them allows it."""
    found: Needs | None = None
    for each in rules:
        if each.verdict == "allow":
            found = each.needs if found is None else found | each.needs
    return found


def _risk_of(call: CallView) -> Risk:
    try:
        return call.tool.risk(call.args, call.workspace)
    except Exception as error:  # noqa: BLE001 (a tool's own judgement; without one a person decides)
        return Risk("high", f"nobody can tell: its own judgement failed ({error!r})")


def _matters(risk: Risk, effects: Effects) -> bool:
    return risk.level != "none" or _changes(effects)


def _changes(effects: Effects) -> bool:
    return effects.exclusive or any(access.writes for access in effects.accesses)
