"""The spending of a host: what its sessions spent, and whether a session may ask a model again.

The sums of a session and of a day are read from the store, so they include all processes of the
home and survive a restart. What this host has recorded and the store does not hold yet is added
from memory: a reply counts from the moment when it is recorded. So parallel sessions can pass a
limit only with requests that were under way when it was reached.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime, time
from typing import Final

import msgspec

from keryx import events as ev
from keryx.aio.clock import Clock
from keryx.engine.limits import Limits
from keryx.engine.log.fold import Fold
from keryx.engine.log.state import OpenTurn
from keryx.engine.money.amounts import (
    NO_AMOUNT,
    Bounds,
    bounds_of_day,
    bounds_of_session,
    bounds_of_turn,
)
from keryx.engine.money.spent import Amount
from keryx.ports.store import Store

SPENDING: Final = (ev.StepReplied, ev.StepAbandoned, ev.UsageRecorded)
NOTED: Final = frozenset((ev.TurnFinished, *SPENDING))
"""The facts that count as spending, or end a turn."""


class _Entry(msgspec.Struct, frozen=True):
    """Spending that was recorded and may not be in the store yet."""

    number: int
    session_id: str
    root: str
    seq: int
    at: float
    amount: Amount

    def is_missing(self, logs: Mapping[str, int], reached: Collection[str]) -> bool:
        """Return whether a sum that reaches to the end of these logs lacks this spending.

        The store has no log of a session that was deleted, and its sums include that session.
        """
        end = logs.get(self.session_id)
        return self.session_id not in reached if end is None else self.seq > end


async def _no_prices() -> None:
    """Load nothing."""


class Spending:
    """What the sessions of one host spend. Belongs to the loop of the host."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limits: Limits,
        load_prices: Callable[[], Awaitable[None]] = _no_prices,
    ) -> None:
        """`load_prices` makes costs known that can be."""
        self._store, self._clock = store, clock
        self._load_prices = load_prices
        self.set_limits(limits)
        self._numbers = itertools.count()
        self._entries: list[_Entry] = []
        self._checks: dict[int, None] = {}
        """The running checks, by the number of the first entry after their start."""
        self._folds: dict[str, Fold] = {}
        """The open sessions."""
        self._children: dict[str, dict[str, str]] = {}
        """The sessions of child agents, by the session and the call of their parent."""
        self._child_amounts: dict[str, Amount] = {}
        """What the turns of child agents spent themselves, until the turn of their parent ends."""
        self._roots: dict[str, str] = {}
        """The session that the child agents work for in the end, by their sessions."""
        self.on_turn: Callable[[Fold, ev.TurnFinished], None] | None = None
        """Is called when a turn has ended; it must return at once, and must not raise."""

    def set_limits(self, limits: Limits) -> None:
        """Check these limits from now on."""
        self._limits = limits
        self.is_active = limits.has_money
        """Whether there is a limit for money, or for the tokens of a session or a day."""

    # -- for the sessions

    def open(self, fold: Fold) -> None:
        """Follow a session from now on."""
        self._folds[fold.session_id] = fold
        if (parent := fold.parent) is not None:
            self._children.setdefault(parent.session_id, {})[parent.call_id] = fold.session_id
            self._note_child(fold)

    def close(self, fold: Fold) -> None:
        """Follow a session no more, unless it was opened again meanwhile."""
        if self._folds.get(fold.session_id) is fold:
            del self._folds[fold.session_id]
            self._roots.pop(fold.session_id, None)

    def note(self, fold: Fold, fact: ev.LoggedEvent) -> None:
        """Note a fact of one of the kinds in `NOTED` that the fold has applied."""
        if isinstance(fact, ev.TurnFinished):
            if self.on_turn is not None:
                self.on_turn(fold, fact)
            for child in self._children.pop(fold.session_id, {}).values():
                self._child_amounts.pop(child, None)
        elif isinstance(fact, SPENDING):
            self._note_child(fold)
            if self.is_active and not _is_of_agent(fact):
                session_id = fold.session_id
                root, amount = self._roots.get(session_id, session_id), Amount.of(fact)
                number = next(self._numbers)
                self._entries.append(_Entry(number, session_id, root, fact.seq, fact.at, amount))

    def _note_child(self, fold: Fold) -> None:
        if fold.parent is not None and fold.turn is not None:
            self._child_amounts[fold.session_id] = fold.turn.own_amount

    # -- checks

    async def check(self, fold: Fold) -> None:
        """Raise `ModelError` if a limit does not allow another request of this session."""
        limits = self._limits
        if not self.is_active:
            return
        if limits.has_cost:
            await self._load_prices()
        turn_bounds = bounds_of_turn(limits)
        top = self._top(fold)
        if turn_bounds.is_set and top.turn is not None:
            turn_bounds.check(self._turn_amount(top.session_id, top.turn))
        if (bounds := bounds_of_session(limits)).is_set:
            await self._check_sum(bounds, await self._root(fold), None)
        if (bounds := bounds_of_day(limits)).is_set:
            await self._check_sum(bounds, None, self._midnight())

    async def _check_sum(self, bounds: Bounds, root: str | None, since: float | None) -> None:
        start = next(self._numbers)
        before = list(self._entries)
        logs = {*self._folds, *(entry.session_id for entry in before)}
        self._checks[start] = None
        try:
            spent = await self._store.spent(root, since=since, logs=tuple(logs))
        finally:
            del self._checks[start]
        new = [entry for entry in self._entries if entry.number > start]
        stored = Amount(spent.cost, spent.tokens, spent.unpriced)
        for entry in (*before, *new):
            is_in_period = since is None or entry.at >= since
            is_of_root = root in (None, entry.root)
            if is_in_period and is_of_root and entry.is_missing(spent.logs, logs):
                stored += entry.amount
        self._forget(spent.logs, logs)
        bounds.check(stored)

    def _forget(self, logs: Mapping[str, int], reached: Collection[str]) -> None:
        """Drop the entries that the store holds, and that no running check still needs."""
        oldest = min(self._checks, default=next(self._numbers))
        self._entries = [
            entry
            for entry in self._entries
            if entry.number > oldest or entry.is_missing(logs, reached)
        ]

    def _midnight(self) -> float:
        """Return the start of this day in the local time zone."""
        today = datetime.fromtimestamp(self._clock.wall()).astimezone().date()
        return datetime.combine(today, time.min).astimezone().timestamp()

    # -- families

    def _top(self, fold: Fold) -> Fold:
        """Return the session whose running turn this session works for."""
        while (parent := fold.parent) is not None:
            above = self._folds.get(parent.session_id)
            if above is None or above.turn is None:
                break
            fold = above
        return fold

    async def _root(self, fold: Fold) -> str:
        root = self._roots.get(fold.session_id)
        if root is None:
            root, parent = fold.session_id, fold.parent
            while parent is not None:
                root = parent.session_id
                row = await self._store.session(root)
                parent = None if row is None else row.parent
            self._roots[fold.session_id] = root
        return root

    def _turn_amount(self, session_id: str, turn: OpenTurn | None) -> Amount:
        """Return what a turn spent, with its child agents; running ones are counted too."""
        amount = self._child_amounts.get(session_id, NO_AMOUNT) if turn is None else turn.own_amount
        finished = {} if turn is None else turn.agents
        children = self._children.get(session_id, {})
        for call_id in {*finished, *children}:
            child = children.get(call_id)
            amount += max(
                (finished.get(call_id, NO_AMOUNT), self._child_amount(child)),
                key=lambda amount: (amount.cost, amount.tokens),
            )
        return amount

    def _child_amount(self, session_id: str | None) -> Amount:
        if session_id is None:
            return NO_AMOUNT
        fold = self._folds.get(session_id)
        return self._turn_amount(session_id, None if fold is None else fold.turn)


def _is_of_agent(fact: ev.LoggedEvent) -> bool:
    """Return whether a child agent's own session has this usage too, or nothing was used."""
    if isinstance(fact, ev.UsageRecorded):
        return fact.purpose == "agent"
    return isinstance(fact, ev.StepAbandoned) and not fact.asked
