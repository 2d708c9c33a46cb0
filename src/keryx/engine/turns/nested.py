"""What is shown and kept of the calls of containers: each for itself, then in bunches and sums.

A script may make thousands of calls a second; a screen wants to know how many, not each of them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx import events as ev
from keryx.engine.calls.witness import CallView
from keryx.engine.desk import Desk
from keryx.engine.turns.showing import MOST_SINGLE
from keryx.messages import CallOutcome, Outcome

MOST_LISTED: Final = 1_000
"""Calls of a container that are kept one by one; what comes after is summed up."""
BUNCH: Final = 0.05
"""Seconds that a bunch may gather."""


class _Bunch(msgspec.Struct):
    call_id: str
    count: int = 0
    seconds: float = 0.0


class _Picture(msgspec.Struct):
    """What one container called so far."""

    began: float
    listed: list[ev.NestedCall]
    sums: dict[str, ev.NestedSum]
    calls: int = 0
    completed: int = 0


class NestedShow:
    """The nested calls of one turn."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._pictures: dict[str, _Picture] = {}
        self._begun: dict[str, tuple[float, str]] = {}
        """When each call began, and what a screen says of it."""
        self._shown: dict[str, int] = {}
        """By container."""
        self._bunches: dict[tuple[str, str, Outcome | None], _Bunch] = {}

    def container(self, call_id: str) -> None:
        """A container begins."""
        now = self._now()
        self._pictures[call_id] = _Picture(now, [], {})
        self._desk.showing.container(call_id, now)

    def began(self, call: CallView, parent: str) -> None:
        picture = self._pictures.get(parent)
        is_listed = picture is not None and picture.calls < MOST_LISTED
        preview = self._preview(call) if is_listed else ""
        now = self._now()
        self._begun[call.call_id] = (now, preview)
        self._desk.showing.nested_began(parent, call.call_id, call.tool.name, preview, now)
        self._tell(call.call_id, parent, call.tool.name, None, 0.0, preview)

    def ended(self, call: CallView, parent: str, outcome: CallOutcome) -> None:
        self._keep(parent, outcome)
        self._desk.showing.nested_ended(parent, outcome)
        self._tell(call.call_id, parent, outcome.tool, outcome.outcome, outcome.duration, "")

    def picture(self, container: str) -> tuple[ev.NestedCalls, int, int] | None:
        """All that it called, how many that were, and how many completed. Told once."""
        found = self._pictures.pop(container, None)
        if found is None or not found.calls:
            return None
        told = ev.NestedCalls(calls=tuple(found.listed), sums=tuple(found.sums.values()))
        return told, found.calls, found.completed

    def _keep(self, parent: str, outcome: CallOutcome) -> None:
        began, preview = self._begun.pop(outcome.call_id, (None, ""))
        picture = self._pictures.get(parent)
        if picture is None:
            return
        completed = outcome.outcome == "completed"
        picture.calls += 1
        picture.completed += completed
        if len(picture.listed) < MOST_LISTED:
            picture.listed.append(
                ev.NestedCall(
                    call_id=outcome.call_id,
                    tool=outcome.tool,
                    start=0.0 if began is None else began - picture.began,
                    duration=outcome.duration,
                    outcome=outcome.outcome,
                    preview=preview,
                )
            )
            return
        known = picture.sums.get(outcome.tool)
        picture.sums[outcome.tool] = ev.NestedSum(
            tool=outcome.tool,
            calls=1 if known is None else known.calls + 1,
            duration=outcome.duration + (0.0 if known is None else known.duration),
            completed=completed + (0 if known is None else known.completed),
        )

    def _now(self) -> float:
        return self._desk.scope.clock.monotonic()

    def over(self, container: str) -> None:
        """A container has ended: what is still gathered of it is shown now."""
        self._shown.pop(container, None)
        for key in [key for key in self._bunches if key[0] == container]:
            self._show(key)

    def _tell(
        self,
        call_id: str,
        parent: str,
        tool: str,
        outcome: Outcome | None,
        seconds: float,
        preview: str,
    ) -> None:
        shown = self._shown[parent] = self._shown.get(parent, 0) + 1
        key = (parent, tool, outcome)
        bunch = self._bunches.get(key)
        if bunch is None:
            if shown <= MOST_SINGLE:
                told = ev.NestedProgress(
                    tool=tool,
                    preview=preview,
                    outcome=outcome,
                    duration=None if outcome is None else seconds,
                )
                self._publish(call_id, parent, told)
                return
            bunch = self._bunches[key] = _Bunch(call_id)
            deadlines = self._desk.scope.deadlines
            deadlines.add(deadlines.clock.monotonic() + BUNCH, lambda: self._show(key))
        bunch.count += 1
        bunch.seconds += seconds

    def _show(self, key: tuple[str, str, Outcome | None]) -> None:
        bunch = self._bunches.pop(key, None)
        if bunch is not None:
            parent, tool, outcome = key
            told = ev.NestedProgress(
                tool=tool,
                outcome=outcome,
                duration=None if outcome is None else bunch.seconds,
                count=bunch.count,
            )
            self._publish(bunch.call_id, parent, told)

    def _publish(self, call_id: str, parent: str, told: ev.NestedProgress) -> None:
        self._desk.show(ev.CallProgress, call_id=call_id, parent=parent, nested=told)

    @staticmethod
    def _preview(call: CallView) -> str:
        return call.tool.preview(call.args)
