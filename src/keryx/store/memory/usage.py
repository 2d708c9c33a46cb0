"""Sums up what the sessions of a store in memory used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from keryx.ports.usage import Spent, ToolUse, TurnCount, UsageCell, UsageRow
from keryx.store.memory.tables import Session, ancestry
from keryx.store.table_changes import QUARTER, ToolEntry, TurnEntry, UsageEntry

Entry = TypeVar("Entry", UsageEntry, ToolEntry, TurnEntry)


class MemoryUsage:
    """The sums of a store in memory."""

    _sessions: dict[str, Session]
    _deleted_usage: list[UsageEntry]
    _check_open: Callable[[], None]

    async def usage(
        self, session_id: str | None = None, *, since: float | None = None
    ) -> list[UsageRow]:
        self._check_open()
        return [
            _usage_row(id_, model, list(entries))
            for id_, session in self._family(session_id)
            for model, entries in groupby(
                sorted(_within(session.usage, since, None), key=lambda entry: entry.model),
                key=lambda entry: entry.model,
            )
        ]

    async def usage_cells(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> list[UsageCell]:
        self._check_open()
        entries = [(id_, session.usage) for id_, session in self._family(session_id)]
        if session_id is None:
            entries = [("", self._deleted_usage), *entries]
        return [
            cell
            for id_, usage in entries
            for cell in _usage_cells(id_, _within(usage, since, until))
        ]

    async def tool_use(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> list[ToolUse]:
        self._check_open()
        return [
            cell
            for id_, session in self._family(session_id)
            for cell in _tool_cells(id_, _within(session.tools, since, until))
        ]

    async def turn_counts(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> list[TurnCount]:
        self._check_open()
        return [
            cell
            for id_, session in self._family(session_id)
            for cell in _turn_counts(id_, _within(session.turns, since, until))
        ]

    async def spent(
        self,
        session_id: str | None = None,
        *,
        since: float | None = None,
        logs: Sequence[str] = (),
    ) -> Spent:
        cells = await self.usage_cells(session_id, since=since)
        sessions = {log: self._sessions[log] for log in logs if log in self._sessions}
        return Spent(
            cost=sum(cell.cost for cell in cells),
            tokens=sum(cell.input_tokens + cell.output_tokens for cell in cells),
            unpriced=sum(cell.unpriced for cell in cells),
            logs={log: len(session.log) for log, session in sessions.items()},
        )

    def _family(self, session_id: str | None) -> Iterator[tuple[str, Session]]:
        """Yield a session and its child agents, or all sessions."""
        for id_, session in self._sessions.items():
            if session_id is None or session_id in ancestry(self._sessions, id_):
                yield id_, session


def _within(entries: list[Entry], since: float | None, until: float | None) -> list[Entry]:
    first = 0 if since is None else int(since // QUARTER)
    return [
        entry
        for entry in entries
        if entry.quarter >= first and (until is None or entry.quarter < -int(-until // QUARTER))
    ]


def _usage_row(session_id: str, model: str, entries: list[UsageEntry]) -> UsageRow:
    costs = [entry.cost for entry in entries if entry.cost is not None]
    return UsageRow(
        session_id=session_id,
        model=model,
        input_tokens=sum(entry.usage.input_tokens for entry in entries),
        output_tokens=sum(entry.usage.output_tokens for entry in entries),
        cached_tokens=sum(entry.usage.cached_tokens for entry in entries),
        reasoning_tokens=sum(entry.usage.reasoning_tokens for entry in entries),
        cost=sum(costs) if len(costs) == len(entries) else None,
    )


def _usage_cells(session_id: str, entries: list[UsageEntry]) -> Iterator[UsageCell]:
    def key(entry: UsageEntry) -> tuple[str, str, int]:
        return entry.model, entry.purpose, entry.quarter

    for (model, purpose, quarter), group in groupby(sorted(entries, key=key), key=key):
        cell = list(group)
        yield UsageCell(
            session_id=session_id,
            model=model,
            purpose=purpose,
            at=float(quarter * QUARTER),
            requests=len(cell),
            input_tokens=sum(entry.usage.input_tokens for entry in cell),
            output_tokens=sum(entry.usage.output_tokens for entry in cell),
            cached_tokens=sum(entry.usage.cached_tokens for entry in cell),
            reasoning_tokens=sum(entry.usage.reasoning_tokens for entry in cell),
            cost=sum(entry.cost or 0.0 for entry in cell),
            unpriced=sum(entry.cost is None for entry in cell),
            timed=sum(entry.first_token is not None for entry in cell),
            first_seconds=sum(entry.first_token or 0.0 for entry in cell),
        )


def _tool_cells(session_id: str, entries: list[ToolEntry]) -> Iterator[ToolUse]:
    def key(entry: ToolEntry) -> tuple[str, int]:
        return entry.tool, entry.quarter

    for (tool, quarter), group in groupby(sorted(entries, key=key), key=key):
        calls = list(group)
        yield ToolUse(
            session_id=session_id,
            tool=tool,
            at=float(quarter * QUARTER),
            calls=len(calls),
            failed=sum(call.failed for call in calls),
            seconds=sum(call.seconds for call in calls),
        )


def _turn_counts(session_id: str, entries: list[TurnEntry]) -> Iterator[TurnCount]:
    ordered = sorted(entries, key=lambda entry: entry.quarter)
    for quarter, group in groupby(ordered, key=lambda entry: entry.quarter):
        turns = list(group)
        failed = sum(turn.failed for turn in turns)
        at = float(quarter * QUARTER)
        yield TurnCount(session_id=session_id, at=at, turns=len(turns), failed=failed)
