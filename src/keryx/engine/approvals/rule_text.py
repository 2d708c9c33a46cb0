"""What rules cover, in words for people."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from typing import Final

from keryx.engine.approvals.rules import Rule
from keryx.messages import NO_NEEDS, Needs

MOST_NAMED: Final = 5
"""Patterns that words name one by one."""


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
