"""The executor's record of one tool call, from its acceptance to its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

from keryx.aio.bridge import ThreadWork
from keryx.aio.clock import Deadline
from keryx.aio.scope import EXIT_REPORT, Reason, Scope
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.output import CallOutput, Room
from keryx.engine.calls.slots import Slots
from keryx.errors import ToolCancelledError
from keryx.messages import NO_NEEDS, CallOutcome, Needs
from keryx.ports.effects import NO_EFFECTS, Effects
from keryx.ports.place import Process
from keryx.ports.tool import Tool

Phase = Literal["accepted", "waiting", "starting", "running", "leaving", "ended"]
"""waiting: for order, approval, effects or a slot. starting: being logged, before it acts.
leaving: the tool has returned, what it left behind is being ended."""

# Timers of a loop that has time for them come within a few milliseconds.
LATE: Final = 0.02


class Call:
    """One call. Changes on the owner loop only."""

    __slots__ = (
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
        "latest",
        "nested",
        "nested_left_over",
        "ordered",
        "output",
        "overlaps",
        "parent",
        "phase",
        "processes",
        "quiet",
        "room",
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
        self.effects: Effects = NO_EFFECTS
        self.granted: Needs = NO_NEEDS
        self.overlaps: tuple[str, ...] = ()
        self.started_at: float | None = None
        self.latest: float | None = None
        self.ended: asyncio.Future[CallOutcome] = environment.loop.create_future()
        self.room = Room() if tool.container else None
        above = None if parent is None else parent.room
        self.output = CallOutput(environment.loop, self._publish, environment.redactor, above)
        self.task: asyncio.Task[None] | None = None
        self.thread: ThreadWork[Any] | None = None
        self.ladder: Deadline | None = None
        self.holds_slot = False
        # Step order: whether it is known yet, how many earlier calls are in the way, and who
        # waits for this one.
        self.ordered: asyncio.Future[None] | None = None
        self.blockers = 0
        self.unblocked: asyncio.Future[None] | None = None
        self.dependents: list[Call] = []
        # What hangs below it; `children` counts all there ever were, for their ids.
        self.children = 0
        self.nested: set[Call] = set()
        self.nested_left_over: list[str] = []
        self.processes: set[Process] = set()
        self.starts: Slots | None = None
        self.quiet: asyncio.Future[None] | None = None

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
        """Whatever else it or its tool says later, it ends by then."""
        self.latest = self.scope.clock.monotonic() + seconds
        self.scope.cancel_at(self.latest, by="timeout")

    def cancel_after(self, seconds: float) -> None:
        """End it so long after now, unless something says otherwise later."""
        when = self.scope.clock.monotonic() + seconds
        self.scope.cancel_at(when if self.latest is None else min(when, self.latest), by="timeout")

    def climb_after(self, seconds: float, rung: Callable[[Call], None]) -> None:
        """The next rung of the ladder."""
        due = self.scope.clock.monotonic() + seconds
        self.ladder = self.scope.deadlines.add(due, lambda: self._climb(due, rung))

    def _climb(self, due: float, rung: Callable[[Call], None]) -> None:
        """A loop that comes late may not have read yet that the call has ended: it does, first."""
        now = self.scope.clock.monotonic()
        if now - due < LATE:
            rung(self)
        else:
            self.ladder = self.scope.deadlines.add(now + EXIT_REPORT, lambda: rung(self))

    def refuse_if_over(self) -> None:
        """A call that has its outcome may act no more, whatever still runs of it."""
        if self.phase == "ended":
            raise ToolCancelledError(self.scope.reason or "this call is over")

    def refuse_if_cancelled(self) -> None:
        """Nothing new starts in a call that is cancelled."""
        self.refuse_if_over()
        self.scope.raise_if_cancelled()

    async def hold_start(self, starts: Slots) -> None:
        """Before its first process; however many it starts, it counts once, until it ends."""
        if self.starts is None:
            await starts.take(self.environment.session_id)
            if self.starts is not None or self.phase == "ended":
                starts.release(
                    self.environment.session_id
                )  # it started two at once, or is left over
            else:
                self.starts = starts

    def unblock(self) -> None:
        """One earlier call is out of the way."""
        self.blockers -= 1
        if self.blockers == 0:
            if self.phase == "ended":
                self.let_go()
            elif self.unblocked is not None and not self.unblocked.done():
                self.unblocked.set_result(None)

    def let_go(self) -> None:
        """Tell the later calls that wait for this one, unless it still waits for earlier ones.

        A call that was cancelled while it waited keeps its place in the order: whoever relies
        on it to come after a third one would otherwise overtake that.
        """
        if self.blockers == 0:
            for dependent in self.dependents:
                dependent.unblock()
            self.dependents.clear()

    def forget_nested(self, nested: Call, outcome: CallOutcome) -> None:
        """A nested call has its outcome; a parent that waits for quiet may go on."""
        self.nested.discard(nested)
        self.nested_left_over += outcome.left_over
        if not self.nested and self.quiet is not None and not self.quiet.done():
            self.quiet.set_result(None)

    def _publish(self, stream: str, text: str) -> None:
        if self.phase != "ended":
            self.environment.hooks.output(self, stream, text)
