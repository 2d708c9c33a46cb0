"""Whether a call may run: at once, never, or after a person said so. Pure.

A tool judges its own arguments (`Risk`); rules that people made come first, then the mode.
Waiting for the answer, and logging it, is not done here.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal, Protocol

import msgspec

from keryx.engine.calls.witness import CallView
from keryx.engine.log.state import Settings
from keryx.errors import UserMustActError
from keryx.events import ApprovalAsked, Offer
from keryx.messages import NO_NEEDS, ApprovalMode, Needs, Reach
from keryx.ports.effects import Effects
from keryx.ports.tool import Risk

Verdict = Literal["allow", "ask", "deny"]
MOST_NAMED: Final = 5
"""Patterns that words name one by one."""


class Rule(msgspec.Struct, frozen=True):
    """What people decided about calls like this one. Names may hold * and ?."""

    verdict: Verdict
    tool: str
    pattern: str = "*"
    needs: Needs = NO_NEEDS
    """What it grants beyond the session's confinement."""
    workspace: str | None = None
    """The folder that a session must work in; None: any."""

    def speaks_of(self, tool: str, pattern: str | None, workspace: str = "") -> bool:
        """Whether it speaks of such calls. No pattern: of the tool as a whole."""
        if not fnmatchcase(tool, self.tool):
            return False
        if self.workspace is not None and self.workspace != workspace:
            return False
        return self.pattern == "*" or (pattern is not None and fnmatchcase(pattern, self.pattern))


class KeptRule(Rule, frozen=True, kw_only=True):
    """A rule that an answer with `always` made, as it is recorded. Older ones say less."""

    rule_id: str = ""
    made_at: float | None = None
    by: str = ""
    session_id: str = ""


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
        risk = _risk_of(call)
        about = About(call.tool.name, risk.patterns or None, str(call.workspace))
        rules = (*self.rules, *self.always, *rules)
        if _speaking("deny", rules, about):
            return Judgement("deny", risk, "a rule forbids it")
        if settings.read_only and _changes(risk, call.effects):
            return Judgement("deny", risk, "the session is read-only")
        granted = _granted(rules, about)
        if granted is not None and risk.needs.within(granted):
            return Judgement("allow", risk, needs=risk.needs)
        mode = settings.approvals or self.mode
        if mode == "never":
            return Judgement("allow", risk)
        asks = _speaking("ask", rules, about) or bool(risk.needs) or risk.level == "high"
        asks = asks or (mode == "ask" and _matters(risk, call.effects))
        return Judgement("ask" if asks else "allow", risk, needs=risk.needs)


class About(msgspec.Struct, frozen=True):
    """What rules are asked about: a call by its tool, by what of the tool it is, and where."""

    tool: str
    patterns: tuple[str, ...] | None
    """None: nothing is said but the tool."""
    workspace: str

    @property
    def parts(self) -> tuple[str | None, ...]:
        return self.patterns or (None,)


def covers(rules: Sequence[Rule], asked: ApprovalAsked) -> bool:
    """Whether these rules allow what is asked, all of it."""
    granted = _granted(rules, About(asked.tool, asked.patterns, asked.workspace))
    return granted is not None and asked.needs.within(granted)


def consent_rules(asked: ApprovalAsked, reach: Reach | None) -> tuple[Rule, ...]:
    """The rules that lasting consent makes; `UserMustActError` if it was not offered so far."""
    if not asked.offers:
        # Asked by an older version, or about a call like no other.
        patterns = ("*",) if asked.patterns is None else tuple(map(glob.escape, asked.patterns))
        offer = Offer("exact", "", patterns)
    elif reach is None:
        offer = asked.offers[0]
    else:
        offer = next((offer for offer in asked.offers if offer.reach == reach), None)
        if offer is None:
            reaches = ", ".join(offer.reach for offer in asked.offers)
            raise UserMustActError(
                f"consent to this call cannot reach {reach!r}; choose one of: {reaches}"
            )
    return tuple(
        Rule("allow", glob.escape(asked.tool), pattern, _share(pattern, asked), offer.workspace)
        for pattern in offer.patterns
    )


def _share(pattern: str, asked: ApprovalAsked) -> Needs:
    """What the rule for one pattern grants: a path that is a pattern itself has its own rule."""
    others = {path for path in asked.patterns or () if glob.escape(path) != pattern}
    return Needs(
        asked.needs.network,
        tuple(path for path in asked.needs.reads if path not in others),
        tuple(path for path in asked.needs.writes if path not in others),
    )


def offers(call: CallView, risk: Risk) -> tuple[Offer, ...]:
    """What consent that lasts can cover, the narrowest first; nothing if the call is like no other.

    A tool that says nothing of its calls is allowed as a whole, here or everywhere.
    """
    if risk.patterns == ():
        return ()
    tool, here = call.tool.name, str(call.workspace)
    reaches: list[tuple[Reach, tuple[str, ...], str | None]]
    if risk.patterns is None:
        reaches = [("folder", ("*",), here), ("everywhere", ("*",), None)]
    else:
        exact = tuple(map(glob.escape, risk.patterns))
        reaches = [("exact", exact, here), ("everywhere", exact, None)]
        if risk.folder is not None:
            below = glob.escape(risk.folder.rstrip("/")) + "/*"
            reaches[1:] = [("folder", (below,), here), ("everywhere", ("*",), None)]
    return tuple(
        Offer(reach, in_words(tool, patterns, workspace, risk.needs), patterns, workspace)
        for reach, patterns, workspace in reaches
    )


# -- in words


def in_words(
    tool: str, patterns: Sequence[str], workspace: str | None, needs: Needs = NO_NEEDS
) -> str:
    """What such a rule covers, for people: the tool, what of it, where, and what it grants."""
    what = [_pattern_in_words(pattern, workspace) for pattern in patterns[:MOST_NAMED]]
    if len(patterns) > MOST_NAMED:
        what.append(f"{len(patterns) - MOST_NAMED} more")
    where = "in every folder" if workspace is None else f"in sessions that work in {workspace}"
    grants = [
        *(["may use the network"] if needs.network else []),
        *(f"may read {path}" for path in needs.reads),
        *(f"may write {path}" for path in needs.writes),
    ]
    return ", ".join([f"{unescaped(tool)}: {' and '.join(what)}", where, *grants])


def rule_in_words(rule: Rule) -> str:
    return in_words(rule.tool, (rule.pattern,), rule.workspace, rule.needs)


def _pattern_in_words(pattern: str, workspace: str | None) -> str:
    if pattern == "*":
        return "every call"
    literal = unescaped(pattern)
    if glob.escape(literal) == pattern:
        # A file of the folder that is named anyway.
        return literal if workspace is None else literal.removeprefix(f"{workspace}/")
    folder = pattern.removesuffix("/*")
    if folder != pattern and glob.escape(unescaped(folder)) == folder:
        return f"everything in {unescaped(folder) or '/'}"
    return f"what matches {pattern}"


def unescaped(pattern: str) -> str:
    """What `glob.escape` made a pattern of."""
    return re.sub(r"\[([*?[])\]", r"\1", pattern)


def _speaking(verdict: Verdict, rules: Iterable[Rule], about: About) -> bool:
    return any(
        rule.verdict == verdict
        and any(rule.speaks_of(about.tool, part, about.workspace) for part in about.parts)
        for rule in rules
    )


def _granted(rules: Sequence[Rule], about: About) -> Needs | None:
    """What the rules that allow the call grant; None if some part of it is not allowed."""
    granted = NO_NEEDS
    for part in about.parts:
        allowing = [
            rule
            for rule in rules
            if rule.verdict == "allow" and rule.speaks_of(about.tool, part, about.workspace)
        ]
        if not allowing:
            return None
        for rule in allowing:
            granted |= rule.needs
    return granted


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
