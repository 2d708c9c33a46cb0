"""Decides whether a call may run: at once, never, or after a person approved it. Pure.

A tool judges the risk of its own arguments (`Risk`). Rules that people made come first, then the
mode. Other modules wait for the answer and log it.
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
from keryx.ports.tool import ANY_TEXT, Risk, aliases_of


class Judgement(msgspec.Struct, frozen=True):
    """The decision about a call, the reason, and what the call is granted if it runs."""

    verdict: Verdict
    risk: Risk
    reason: str = ""
    needs: Needs = NO_NEEDS
    rules: tuple[Rule, ...] = ()
    """The rules that decided; empty if no rule did."""


class Judge(Protocol):
    """Decides on calls. The host uses `Approvals`."""

    @property
    def expires(self) -> float | None:
        """Seconds after which a request expires; None: never."""
        ...

    def judge(self, call: CallView, settings: Settings, rules: Sequence[Rule]) -> Judgement: ...


class Approvals(msgspec.Struct):
    """A host's policy: its rules, and the mode for sessions that set none."""

    mode: ApprovalMode = "auto"
    rules: tuple[Rule, ...] = ()
    expires: float | None = None
    always: list[Rule] = msgspec.field(default_factory=list[Rule])
    """Rules from `always` answers, given in any session."""
    fence: str | None = None
    """The folder that no rule and no answer leads out of; None: there is no such bound."""

    def judge(self, call: CallView, settings: Settings, rules: Sequence[Rule]) -> Judgement:
        """Decide about this call, in a session that has these rules of its own."""
        risk = _risk_of(call)
        subject = CallSubject.of(call, risk)
        rules = (*self.rules, *self.always, *rules)
        if denying_rules := _matching("deny", rules, subject):
            return Judgement("deny", risk, "a rule forbids it", rules=denying_rules)
        if reason := self._reason_to_deny(risk, call.effects, settings):
            return Judgement("deny", risk, reason)
        allowing = _allowing(rules, subject)
        if allowing and risk.needs.within(_granted(allowing)):
            return Judgement("allow", risk, "a rule allows it", risk.needs, allowing)
        mode = settings.approvals or self.mode
        if mode == "never":
            return Judgement("allow", risk, "the mode is `never`: no approval is needed")
        if asking_rules := _matching("ask", rules, subject):
            return Judgement("ask", risk, "a rule asks about it", risk.needs, asking_rules)
        reason = _reason_to_ask(risk, mode, call.effects)
        return Judgement("ask" if reason else "allow", risk, reason, risk.needs)

    def _reason_to_deny(self, risk: Risk, effects: Effects, settings: Settings) -> str:
        """Return why nobody may allow the call; empty if somebody may."""
        if self.fence is not None and not _is_inside(risk.needs, self.fence):
            return f"sessions of this user may not leave {self.fence}"
        if settings.read_only and _may_change(risk, effects):
            return "the session is read-only"
        return ""


class CallSubject(msgspec.Struct, frozen=True):
    """What rules are matched with: the tool of a call, its patterns, and its workspace."""

    tool: str
    patterns: tuple[str, ...] | None
    """None: only the tool is known."""
    workspace: str
    subjects: tuple[str, ...] = ()
    peril: str | None = None
    """What a rule must name to allow the call; None: nothing special."""
    aliases: tuple[str, ...] = ()
    """Other names of the tool: a rule may use any of them."""

    @classmethod
    def of(cls, call: CallView, risk: Risk) -> Self:
        return cls(
            call.tool.name,
            risk.patterns or None,
            str(call.workspace),
            risk.subjects,
            risk.peril if risk.level == "high" else None,
            aliases_of(call.tool),
        )

    @property
    def names(self) -> tuple[str, ...]:
        return (self.tool, *self.aliases)

    @property
    def patterns_or_none(self) -> tuple[str | None, ...]:
        return self.patterns or (None,)


def covers(rules: Sequence[Rule], request: ApprovalAsked) -> bool:
    """Return whether these rules allow everything that the request asks for."""
    allowing = _allowing(rules, CallSubject(request.tool, request.patterns, request.workspace))
    return bool(allowing) and request.needs.within(_granted(allowing))


def consent_rules(request: ApprovalAsked, reach: Reach | None) -> tuple[Rule, ...]:
    """Return the rules that lasting consent creates. `UserMustActError` if it was not offered."""
    if not request.offers:
        # An older version asked, or only this one call can be approved.
        patterns = ("*",) if request.patterns is None else tuple(map(glob.escape, request.patterns))
        offer = Offer("exact", "", patterns)
    elif reach is None:
        offer = request.offers[0]
    else:
        offer = next((offer for offer in request.offers if offer.reach == reach), None)
        if offer is None:
            reaches = ", ".join(offer.reach for offer in request.offers)
            raise UserMustActError(
                f"consent to this call cannot reach {reach!r}; choose one of: {reaches}"
            )
    return tuple(
        Rule("allow", glob.escape(request.tool), pattern, _share(pattern, request), offer.workspace)
        for pattern in offer.patterns
    )


def _share(pattern: str, request: ApprovalAsked) -> Needs:
    """Return what the rule for one pattern grants. A path that is a pattern has its own rule."""
    others = {path for path in request.patterns or () if glob.escape(path) != pattern}
    return Needs(
        request.needs.network,
        tuple(path for path in request.needs.reads if path not in others),
        tuple(path for path in request.needs.writes if path not in others),
    )


def offers(call: CallView, risk: Risk) -> tuple[Offer, ...]:
    """Return what lasting consent can cover, the narrowest first; empty if nothing can.

    A tool that gives no patterns is allowed as a whole, in this folder or everywhere.
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


def _matching(verdict: Verdict, rules: Iterable[Rule], subject: CallSubject) -> tuple[Rule, ...]:
    """Return the rules with this verdict that match some part of the call."""
    return tuple(rule for rule in rules if rule.verdict == verdict and _matches(rule, subject))


def _matches(rule: Rule, subject: CallSubject) -> bool:
    return any(
        any(rule.matches(name, pattern, subject.workspace) for pattern in subject.patterns_or_none)
        or any(rule.could_match(name, text, subject.workspace) for text in subject.subjects)
        for name in subject.names
    )


def _allowing(rules: Sequence[Rule], subject: CallSubject) -> tuple[Rule, ...]:
    """Return the rules that allow the call; empty if some part of it is not allowed."""
    allowing: dict[Rule, None] = {}
    for pattern in subject.patterns_or_none:
        matching = [
            rule
            for rule in rules
            if rule.verdict == "allow"
            and any(rule.matches(name, pattern, subject.workspace) for name in subject.names)
            and (subject.peril is None or rule.names(subject.peril))
        ]
        if not matching:
            return ()
        allowing.update(dict.fromkeys(matching))
    return tuple(allowing)


def _granted(rules: Iterable[Rule]) -> Needs:
    needs = NO_NEEDS
    for rule in rules:
        needs |= rule.needs
    return needs


def _reason_to_ask(risk: Risk, mode: ApprovalMode, effects: Effects) -> str:
    """Return why a person must approve the call; empty if nobody has to."""
    if risk.level == "high":
        return "its risk is high"
    if risk.needs:
        return "it needs more access than the confinement gives"
    if mode == "ask" and _may_matter(risk, effects):
        return "the mode is `ask`, and it may change something"
    return ""


def _is_inside(needs: Needs, folder: str) -> bool:
    """Return whether all paths of these needs are in the folder; the network is another matter."""
    return needs.within(Needs(network=True, writes=(folder,)))


def _risk_of(call: CallView) -> Risk:
    try:
        return call.tool.risk(call.args, call.workspace)
    except Exception as error:  # noqa: BLE001 (a tool's own code; if it fails, a person decides)
        why = f"its risk is unknown: the tool failed to judge it ({error!r})"
        return Risk("high", why, subjects=(ANY_TEXT,))


def _may_matter(risk: Risk, effects: Effects) -> bool:
    return risk.level != "none" or _may_change(risk, effects)


def _may_change(risk: Risk, effects: Effects) -> bool:
    if risk.changes is not None:
        return risk.changes
    return effects.exclusive or any(access.writes for access in effects.accesses)
