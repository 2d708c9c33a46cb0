"""What is shown of the calls of containers while they run: each for itself, then in bunches.

A script may make thousands of calls a second; a screen wants to know how many, not each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from keryx import events as ev
from keryx.engine.calls.witness import CallView
from keryx.engine.desk import Desk
from keryx.messages import CallOutcome, Outcome

MOST_SINGLE: Final = 200
"""Events about nested calls that a container has to itself; after these come bunches."""
BUNCH: Final = 0.05
"""Seconds that a bunch may gather."""


class _Bunch(msgspec.Struct):
    call_id: str
    count: int = 0
    seconds: float = 0.0


class NestedShow:
    """Shows the nested calls of one turn."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._shown: dict[str, int] = {}
        """By container."""
        self._bunches: dict[tuple[str, str, Outcome | None], _Bunch] = {}

    def began(self, call: CallView, parent: str) -> None:
        self._tell(call.call_id, parent, call.tool.name, None, 0.0, lambda: self._preview(call))

    def ended(self, call: CallView, parent: str, outcome: CallOutcome) -> None:
        self._tell(call.call_id, parent, outcome.tool, outcome.outcome, outcome.duration, str)

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
        preview: Callable[[], str],
    ) -> None:
        shown = self._shown[parent] = self._shown.get(parent, 0) + 1
        key = (parent, tool, outcome)
        bunch = self._bunches.get(key)
        if bunch is None:
            if shown <= MOST_SINGLE:
                told = ev.NestedProgress(
                    tool=tool,
                    preview=preview(),
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
