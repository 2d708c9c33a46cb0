"""What is shown and kept of the calls of containers: each for itself, then in bunches and sums.

A script may make thousands of calls a second; a screen wants to know how many, not each of them,
and which of them still run after a while.
"""

from __future__ import annotations

from itertools import islice, takewhile
from typing import Final

import msgspec

from keryx import events as ev
from keryx.aio.clock import Deadline
from keryx.engine.calls.call_hooks import CallView
from keryx.engine.live.nested_log import NestedLog, Numbers, picture_blob
from keryx.engine.session_context import SessionContext
from keryx.messages import CallOutcome, Outcome, well_formed

MOST_LISTED: Final = 1_000
"""Calls of a container that are kept one by one; what comes after is summed up."""
MOST_SINGLE: Final = 200
"""Events of a container within which a call that begins is told by itself; then come bunches."""
BUNCH: Final = 0.05
"""Seconds that a bunch may gather."""
SLOW: Final = 1.0
"""Seconds after which one of a crowd is named: now somebody may want to cancel just that one."""
MOST_NAMED: Final = 100
"""No more are named in a container while so many run that were told by themselves."""
LOOK_AGAIN: Final = 0.25
"""Seconds at least between two looks for slow ones."""


_Key = tuple[str, str, Outcome | None]
"""A container, a tool, and how it ended, if it did: what the calls of a bunch have in common."""


class _Begun(msgspec.Struct, frozen=True):
    """A call that runs."""

    call: CallView
    since: float
    preview: str


class _Bunch(msgspec.Struct):
    since: float
    """When its container began."""
    count: int = 0
    seconds: float = 0.0


class _Sum(msgspec.Struct):
    duration: float = 0.0
    ended: dict[Outcome, int] = msgspec.field(default_factory=dict[Outcome, int])


class _Container(msgspec.Struct):
    """What one container called so far."""

    since: float
    listed: list[ev.NestedCall] = msgspec.field(default_factory=list[ev.NestedCall])
    sums: dict[str, _Sum] = msgspec.field(default_factory=dict[str, _Sum])
    """By tool, of those that are not listed."""
    calls: int = 0
    completed: int = 0
    events: int = 0
    alone: dict[str, _Begun] = msgspec.field(default_factory=dict[str, _Begun])
    """Those that run and were told by themselves, as their ends will be."""
    crowd: dict[str, _Begun] = msgspec.field(default_factory=dict[str, _Begun])
    """Those that run and were only counted, the oldest first."""
    look: Deadline | None = None
    """When the crowd is looked at for slow ones; one for all of them."""


class NestedCallTracker:
    """The nested calls of one turn."""

    def __init__(self, context: SessionContext, turn_id: str | None) -> None:
        self._context = context
        self._log = NestedLog(context, turn_id, self._numbers)
        self._containers: dict[str, _Container] = {}
        self._bunches: dict[_Key, _Bunch] = {}

    def container(self, call_id: str, *, is_logged: bool) -> None:
        """A container begins; what it calls is logged unless it is nested itself."""
        self._containers[call_id] = _Container(self._now())
        self._context.showing.container(call_id)
        if is_logged:
            self._log.open(call_id)

    def began(self, call: CallView, parent: str) -> None:
        container = self._containers.get(parent)
        if container is None:
            return
        preview = _preview(call) if container.calls < MOST_LISTED else ""
        begun = _Begun(call, self._now(), preview)
        container.events += 1
        if container.events <= MOST_SINGLE:
            container.alone[call.call_id] = begun
            self._context.showing.nested_began(parent, _shown(begun, container))
            told = ev.NestedProgress(tool=call.tool.name, preview=preview)
            self._publish(call.call_id, parent, told)
            return
        container.crowd[call.call_id] = begun
        self._gather(container, (parent, call.tool.name, None), 0.0)
        if container.look is None:
            self._look_at(begun.since + SLOW, parent, container)

    def ended(self, call: CallView, parent: str, outcome: CallOutcome) -> None:
        container = self._containers.get(parent)
        if container is None:
            return
        begun = container.alone.pop(call.call_id, None)
        is_single = begun is not None
        if begun is None:
            begun = container.crowd.pop(call.call_id, None)
            # One that never began to act, where each is told by itself.
            is_single = begun is None and container.events < MOST_SINGLE
        self._log.add(parent, _keep(container, begun, outcome), container.calls)
        container.events += 1
        tool, duration = outcome.tool, outcome.duration
        if is_single:
            at = self._now() - container.since
            self._context.showing.nested_ended(parent, outcome, at)
            told = ev.NestedProgress(tool=tool, outcome=outcome.outcome, duration=duration)
            self._publish(call.call_id, parent, told)
        else:
            self._gather(container, (parent, tool, outcome.outcome), duration)

    def over(self, call_id: str) -> None:
        """A container has ended: what is still gathered of it is shown now."""
        self._log.close(call_id)
        container = self._containers.get(call_id)
        if container is not None and container.look is not None:
            self._context.scope.deadlines.drop(container.look)
        for key in [key for key in self._bunches if key[0] == call_id]:
            self._show(key)

    def picture(self, call_id: str) -> ev.NestedSummary | None:
        """All that it called, as one blob, so that the picture survives a reload. Told once."""
        numbers = self._numbers(call_id)
        container = self._containers.pop(call_id, None)
        if container is None or numbers is None or not numbers.total:
            return None
        blob = picture_blob(container.listed, numbers.sums)
        self._context.log.keep(blob)
        return ev.NestedSummary(calls=numbers.total, completed=numbers.completed, blob=blob.hash)

    def _numbers(self, call_id: str) -> Numbers | None:
        container = self._containers.get(call_id)
        if container is None:
            return None
        sums = tuple(_added_up(tool, known) for tool, known in container.sums.items())
        return Numbers(sums, container.calls, container.completed)

    def _now(self) -> float:
        return self._context.scope.clock.monotonic()

    # -- the crowd

    def _gather(self, container: _Container, key: _Key, seconds: float) -> None:
        bunch = self._bunches.get(key)
        if bunch is None:
            bunch = self._bunches[key] = _Bunch(container.since)
            self._context.scope.deadlines.add(self._now() + BUNCH, lambda: self._show(key))
        bunch.count += 1
        bunch.seconds += seconds

    def _show(self, key: _Key) -> None:
        bunch = self._bunches.pop(key, None)
        if bunch is not None:
            parent, tool, outcome = key
            at = self._now() - bunch.since
            self._context.showing.nested_counted(parent, tool, outcome, bunch.count, at)
            told = ev.NestedProgress(
                tool=tool,
                outcome=outcome,
                duration=None if outcome is None else bunch.seconds,
                count=bunch.count,
            )
            self._publish(parent, parent, told)

    def _look_at(self, when: float, parent: str, container: _Container) -> None:
        container.look = self._context.scope.deadlines.add(
            when, lambda: self._look(parent, container)
        )

    def _look(self, parent: str, container: _Container) -> None:
        """Names those that are slow. They are in the order of their age, so few are looked at."""
        container.look = None
        now = self._now()
        slow = takewhile(lambda begun: begun.since + SLOW <= now, container.crowd.values())
        for begun in list(islice(slow, max(0, MOST_NAMED - len(container.alone)))):
            self._name(begun, parent, container, now)
        oldest = next(iter(container.crowd.values()), None)
        if oldest is not None:
            self._look_at(max(oldest.since + SLOW, now + LOOK_AGAIN), parent, container)

    def _name(self, begun: _Begun, parent: str, container: _Container, now: float) -> None:
        call = begun.call
        del container.crowd[call.call_id]
        named = _Begun(call, begun.since, begun.preview or _preview(call))
        container.alone[call.call_id] = named
        self._context.showing.nested_named(parent, _shown(named, container))
        told = ev.NestedProgress(
            tool=call.tool.name, preview=named.preview, duration=now - begun.since, count=0
        )
        self._publish(call.call_id, parent, told)

    def _publish(self, call_id: str, parent: str, told: ev.NestedProgress) -> None:
        self._context.show(ev.CallProgress, call_id=call_id, parent=parent, nested=told)


def _preview(call: CallView) -> str:
    return well_formed(call.tool.preview(call.args))


def _shown(begun: _Begun, container: _Container) -> ev.ShownNested:
    return ev.ShownNested(
        call_id=begun.call.call_id,
        tool=begun.call.tool.name,
        start=begun.since - container.since,
        preview=begun.preview,
    )


def _keep(
    container: _Container, begun: _Begun | None, outcome: CallOutcome
) -> ev.NestedCall | None:
    """What the container's picture will tell of this one; None if it is only counted."""
    completed = outcome.outcome == "completed"
    container.calls += 1
    container.completed += completed
    if len(container.listed) < MOST_LISTED:
        listed = ev.NestedCall(
            call_id=outcome.call_id,
            tool=outcome.tool,
            start=0.0 if begun is None else begun.since - container.since,
            duration=outcome.duration,
            outcome=outcome.outcome,
            preview="" if begun is None else begun.preview,
        )
        container.listed.append(listed)
        return listed
    known = container.sums.get(outcome.tool)
    if known is None:
        known = container.sums[outcome.tool] = _Sum()
    known.duration += outcome.duration
    known.ended[outcome.outcome] = known.ended.get(outcome.outcome, 0) + 1
    return None


def _added_up(tool: str, known: _Sum) -> ev.NestedSum:
    return ev.NestedSum(
        tool=tool,
        calls=sum(known.ended.values()),
        duration=known.duration,
        completed=known.ended.get("completed", 0),
        ended=known.ended,
    )
