"""Tracks the nested calls of containers: the first ones one by one, later ones in bunches and sums.

A script may make thousands of calls a second. A screen shows how many there are, and which of them
are slow, but not every single one.
"""

from __future__ import annotations

from itertools import islice, takewhile
from typing import Final

import msgspec

from keryx import events as ev
from keryx.aio.clock import Deadline
from keryx.engine.calls.call_hooks import CallView
from keryx.engine.live.nested_log import NestedLog, Totals, nested_calls_blob
from keryx.engine.session_context import SessionContext
from keryx.messages import CallOutcome, Outcome, well_formed

MOST_LISTED: Final = 1_000
"""Calls of a container that are listed one by one; later ones are only counted."""
MOST_SINGLE: Final = 200
"""Events of a container after which calls are shown in bunches, not one by one."""
BUNCH: Final = 0.05
"""Seconds during which a bunch collects calls."""
SLOW: Final = 1.0
"""Seconds after which a counted call is named, so that a person can cancel it."""
MOST_NAMED: Final = 100
"""The most named calls of a container that run at the same time."""
CHECK_INTERVAL: Final = 0.25
"""Minimum seconds between two checks for slow calls."""


_Key = tuple[str, str, Outcome | None]
"""What the calls of a bunch have in common: container, tool and outcome; None: they began."""


class _Running(msgspec.Struct, frozen=True):
    """A nested call that runs."""

    call: CallView
    since: float
    preview: str


class _Bunch(msgspec.Struct):
    """Calls that are shown together, as one event."""

    since: float
    """When the container began."""
    count: int = 0
    seconds: float = 0.0


class _Sum(msgspec.Struct):
    """The calls of one tool that have ended and are not listed."""

    duration: float = 0.0
    ended: dict[Outcome, int] = msgspec.field(default_factory=dict[Outcome, int])


class _Container(msgspec.Struct):
    """The nested calls of one container so far."""

    since: float
    listed: list[ev.NestedCall] = msgspec.field(default_factory=list[ev.NestedCall])
    sums: dict[str, _Sum] = msgspec.field(default_factory=dict[str, _Sum])
    """The calls that are not listed, by tool."""
    calls: int = 0
    completed: int = 0
    events: int = 0
    single: dict[str, _Running] = msgspec.field(default_factory=dict[str, _Running])
    """Running calls that were shown one by one; their ends will be, too."""
    counted: dict[str, _Running] = msgspec.field(default_factory=dict[str, _Running])
    """Running calls that were only counted, the oldest first."""
    slow_check: Deadline | None = None
    """The timer of the next check for slow calls."""


class NestedCallTracker:
    """Tracks the nested calls of one turn, or of one call that a person runs."""

    def __init__(self, context: SessionContext, turn_id: str | None) -> None:
        self._context = context
        self._log = NestedLog(context.log, context.scope.deadlines, turn_id, self._totals)
        self._containers: dict[str, _Container] = {}
        self._bunches: dict[_Key, _Bunch] = {}

    def container_began(self, call_id: str, *, is_logged: bool) -> None:
        """Start to track a container. Its calls are logged unless it is nested itself."""
        self._containers[call_id] = _Container(self._now())
        self._context.running_calls.container_began(call_id)
        if is_logged:
            self._log.open(call_id)

    def began(self, call: CallView, parent: str) -> None:
        container = self._containers.get(parent)
        if container is None:
            return
        preview = _preview(call) if container.calls < MOST_LISTED else ""
        running = _Running(call, self._now(), preview)
        container.events += 1
        if container.events <= MOST_SINGLE:
            container.single[call.call_id] = running
            self._context.running_calls.nested_began(parent, _shown_call(running, container))
            progress = ev.NestedProgress(tool=call.tool.name, preview=preview)
            self._publish(call.call_id, parent, progress)
            return
        container.counted[call.call_id] = running
        self._gather(container, (parent, call.tool.name, None), 0.0)
        if container.slow_check is None:
            self._schedule_check(running.since + SLOW, parent, container)

    def ended(self, call: CallView, parent: str, outcome: CallOutcome) -> None:
        container = self._containers.get(parent)
        if container is None:
            return
        running = container.single.pop(call.call_id, None)
        is_single = running is not None
        if running is None:
            running = container.counted.pop(call.call_id, None)
            # It never began to act, and calls are still shown one by one.
            is_single = running is None and container.events < MOST_SINGLE
        self._log.add(parent, _add_ended(container, running, outcome), container.calls)
        container.events += 1
        tool, duration = outcome.tool, outcome.duration
        if is_single:
            at = self._now() - container.since
            self._context.running_calls.nested_ended(parent, outcome, at)
            code = outcome.exit_code or msgspec.UNSET
            progress = ev.NestedProgress(
                tool=tool, outcome=outcome.outcome, duration=duration, exit_code=code
            )
            self._publish(call.call_id, parent, progress)
        else:
            self._gather(container, (parent, tool, outcome.outcome), duration)

    def container_ended(self, call_id: str) -> None:
        """Show the open bunches of a container that has ended."""
        self._log.close(call_id)
        container = self._containers.get(call_id)
        if container is not None and container.slow_check is not None:
            self._context.scope.deadlines.drop(container.slow_check)
        for key in [key for key in self._bunches if key[0] == call_id]:
            self._publish_bunch(key)

    def summary(self, call_id: str) -> ev.NestedSummary | None:
        """Return the summary of a container's calls, once. Its blob lists them for readers."""
        totals = self._totals(call_id)
        container = self._containers.pop(call_id, None)
        if container is None or totals is None or not totals.total:
            return None
        blob = nested_calls_blob(container.listed, totals.sums)
        self._context.log.keep(blob)
        return ev.NestedSummary(calls=totals.total, completed=totals.completed, blob=blob.hash)

    def _totals(self, call_id: str) -> Totals | None:
        container = self._containers.get(call_id)
        if container is None:
            return None
        sums = tuple(_nested_sum(tool, total) for tool, total in container.sums.items())
        return Totals(sums, container.calls, container.completed)

    def _now(self) -> float:
        return self._context.scope.clock.monotonic()

    # -- calls that are only counted

    def _gather(self, container: _Container, key: _Key, seconds: float) -> None:
        bunch = self._bunches.get(key)
        if bunch is None:
            bunch = self._bunches[key] = _Bunch(container.since)
            self._context.scope.deadlines.add(self._now() + BUNCH, lambda: self._publish_bunch(key))
        bunch.count += 1
        bunch.seconds += seconds

    def _publish_bunch(self, key: _Key) -> None:
        bunch = self._bunches.pop(key, None)
        if bunch is not None:
            parent, tool, outcome = key
            at = self._now() - bunch.since
            self._context.running_calls.nested_counted(parent, tool, outcome, bunch.count, at)
            progress = ev.NestedProgress(
                tool=tool,
                outcome=outcome,
                duration=None if outcome is None else bunch.seconds,
                count=bunch.count,
            )
            self._publish(parent, parent, progress)

    def _schedule_check(self, when: float, parent: str, container: _Container) -> None:
        container.slow_check = self._context.scope.deadlines.add(
            when, lambda: self._name_slow(parent, container)
        )

    def _name_slow(self, parent: str, container: _Container) -> None:
        """Name the slow calls. They are sorted by age, so only the first ones are checked."""
        container.slow_check = None
        now = self._now()
        slow = takewhile(lambda running: running.since + SLOW <= now, container.counted.values())
        for running in list(islice(slow, max(0, MOST_NAMED - len(container.single)))):
            self._name(running, parent, container, now)
        oldest = next(iter(container.counted.values()), None)
        if oldest is not None:
            self._schedule_check(max(oldest.since + SLOW, now + CHECK_INTERVAL), parent, container)

    def _name(self, running: _Running, parent: str, container: _Container, now: float) -> None:
        call = running.call
        del container.counted[call.call_id]
        named = _Running(call, running.since, running.preview or _preview(call))
        container.single[call.call_id] = named
        self._context.running_calls.nested_named(parent, _shown_call(named, container))
        progress = ev.NestedProgress(
            tool=call.tool.name, preview=named.preview, duration=now - running.since, count=0
        )
        self._publish(call.call_id, parent, progress)

    def _publish(self, call_id: str, parent: str, progress: ev.NestedProgress) -> None:
        self._context.show(ev.CallProgress, call_id=call_id, parent=parent, nested=progress)


def _preview(call: CallView) -> str:
    return well_formed(call.tool.preview(call.args))


def _shown_call(running: _Running, container: _Container) -> ev.ShownNested:
    return ev.ShownNested(
        call_id=running.call.call_id,
        tool=running.call.tool.name,
        start=running.since - container.since,
        preview=running.preview,
    )


def _add_ended(
    container: _Container, running: _Running | None, outcome: CallOutcome
) -> ev.NestedCall | None:
    """Count a call that has ended, and list it; None if it is only counted."""
    completed = outcome.outcome == "completed"
    container.calls += 1
    container.completed += completed
    if len(container.listed) < MOST_LISTED:
        listed = ev.NestedCall(
            call_id=outcome.call_id,
            tool=outcome.tool,
            start=0.0 if running is None else running.since - container.since,
            duration=outcome.duration,
            outcome=outcome.outcome,
            preview="" if running is None else running.preview,
            hooks=outcome.hooks or msgspec.UNSET,
            exit_code=outcome.exit_code or msgspec.UNSET,
        )
        container.listed.append(listed)
        return listed
    total = container.sums.get(outcome.tool)
    if total is None:
        total = container.sums[outcome.tool] = _Sum()
    total.duration += outcome.duration
    total.ended[outcome.outcome] = total.ended.get(outcome.outcome, 0) + 1
    return None


def _nested_sum(tool: str, total: _Sum) -> ev.NestedSum:
    return ev.NestedSum(
        tool=tool,
        calls=sum(total.ended.values()),
        duration=total.duration,
        completed=total.ended.get("completed", 0),
        ended=total.ended,
    )
