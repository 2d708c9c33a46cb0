"""The executor's record of one tool call, from its acceptance to its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from keryx.aio.bridge import ThreadWork
from keryx.aio.clock import Deadline
from keryx.aio.scope import EXIT_REPORT, Reason, Scope
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.output import CallOutput, MemoryBudget
from keryx.engine.calls.slots import Slots
from keryx.errors import ToolCancelledError
from keryx.messages import NO_NEEDS, CallOutcome, HookAction, Needs
from keryx.ports.effects import NO_EFFECTS, Effects
from keryx.ports.place import Process
from keryx.ports.tool import Tool

Phase = Literal["accepted", "waiting", "starting", "running", "reviewing", "leaving", "ended"]
"""waiting: for its hooks, its order in the step, approval, effects or a slot. starting: being
logged, before it acts. reviewing: the tool has returned, and hooks see the result. leaving: what
the tool started is being ended."""

# Seconds. Timers of a loop that is not overloaded fire within a few milliseconds.
LATE: Final = 0.02


class Call:
    """One call. Changes on the owner loop only."""

    __slots__ = (
        "actions",
        "args",
        "arguments",
        "blockers",
        "call_id",
        "children",
        "dependents",
        "effects",
        "ended",
        "environment",
        "granted",
        "holds_slot",
        "ladder",
        "latest_end",
        "memory",
        "nested",
        "nested_ended",
        "nested_left_over",
        "ordered",
        "output",
        "overlaps",
        "parent",
        "phase",
        "processes",
        "raw",
        "reviewed",
        "scope",
        "started_at",
        "starts",
        "task",
        "thread",
        "tool",
        "unblocked",
    )

    def __init__(
        self,
        environment: CallEnvironment,
        call_id: str,
        tool: Tool,
        args: Any,
        *,
        arguments: str,
        scope: Scope,
        parent: Call | None,
    ) -> None:
        self.environment = environment
        self.call_id = call_id
        self.tool = tool
        self.args = args
        self.arguments = arguments
        self.scope = scope
        self.parent = parent
        self.phase: Phase = "accepted"
        # Hooks: what they did so far; the arguments as they came; and whether the hooks before the
        # call have ended (None: there are none).
        self.actions: list[HookAction] = []
        self.raw: str | bytes | Mapping[str, Any] | None = None
        self.reviewed: asyncio.Future[None] | None = None
        self.effects: Effects = NO_EFFECTS
        self.granted: Needs = NO_NEEDS
        self.overlaps: tuple[str, ...] = ()
        self.started_at: float | None = None
        self.latest_end: float | None = None
        self.ended: asyncio.Future[CallOutcome] = environment.loop.create_future()
        self.memory = MemoryBudget() if tool.container else None
        budget = None if parent is None else parent.memory
        self.output = CallOutput(environment.loop, self._publish, environment.redactor, budget)
        self.task: asyncio.Task[None] | None = None
        self.thread: ThreadWork[Any] | None = None
        self.ladder: Deadline | None = None
        self.holds_slot = False
        # Step order: whether it is set yet, how many earlier calls this one waits for, and which
        # later calls wait for this one.
        self.ordered: asyncio.Future[None] | None = None
        self.blockers = 0
        self.unblocked: asyncio.Future[None] | None = None
        self.dependents: list[Call] = []
        # What the call started. `children` counts all nested calls so far, for their ids.
        self.children = 0
        self.nested: set[Call] = set()
        self.nested_left_over: list[str] = []
        self.processes: set[Process] = set()
        self.starts: Slots | None = None
        self.nested_ended: asyncio.Future[None] | None = None

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def workspace(self) -> Path:
        return self.environment.workspace

    @property
    def reason(self) -> Reason | None:
        return self.scope.reason

    @property
    def holds_processes(self) -> bool:
        return any(process.running for process in self.processes)

    def end_within(self, seconds: float) -> None:
        """Cancel the call after so many seconds; nothing can extend that later."""
        self.latest_end = self.scope.clock.monotonic() + seconds
        self.scope.cancel_at(self.latest_end, by="timeout")

    def cancel_after(self, seconds: float) -> None:
        """Cancel the call after so many seconds; a later call of this method changes the time."""
        when = self.scope.clock.monotonic() + seconds
        self.scope.cancel_at(
            when if self.latest_end is None else min(when, self.latest_end), by="timeout"
        )

    def climb_after(self, seconds: float, action: Callable[[Call], None]) -> None:
        """Schedule the next step of the cancellation ladder."""
        due = self.scope.clock.monotonic() + seconds
        self.ladder = self.scope.deadlines.add(due, lambda: self._climb(due, action))

    def _climb(self, due: float, action: Callable[[Call], None]) -> None:
        """If the timer fired late, give the loop time to read first that the call has ended."""
        now = self.scope.clock.monotonic()
        if now - due < LATE:
            action(self)
        else:
            self.ladder = self.scope.deadlines.add(now + EXIT_REPORT, lambda: action(self))

    def refuse_if_over(self) -> None:
        """Raise if the call has its outcome: what still runs of it may not act any more."""
        if self.phase == "ended":
            raise ToolCancelledError(self.scope.reason or "this call has ended")

    def refuse_if_cancelled(self) -> None:
        """Raise if the call is cancelled or has ended: it may start nothing new."""
        self.refuse_if_over()
        self.scope.raise_if_cancelled()

    async def hold_start(self, starts: Slots) -> None:
        """Take a start slot before the first process. The call holds one slot until it ends."""
        if self.starts is None:
            await starts.take(self.environment.session_id)
            if self.starts is not None or self.phase == "ended":
                starts.release(
                    self.environment.session_id
                )  # it started two at once, or is a left-over
            else:
                self.starts = starts

    def end_review(self) -> None:
        """The hooks before the call have ended, or will never run: others can be ordered."""
        if self.reviewed is not None and not self.reviewed.done():
            self.reviewed.set_result(None)

    def unblock(self) -> None:
        """Count one earlier call of the step as ended."""
        self.blockers -= 1
        if self.blockers == 0:
            if self.phase == "ended":
                self.release_dependents()
            elif self.unblocked is not None and not self.unblocked.done():
                self.unblocked.set_result(None)

    def release_dependents(self) -> None:
        """Unblock the later calls that wait for this one, unless it still waits for earlier ones.

        A call that was cancelled while it waited keeps its place in the order. Otherwise a later
        call could overtake an earlier one that it must follow.
        """
        if self.blockers == 0:
            for dependent in self.dependents:
                dependent.unblock()
            self.dependents.clear()

    def forget_nested(self, nested: Call, outcome: CallOutcome) -> None:
        """Remove a nested call that has its outcome; wake the parent if it was the last one."""
        self.nested.discard(nested)
        self.nested_left_over += outcome.left_over
        if not self.nested and self.nested_ended is not None and not self.nested_ended.done():
            self.nested_ended.set_result(None)

    def _publish(self, stream: str, text: str) -> None:
        if self.phase != "ended":
            self.environment.hooks.output(self, stream, text)
