"""The running calls of a session, with the end of their output, for readers that connect late.

It holds only what was shown already. Nothing here is logged.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.events import RunningCall, RunningNested, ShownNested, ShownTool
from keryx.messages import CallOutcome, Outcome

TAIL: Final = 16_000
"""Characters of a call's output that a late reader gets."""


class _ToolCounts(msgspec.Struct):
    """The calls of one tool by one container: how many, when the first and when the last."""

    first: float
    last: float
    began: int = 0
    ended: dict[Outcome, int] = msgspec.field(default_factory=dict[Outcome, int])


class _Nested(msgspec.Struct):
    """The nested calls of a container so far."""

    tools: dict[str, _ToolCounts] = msgspec.field(default_factory=dict[str, _ToolCounts])
    calls: dict[str, ShownNested] = msgspec.field(default_factory=dict[str, ShownNested])
    """All calls; once some are only counted, the named calls that run."""
    is_partial: bool = False

    def drop_ended(self) -> None:
        """From now on some calls are only counted, so list only those that run."""
        self.is_partial = True
        self.calls = {key: call for key, call in self.calls.items() if call.outcome is None}

    def add(self, tool: str, outcome: Outcome | None, count: int, at: float) -> None:
        """Count calls that began (no outcome) or ended; `at`: seconds since the container began."""
        counts = self.tools.get(tool)
        if counts is None:
            counts = self.tools[tool] = _ToolCounts(at, at)
        counts.last = at
        if outcome is None:
            counts.began += count
        else:
            counts.ended[outcome] = counts.ended.get(outcome, 0) + count

    def event(self) -> RunningNested:
        tools = self.tools.values()
        return RunningNested(
            began=sum(tool.began for tool in tools),
            ended=sum(sum(tool.ended.values()) for tool in tools),
            completed=sum(tool.ended.get("completed", 0) for tool in tools),
            calls=tuple(self.calls.values()),
            tools=tuple(
                ShownTool(
                    tool=name,
                    began=tool.began,
                    ended=dict(tool.ended),
                    first=tool.first,
                    last=tool.last,
                )
                for name, tool in self.tools.items()
            ),
        )


class _Running(msgspec.Struct):
    """A running call."""

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
    """The running calls of one session, with their nested calls."""

    def __init__(self) -> None:
        self._calls: dict[str, _Running] = {}

    def began(self, call_id: str, tool: str) -> None:
        self._calls[call_id] = _Running(tool)

    def ended(self, call_id: str) -> None:
        self._calls.pop(call_id, None)

    def printed(self, call_id: str, text: str) -> None:
        if (call := self._calls.get(call_id)) is not None:
            call.add(text)

    def progressed(self, call_id: str, done: float, total: float | None, note: str) -> None:
        if (call := self._calls.get(call_id)) is not None:
            call.done, call.total, call.note = done, total, note

    def container_began(self, call_id: str) -> None:
        """Mark a call as a container. Calls that are nested more deeply are not shown."""
        if (call := self._calls.get(call_id)) is not None:
            call.nested = _Nested()

    def nested_began(self, container: str, call: ShownNested) -> None:
        if (nested := self._nested(container)) is not None:
            nested.add(call.tool, None, 1, call.start)
            nested.calls[call.call_id] = call

    def nested_named(self, container: str, call: ShownNested) -> None:
        """Show a call by itself that was only counted before."""
        if (nested := self._nested(container)) is not None:
            nested.calls[call.call_id] = call

    def nested_ended(self, container: str, ended: CallOutcome, at: float) -> None:
        if (nested := self._nested(container)) is not None:
            nested.add(ended.tool, ended.outcome, 1, at)
            if (call := nested.calls.get(ended.call_id)) is None:
                return
            if nested.is_partial:
                del nested.calls[ended.call_id]
            else:
                nested.calls[ended.call_id] = msgspec.structs.replace(
                    call,
                    outcome=ended.outcome,
                    duration=ended.duration,
                    exit_code=ended.exit_code or msgspec.UNSET,
                )

    def nested_counted(
        self, container: str, tool: str, outcome: Outcome | None, count: int, at: float
    ) -> None:
        """Count calls that began (no outcome) or ended and were not shown one by one."""
        if (nested := self._nested(container)) is not None:
            if not nested.is_partial:
                nested.drop_ended()
            nested.add(tool, outcome, count, at)

    def _nested(self, container: str) -> _Nested | None:
        call = self._calls.get(container)
        return None if call is None else call.nested

    def running(self) -> tuple[RunningCall, ...]:
        return tuple(
            RunningCall(
                call_id=call_id,
                tool=call.tool,
                output=call.output(),
                done=call.done,
                total=call.total,
                note=call.note,
                nested=call.nested.event() if call.nested and call.nested.tools else None,
            )
            for call_id, call in self._calls.items()
        )
