"""Whether a call may run: at once, never, or after a person said so."""

from keryx.engine.approval.judging import (
    Approvals,
    Judge,
    Judgement,
    consent_rules,
    covers,
    offers,
)
from keryx.engine.approval.rules import KeptRule, Rule, Verdict, rule
from keryx.engine.approval.trial import DecidingRule, Trial, try_call
from keryx.engine.approval.words import in_words, rule_in_words, unescaped

__all__ = [
    "Approvals",
    "DecidingRule",
    "Judge",
    "Judgement",
    "KeptRule",
    "Rule",
    "Trial",
    "Verdict",
    "consent_rules",
    "covers",
    "in_words",
    "offers",
    "rule",
    "rule_in_words",
    "try_call",
    "unescaped",
]
