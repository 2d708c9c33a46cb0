"""What runs right now in a session, for readers that come late: the end of what each call printed.

Only what was shown already; nothing here is a fact.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.events import RunningCall, RunningNested, ShownNested, ShownTool
from keryx.messages import CallOutcome, Outcome

TAIL: Final = 16_000
"""Characters of a call's output that a late reader is shown."""


class _Tool(msgspec.Struct):
    """The calls of one tool by a container: how many, since when, and until when."""

    first: float
    last: float
    began: int = 0
    ended: dict[Outcome, int] = msgspec.field(default_factory=dict[Outcome, int])


class _Nested(msgspec.Struct):
    """What a container called so far."""

    tools: dict[str, _Tool] = msgspec.field(default_factory=dict[str, _Tool])
    calls: dict[str, ShownNested] = msgspec.field(default_factory=dict[str, ShownNested])
    """Each of them; of a crowd only those that were told by themselves and run."""
    is_crowd: bool = False

    def gather(self) -> None:
        """From now on, some of them are only counted."""
        self.is_crowd = True
        self.calls = {key: each for key, each in self.calls.items() if each.outcome is None}

    def add(self, tool: str, outcome: Outcome | None, count: int, at: float) -> None:
        """So many began (no outcome) or ended; `at` counts from the container's own start."""
        known = self.tools.get(tool)
        if known is None:
            known = self.tools[tool] = _Tool(at, at)
        known.last = at
        if outcome is None:
            known.began += count
        else:
            known.ended[outcome] = known.ended.get(outcome, 0) + count

    def told(self) -> RunningNested:
        tools = self.tools.values()
        return RunningNested(
            began=sum(each.began for each in tools),
            ended=sum(sum(each.ended.values()) for each in tools),
            completed=sum(each.ended.get("completed", 0) for each in tools),
            calls=tuple(self.calls.values()),
            tools=tuple(
                ShownTool(
                    tool=name,
                    began=each.began,
                    ended=dict(each.ended),
                    first=each.first,
                    last=each.last,
                )
                for name, each in self.tools.items()
            ),
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


class RunningCalls:
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

    def container(self, call_id: str) -> None:
        """A call begins that makes calls itself. Those of calls deeper down are not shown."""
        if (shown := self._shown.get(call_id)) is not None:
            shown.nested = _Nested()

    def nested_began(self, container: str, told: ShownNested) -> None:
        if (nested := self._nested(container)) is not None:
            nested.add(told.tool, None, 1, told.start)
            nested.calls[told.call_id] = told

    def nested_named(self, container: str, told: ShownNested) -> None:
        """One that was only counted is told by itself after all."""
        if (nested := self._nested(container)) is not None:
            nested.calls[told.call_id] = told

    def nested_ended(self, container: str, ended: CallOutcome, at: float) -> None:
        if (nested := self._nested(container)) is not None:
            nested.add(ended.tool, ended.outcome, 1, at)
            if (known := nested.calls.get(ended.call_id)) is None:
                return
            if nested.is_crowd:
                del nested.calls[ended.call_id]
            else:
                nested.calls[ended.call_id] = msgspec.structs.replace(
                    known, outcome=ended.outcome, duration=ended.duration
                )

    def nested_counted(
        self, container: str, tool: str, outcome: Outcome | None, count: int, at: float
    ) -> None:
        """So many began (no outcome) or ended, and none of them was told by itself."""
        if (nested := self._nested(container)) is not None:
            if not nested.is_crowd:
                nested.gather()
            nested.add(tool, outcome, count, at)

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
                nested=shown.nested.told() if shown.nested and shown.nested.tools else None,
            )
            for call_id, shown in self._shown.items()
        )
