"""Logs the nested calls of a container while it runs, so that a crash does not lose them.

They are written in bunches, soon after they end: the first ones are listed, later ones are only
counted in sums, which are written again when they have grown. So the log stays small, however many
calls a script makes. This module also writes what a model reads of them after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from keryx import events as ev
from keryx.aio.clock import Deadline, Deadlines
from keryx.engine.log.log_writer import LogWriter
from keryx.engine.log.state import NestedSoFar
from keryx.messages import Text
from keryx.ports.store import Blob, blob_hash

INTERVAL: Final = 0.02
"""Seconds between two facts about one container. A crash loses the calls that ended in between."""
GROWTH: Final = 1.1
"""The factor by which the sums grow before they are written again."""
MOST_SHOWN: Final = 50
"""Calls that are listed one by one for a model."""


class Totals(msgspec.Struct, frozen=True):
    """Counts of the calls of a container that have ended."""

    sums: tuple[ev.NestedSum, ...]
    """The calls that are not listed one by one, by tool."""
    total: int
    completed: int


class _Pending(msgspec.Struct):
    """The calls of one container that are not logged yet."""

    calls: list[ev.NestedCall] = msgspec.field(default_factory=list[ev.NestedCall])
    logged: int = 0
    """How many calls had ended when the last fact was recorded."""
    last: float = 0.0
    due: Deadline | None = None


class NestedLog:
    """Logs the calls of running containers. Belongs to one turn, or to one call of a person."""

    def __init__(
        self,
        log: LogWriter,
        deadlines: Deadlines,
        turn_id: str | None,
        totals: Callable[[str], Totals | None],
    ) -> None:
        """`totals` returns the counts of a container; None if it is not tracked any more."""
        self._log = log
        self._deadlines = deadlines
        self._turn_id = turn_id
        self._totals = totals
        self._pending: dict[str, _Pending] = {}

    def open(self, container: str) -> None:
        self._pending[container] = _Pending()

    def close(self, container: str) -> None:
        """Drop what is pending: the end of the container itself is logged with all its calls."""
        pending = self._pending.pop(container, None)
        if pending is not None and pending.due is not None:
            self._deadlines.drop(pending.due)

    def add(self, container: str, call: ev.NestedCall | None, total: int) -> None:
        """Add a call that ended, `total` so far. `call` is None if it is only counted."""
        pending = self._pending.get(container)
        if pending is None:
            return
        if call is not None:
            pending.calls.append(call)
        elif not pending.calls and total < GROWTH * pending.logged:
            return
        if pending.due is None:
            deadlines = self._deadlines
            when = max(deadlines.clock.monotonic(), pending.last + INTERVAL)
            pending.due = deadlines.add(when, partial(self._write, container, pending))

    def _write(self, container: str, pending: _Pending) -> None:
        pending.due, pending.last = None, self._deadlines.clock.monotonic()
        totals = self._totals(container)
        if totals is None or self._log.broken is not None:
            return
        calls, pending.calls, pending.logged = tuple(pending.calls), [], totals.total
        self._log.record(
            ev.NestedFinished,
            turn_id=self._turn_id,
            call_id=container,
            calls=calls,
            sums=totals.sums,
            total=totals.total,
            completed=totals.completed,
        )


def nested_calls_blob(calls: Sequence[ev.NestedCall], sums: Sequence[ev.NestedSum]) -> Blob:
    """Return the nested calls of a container as a blob."""
    data = msgspec.json.encode(ev.NestedCalls(calls=tuple(calls), sums=tuple(sums)))
    return Blob(blob_hash(data), data)


def crash_note(nested: NestedSoFar) -> Text:
    """Return what a model reads of the nested calls of a container that a crash ended."""
    lines = [f"{nested.total} nested calls had ended before that:"]
    lines += [
        f"- {call.tool} {call.preview} ({call.outcome}, {call.duration:.1f} s)"
        for call in nested.calls[:MOST_SHOWN]
    ]
    if nested.total > MOST_SHOWN:
        lines.append(f"- and {nested.total - min(MOST_SHOWN, len(nested.calls))} more")
    return Text("\n".join(lines))
