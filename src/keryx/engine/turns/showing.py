"""What runs right now in a session, for readers that come late: the end of what each call printed.

Only what was shown already; nothing here is a fact.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.events import RunningCall, RunningNested, ShownNested
from keryx.messages import CallOutcome

TAIL: Final = 16_000
"""Characters of a call's output that a late reader is shown."""
MOST_SINGLE: Final = 200
"""Events about nested calls that a container has to itself; after these come bunches."""


class _Nested(msgspec.Struct):
    """What a container called so far."""

    since: float
    began: int = 0
    ended: int = 0
    completed: int = 0
    calls: dict[str, ShownNested] | None = msgspec.field(default_factory=dict[str, ShownNested])
    """None once there are too many to tell one by one."""

    def count(self) -> dict[str, ShownNested] | None:
        """Where one more event is told by itself; None if it is not any more."""
        if self.began + self.ended > MOST_SINGLE:
            self.calls = None
        return self.calls

    def told(self) -> RunningNested:
        calls = () if self.calls is None else tuple(self.calls.values())
        return RunningNested(
            began=self.began, ended=self.ended, completed=self.completed, calls=calls
        )


class _Shown(msgspec.Struct):
    tool: str
    pieces: list[str] = msgspec.field(default_factory=list[str])
    size: int = 0
    done: float | None = None
    total: float | None = None
    note: str = ""
    nested: _Nested | None = None

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.size += len(text)
        if self.size > 2 * TAIL:
            self.pieces = [self.output()]
            self.size = TAIL

    def output(self) -> str:
        return "".join(self.pieces)[-TAIL:]


class Showing:
    """The calls of one session that are under way, with those that they make themselves."""

    def __init__(self) -> None:
        self._shown: dict[str, _Shown] = {}

    def began(self, call_id: str, tool: str) -> None:
        self._shown[call_id] = _Shown(tool)

    def ended(self, call_id: str) -> None:
        self._shown.pop(call_id, None)

    def printed(self, call_id: str, text: str) -> None:
        if (shown := self._shown.get(call_id)) is not None:
            shown.add(text)

    def progressed(self, call_id: str, done: float, total: float | None, note: str) -> None:
        if (shown := self._shown.get(call_id)) is not None:
            shown.done, shown.total, shown.note = done, total, note

    def container(self, call_id: str, now: float) -> None:
        """A call begins that makes calls itself. Those of calls deeper down are not shown."""
        if (shown := self._shown.get(call_id)) is not None:
            shown.nested = _Nested(now)

    def nested_began(
        self, container: str, call_id: str, tool: str, preview: str, now: float
    ) -> None:
        if (nested := self._nested(container)) is not None:
            nested.began += 1
            if (calls := nested.count()) is not None:
                calls[call_id] = ShownNested(
                    call_id=call_id, tool=tool, start=now - nested.since, preview=preview
                )

    def nested_ended(self, container: str, ended: CallOutcome) -> None:
        if (nested := self._nested(container)) is not None:
            nested.ended += 1
            nested.completed += ended.outcome == "completed"
            calls = nested.count()
            if calls is not None and (known := calls.get(ended.call_id)) is not None:
                calls[ended.call_id] = msgspec.structs.replace(
                    known, outcome=ended.outcome, duration=ended.duration
                )

    def _nested(self, container: str) -> _Nested | None:
        shown = self._shown.get(container)
        return None if shown is None else shown.nested

    def running(self) -> tuple[RunningCall, ...]:
        return tuple(
            RunningCall(
                call_id=call_id,
                tool=shown.tool,
                output=shown.output(),
                done=shown.done,
                total=shown.total,
                note=shown.note,
                nested=shown.nested.told() if shown.nested and shown.nested.began else None,
            )
            for call_id, shown in self._shown.items()
        )
