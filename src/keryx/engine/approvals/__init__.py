"""Whether a call may run: at once, never, or after a person said so."""

from keryx.engine.approvals.dry_run import DecidingRule, Trial, try_call
from keryx.engine.approvals.judging import (
    Approvals,
    Judge,
    Judgement,
    consent_rules,
    covers,
    offers,
)
from keryx.engine.approvals.rule_text import in_words, rule_in_words, unescaped
from keryx.engine.approvals.rules import KeptRule, Rule, Verdict, rule

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
