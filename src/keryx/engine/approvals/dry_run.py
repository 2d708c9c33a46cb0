"""Says what would be decided about a call, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from keryx.engine.approvals.judging import Approvals
from keryx.engine.approvals.rule_text import rule_in_words
from keryx.engine.approvals.rules import KeptRule, Rule, Verdict
from keryx.engine.log.state import Settings
from keryx.messages import ApprovalMode, Needs
from keryx.ports.effects import Effects
from keryx.ports.tool import Tool


class DecidingRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that matches the call. Without a `rule_id`, it comes from the configuration."""

    verdict: Verdict
    says: str
    rule_id: str | None = None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What would be decided about a call.

    `covers` lists the patterns that a lasting answer would allow. Null means every call of the
    tool. An empty list means that only this one call can be approved.
    """

    verdict: Verdict
    reason: str
    mode: ApprovalMode
    level: Literal["none", "low", "high"]
    why: str
    needs: Needs
    rules: tuple[DecidingRule, ...]
    covers: tuple[str, ...] | None


class _DryRunCall:
    """A call that is judged and never run."""

    call_id = ""
    arguments = ""
    raw = None
    reason = None
    overlaps: tuple[str, ...] = ()
    parent = None

    def __init__(self, tool: Tool, arguments: dict[str, Any], workspace: Path) -> None:
        self.tool = tool
        self.args = tool.parse(arguments)
        self.workspace = workspace

    @property
    def effects(self) -> Effects:
        return self.tool.effects(self.args)


def try_call(
    approvals: Approvals,
    tool: Tool,
    arguments: dict[str, Any],
    workspace: Path,
    *,
    mode: ApprovalMode | None = None,
    read_only: bool = False,
    rules: Sequence[Rule] = (),
) -> Trial:
    """Judge the call as a session with these settings would. Raises `InvalidArgumentsError`."""
    call = _DryRunCall(tool, arguments, workspace)
    settings = Settings(approvals=mode, read_only=read_only)
    judgement = approvals.judge(call, settings, rules)
    return Trial(
        verdict=judgement.verdict,
        reason=judgement.reason or "no rule and no risk requires approval",
        mode=mode or approvals.mode,
        level=judgement.risk.level,
        why=judgement.risk.why,
        needs=judgement.risk.needs,
        rules=tuple(map(_deciding_rule, judgement.rules)),
        covers=judgement.risk.patterns,
    )


def _deciding_rule(rule: Rule) -> DecidingRule:
    rule_id = rule.rule_id if isinstance(rule, KeptRule) else None
    return DecidingRule(verdict=rule.verdict, says=rule_in_words(rule), rule_id=rule_id)
