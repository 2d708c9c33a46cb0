"""Whether a call may run: at once, never, or after a person said so. Pure.

A tool judges its own arguments (`Risk`); rules that people made come first, then the mode.
Waiting for the answer, and logging it, is not done here.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from typing import Protocol, Self

import msgspec

from keryx.engine.approvals.rule_text import in_words
from keryx.engine.approvals.rules import Rule, Verdict
from keryx.engine.calls.call_hooks import CallView
from keryx.engine.log.state import Settings
from keryx.errors import UserMustActError
from keryx.events import ApprovalAsked, Offer
from keryx.messages import NO_NEEDS, ApprovalMode, Needs, Reach
from keryx.ports.effects import Effects
from keryx.ports.tool import ANY_TEXT, Risk


class Judgement(msgspec.Struct, frozen=True):
    """What is to be done with a call, why, and what it is granted if it runs."""

    verdict: Verdict
    risk: Risk
    reason: str = ""
    needs: Needs = NO_NEEDS
    rules: tuple[Rule, ...] = ()
    """The rules that decided; empty: none did."""


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
        about = About.of(call, risk)
        rules = (*self.rules, *self.always, *rules)
        if denying := _speaking("deny", rules, about):
            return Judgement("deny", risk, "a rule forbids it", rules=denying)
        if settings.read_only and _changes(risk, call.effects):
            return Judgement("deny", risk, "the session is read-only")
        allowing = _allowing(rules, about)
        if allowing and risk.needs.within(_granted(allowing)):
            return Judgement("allow", risk, "a rule allows it", risk.needs, allowing)
        mode = settings.approvals or self.mode
        if mode == "never":
            return Judgement("allow", risk, "the mode is `never`: nobody is asked")
        if asking := _speaking("ask", rules, about):
            return Judgement("ask", risk, "a rule asks about it", risk.needs, asking)
        reason = _reason_to_ask(risk, mode, call.effects)
        return Judgement("ask" if reason else "allow", risk, reason, risk.needs)


class About(msgspec.Struct, frozen=True):
    """What rules are asked about: a call by its tool, by what of the tool it is, and where."""

    tool: str
    patterns: tuple[str, ...] | None
    """None: nothing is said but the tool."""
    workspace: str
    subjects: tuple[str, ...] = ()
    peril: str | None = None
    """What a rule must name to allow it; None: nothing."""

    @classmethod
    def of(cls, call: CallView, risk: Risk) -> Self:
        return cls(
            call.tool.name,
            risk.patterns or None,
            str(call.workspace),
            risk.subjects,
            risk.peril if risk.level == "high" else None,
        )

    @property
    def parts(self) -> tuple[str | None, ...]:
        return self.patterns or (None,)


def covers(rules: Sequence[Rule], asked: ApprovalAsked) -> bool:
    """Whether these rules allow what is asked, all of it."""
    allowing = _allowing(rules, About(asked.tool, asked.patterns, asked.workspace))
    return bool(allowing) and asked.needs.within(_granted(allowing))


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


def _speaking(verdict: Verdict, rules: Iterable[Rule], about: About) -> tuple[Rule, ...]:
    """The rules of that kind that speak of some part of the call."""
    return tuple(rule for rule in rules if rule.verdict == verdict and _speaks(rule, about))


def _speaks(rule: Rule, about: About) -> bool:
    return any(rule.speaks_of(about.tool, part, about.workspace) for part in about.parts) or any(
        rule.may_speak_of(about.tool, subject, about.workspace) for subject in about.subjects
    )


def _allowing(rules: Sequence[Rule], about: About) -> tuple[Rule, ...]:
    """The rules that allow the call; none if some part of it is not allowed."""
    every: dict[Rule, None] = {}
    for part in about.parts:
        allowing = [
            rule
            for rule in rules
            if rule.verdict == "allow"
            and rule.speaks_of(about.tool, part, about.workspace)
            and (about.peril is None or rule.names(about.peril))
        ]
        if not allowing:
            return ()
        every.update(dict.fromkeys(allowing))
    return tuple(every)


def _granted(rules: Iterable[Rule]) -> Needs:
    granted = NO_NEEDS
    for rule in rules:
        granted |= rule.needs
    return granted


def _reason_to_ask(risk: Risk, mode: ApprovalMode, effects: Effects) -> str:
    """Why a person is asked; empty if nobody is."""
    if risk.level == "high":
        return "its risk is high"
    if risk.needs:
        return "it needs more than the confinement gives"
    if mode == "ask" and _matters(risk, effects):
        return "the mode is `ask`, and it may change something"
    return ""


def _risk_of(call: CallView) -> Risk:
    try:
        return call.tool.risk(call.args, call.workspace)
    except Exception as error:  # noqa: BLE001 (a tool's own judgement; without one a person decides)
        why = f"nobody can tell: its own judgement failed ({error!r})"
        return Risk("high", why, subjects=(ANY_TEXT,))


def _matters(risk: Risk, effects: Effects) -> bool:
    return risk.level != "none" or _changes(risk, effects)


def _changes(risk: Risk, effects: Effects) -> bool:
    if risk.changes is not None:
        return risk.changes
    return effects.exclusive or any(access.writes for access in effects.accesses)
