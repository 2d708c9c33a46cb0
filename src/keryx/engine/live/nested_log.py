"""What the log keeps of a container's calls while it runs, so that a crash does not lose them.

They are written in bunches, soon after they end: the first ones each by itself, the rest as sums
that are written again when they have grown. So their number in the log is bounded, however many a
script makes. Here is also what a model is told of them after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from keryx import events as ev
from keryx.aio.clock import Deadline
from keryx.engine.log.state import NestedSoFar
from keryx.engine.session_context import SessionContext
from keryx.messages import Text
from keryx.ports.store import Blob, blob_hash

INTERVAL: Final = 0.02
"""Seconds between two facts about one container. A crash loses what ended within them."""
GROWTH: Final = 1.1
"""How much the sums grow before they are written again."""
MOST_TOLD: Final = 50
"""Calls that a model is told of one by one."""


class Numbers(msgspec.Struct, frozen=True):
    """All calls of a container that have ended, counted."""

    sums: tuple[ev.NestedSum, ...]
    """Of those that are not listed one by one, by tool."""
    total: int
    completed: int


class _Pending(msgspec.Struct):
    """What one container's calls are still to be written."""

    calls: list[ev.NestedCall] = msgspec.field(default_factory=list[ev.NestedCall])
    logged: int = 0
    """How many had ended when the last fact was stated."""
    last: float = 0.0
    due: Deadline | None = None


class NestedLog:
    """States facts about the calls of containers that run. Belongs to one turn, or one call."""

    def __init__(
        self, context: SessionContext, turn_id: str | None, numbers: Callable[[str], Numbers | None]
    ) -> None:
        """`numbers` counts the calls of a container; None if nobody counts them any more."""
        self._context = context
        self._turn_id = turn_id
        self._numbers = numbers
        self._pending: dict[str, _Pending] = {}

    def open(self, container: str) -> None:
        self._pending[container] = _Pending()

    def close(self, container: str) -> None:
        """Its own end will tell all, so what is pending need not be written."""
        pending = self._pending.pop(container, None)
        if pending is not None and pending.due is not None:
            self._context.scope.deadlines.drop(pending.due)

    def add(self, container: str, call: ev.NestedCall | None, total: int) -> None:
        """One more has ended, so many in all; None if it is not listed any more."""
        pending = self._pending.get(container)
        if pending is None:
            return
        if call is not None:
            pending.calls.append(call)
        elif not pending.calls and total < GROWTH * pending.logged:
            return
        if pending.due is None:
            deadlines = self._context.scope.deadlines
            when = max(deadlines.clock.monotonic(), pending.last + INTERVAL)
            pending.due = deadlines.add(when, partial(self._write, container, pending))

    def _write(self, container: str, pending: _Pending) -> None:
        pending.due, pending.last = None, self._context.scope.clock.monotonic()
        numbers = self._numbers(container)
        if numbers is None or self._context.log.broken is not None:
            return
        calls, pending.calls, pending.logged = tuple(pending.calls), [], numbers.total
        self._context.log.record(
            ev.NestedFinished,
            turn_id=self._turn_id,
            call_id=container,
            calls=calls,
            sums=numbers.sums,
            total=numbers.total,
            completed=numbers.completed,
        )


def picture_blob(calls: Sequence[ev.NestedCall], sums: Sequence[ev.NestedSum]) -> Blob:
    """All that a container called, as the blob that its end names."""
    data = msgspec.json.encode(ev.NestedCalls(calls=tuple(calls), sums=tuple(sums)))
    return Blob(blob_hash(data), data)


def after_a_crash(nested: NestedSoFar) -> Text:
    """What a model is told of the calls of a container that a crash came over."""
    lines = [f"{nested.total} nested calls had ended before that:"]
    lines += [
        f"- {call.tool} {call.preview} ({call.outcome}, {call.duration:.1f} s)"
        for call in nested.calls[:MOST_TOLD]
    ]
    if nested.total > MOST_TOLD:
        lines.append(f"- and {nested.total - min(MOST_TOLD, len(nested.calls))} more")
    return Text("\n".join(lines))
