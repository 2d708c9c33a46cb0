"""What runs right now in a session, for readers that come late: the end of what each call printed.

Only what was shown already; nothing here is a fact.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.events import RunningCall, RunningNested
from keryx.messages import Outcome

TAIL: Final = 16_000
"""Characters of a call's output that a late reader is shown."""


class _Shown(msgspec.Struct):
    tool: str
    pieces: list[str] = msgspec.field(default_factory=list[str])
    size: int = 0
    done: float | None = None
    total: float | None = None
    note: str = ""
    nested: RunningNested | None = None

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.size += len(text)
        if self.size > 2 * TAIL:
            self.pieces = [self.output()]
            self.size = TAIL

    def output(self) -> str:
        return "".join(self.pieces)[-TAIL:]


class Showing:
    """The calls of one session that are under way, but not those that they make themselves."""

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

    def nested(self, container: str, outcome: Outcome | None) -> None:
        """A call of that container began, or ended with this outcome."""
        shown = self._shown.get(container)
        if shown is None:
            return
        known = shown.nested or RunningNested()
        shown.nested = RunningNested(
            began=known.began + (outcome is None),
            ended=known.ended + (outcome is not None),
            completed=known.completed + (outcome == "completed"),
        )

    def running(self) -> tuple[RunningCall, ...]:
        return tuple(
            RunningCall(
                call_id=call_id,
                tool=shown.tool,
                output=shown.output(),
                done=shown.done,
                total=shown.total,
                note=shown.note,
                nested=shown.nested,
            )
            for call_id, shown in self._shown.items()
        )
