"""The part of a store that sums up what was used: tokens, money, turns, and calls of tools.

The sums are projections of the logs. Only what a deleted session used is kept without its log,
and without its name: money that was spent stays spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

STEPS: Final = "turn"
"""The purpose of the requests of turns; all others are those of `usage.recorded`."""


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of one session with one model; an unknown cost is None, never 0."""

    session_id: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost: float | None


class UsageCell(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of one session with one model for one purpose in a quarter of an hour."""

    session_id: str
    """Empty: of sessions that were deleted."""
    model: str
    purpose: str
    at: float
    """When the quarter of an hour began."""
    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost: float
    """US dollars, as far as they are known."""
    unpriced: int
    """The number of requests whose cost is unknown."""
    timed: int
    """The number of requests whose time to the first token is known."""
    first_seconds: float
    """The sum of these times."""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of one tool in one session that ended in a quarter of an hour.

    Calls that a script makes are part of the script's call.
    """

    session_id: str
    tool: str
    at: float
    calls: int
    failed: int
    """Those that did not end as `completed`."""
    seconds: float


class TurnCount(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of one session that ended in a quarter of an hour."""

    session_id: str
    at: float
    turns: int
    """Those that had started, whatever became of them."""
    failed: int
    """Those that ended as `failed` or `parked`."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """A sum of what was used. `logs` says how far it reaches: the last fact of some sessions."""

    cost: float
    """US dollars, as far as they are known."""
    tokens: int
    """Input and output."""
    unpriced: int
    """The number of requests whose cost is unknown."""
    logs: Mapping[str, int]


class UsageSums(Protocol):
    """Sums up what the sessions of a store used."""

    async def usage(
        self, session_id: str | None = None, *, since: float | None = None
    ) -> list[UsageRow]:
        """Return the usage, of all time or `since` then, in whole quarters of an hour.

        The usage of one session includes that of its child agents, in rows of their own.
        """
        ...

    async def usage_cells(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> list[UsageCell]:
        """Return the usage in its smallest parts: from `since`, and before `until`."""
        ...

    async def tool_use(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> list[ToolUse]:
        """Return the calls of tools in their smallest parts: from `since`, and before `until`."""
        ...

    async def turn_counts(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> list[TurnCount]:
        """Return the turns in their smallest parts: from `since`, and before `until`."""
        ...

    async def spent(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        logs: Sequence[str] = (),
    ) -> Spent:
        """Return the sum of a session and its child agents, or of all sessions.

        In the same moment it reads how far the logs of the sessions `logs` reach. Deleted sessions
        count in the sum of all sessions.
        """
        ...
