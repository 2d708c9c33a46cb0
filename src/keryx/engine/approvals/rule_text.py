"""Describes rules for people."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from typing import Final

from keryx.engine.approvals.rules import Rule
from keryx.messages import NO_NEEDS, Needs

MOST_NAMED: Final = 5
"""How many patterns are named one by one."""


def in_words(
    tool: str, patterns: Sequence[str], workspace: str | None, needs: Needs = NO_NEEDS
) -> str:
    """Describe what a rule covers: the tool, which calls, in which folder, and what it grants."""
    calls = [_pattern_in_words(pattern, workspace) for pattern in patterns[:MOST_NAMED]]
    if len(patterns) > MOST_NAMED:
        calls.append(f"{len(patterns) - MOST_NAMED} more")
    scope = "in every folder" if workspace is None else f"in sessions that work in {workspace}"
    grants = [
        *(["may use the network"] if needs.network else []),
        *(f"may read {path}" for path in needs.reads),
        *(f"may write {path}" for path in needs.writes),
    ]
    return ", ".join([f"{unescaped(tool)}: {' and '.join(calls)}", scope, *grants])


def rule_in_words(rule: Rule) -> str:
    return in_words(rule.tool, (rule.pattern,), rule.workspace, rule.needs)


def _pattern_in_words(pattern: str, workspace: str | None) -> str:
    if pattern == "*":
        return "every call"
    literal = unescaped(pattern)
    if glob.escape(literal) == pattern:
        # A file in the workspace is named relative to it: the text names the workspace anyway.
        return literal if workspace is None else literal.removeprefix(f"{workspace}/")
    folder = pattern.removesuffix("/*")
    if folder != pattern and glob.escape(unescaped(folder)) == folder:
        return f"everything in {unescaped(folder) or '/'}"
    return f"what matches {pattern}"


def unescaped(pattern: str) -> str:
    """Undo `glob.escape`."""
    return re.sub(r"\[([*?[])\]", r"\1", pattern)
