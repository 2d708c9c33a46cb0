"""Rules: what people decided about calls, and whether a rule speaks of one."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec

from keryx.messages import NO_NEEDS, Needs
from keryx.ports.tool import ANY_NAME, ANY_TEXT

Verdict = Literal["allow", "ask", "deny"]

_PIECE: Final = re.compile(r"\*+|\?|\[!?\]?[^]]*\]|.", re.DOTALL)
_LITERAL: Final = re.compile(r"\[([*?[])\]|([^*?[])")


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
        if not self._covers_tool(tool, workspace):
            return False
        return self.pattern == "*" or (pattern is not None and fnmatchcase(pattern, self.pattern))

    def may_speak_of(self, tool: str, subject: str, workspace: str) -> bool:
        """Whether it would speak of such a call for some text that a placeholder may stand for."""
        return self._covers_tool(tool, workspace) and may_match(self.pattern, subject)

    def names(self, peril: str) -> bool:
        """Whether the pattern begins with these very words, or holds no wildcard at all."""
        literal, rest = _literal_start(self.pattern)
        return not rest or literal.startswith(peril)

    def _covers_tool(self, tool: str, workspace: str) -> bool:
        if self.workspace is not None and self.workspace != workspace:
            return False
        return fnmatchcase(tool, self.tool)


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


def may_match(pattern: str, subject: str) -> bool:
    """Whether a pattern matches the subject, for some text that stands at its placeholders."""
    if ANY_TEXT not in subject and ANY_NAME not in subject:
        return fnmatchcase(subject, pattern)
    pieces: list[str] = _PIECE.findall(pattern)
    # `ends` holds how many pieces may have matched the subject so far.
    ends = _skip_stars(pieces, {0})
    for character in subject:
        if character == ANY_TEXT:
            ends = set(range(min(ends), len(pieces) + 1)) if ends else ends
        else:
            ends = _skip_stars(pieces, _step(pieces, ends, character))
    return len(pieces) in ends


def _step(pieces: list[str], ends: set[int], character: str) -> set[int]:
    after: set[int] = set()
    for at in ends:
        if at == len(pieces):
            continue
        piece = pieces[at]
        if piece.startswith("*"):
            after.add(at)
        elif piece != "-" if character == ANY_NAME else fnmatchcase(character, piece):
            after.add(at + 1)
    return after


def _skip_stars(pieces: list[str], ends: set[int]) -> set[int]:
    reached = set(ends)
    for at in sorted(ends):
        while at < len(pieces) and pieces[at].startswith("*"):
            at += 1  # noqa: PLW2901 (each end goes on by itself)
            reached.add(at)
    return reached


def _literal_start(pattern: str) -> tuple[str, str]:
    """What stands before the first wildcard, as it is meant; and the rest."""
    text, at = "", 0
    while (literal := _LITERAL.match(pattern, at)) is not None:
        text += literal.group(1) or literal.group(2)
        at = literal.end()
    return text, pattern[at:]
