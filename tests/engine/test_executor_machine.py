"""Any trees of containers and leaves, let go and cancelled in any order.

No deadlock, call order kept, never two conflicting leaves at once, one outcome per call, and
every table empty at the end.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from keryx.aio.bridge import Bridge
from keryx.aio.clock import FakeClock
from keryx.aio.scope import EXIT_REPORT, GRACE, Reason, Scope
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallView, NoHooks
from keryx.engine.effects import conflict
from keryx.engine.executor import Executor
from keryx.engine.steps.batch import Batch
from keryx.messages import CallOutcome, ToolCall
from keryx.ports.effects import EXCLUSIVE, NO_EFFECTS, Effects, uses
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool

EFFECTS: list[Effects] = [
    NO_EFFECTS,
    EXCLUSIVE,
    uses("a"),
    uses("a", writes=False),
    uses("b"),
    uses("a", writes=False) | uses("b"),
]

pytestmark = pytest.mark.promise("house.4")


@dataclass(eq=False)
class Plan:
    """What one call shall do."""

    effects: Effects
    stubborn: bool = False
    parts: list[Plan] = field(default_factory=list["Plan"])
    number: int = 0

    @property
    def tool(self) -> str:
        return "box" if self.parts else "leaf"


leaves = st.builds(
    Plan, effects=st.sampled_from(EFFECTS), stubborn=st.sampled_from([False] * 5 + [True])
)
plans = st.recursive(
    leaves,
    lambda parts: st.builds(
        Plan, effects=st.sampled_from(EFFECTS), parts=st.lists(parts, min_size=1, max_size=3)
    ),
    max_leaves=6,
)


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()
        self.numbers = itertools.count(1)
        self.plans: dict[int, Plan] = {}
        self.gates: dict[int, asyncio.Event] = {}
        self.running: dict[int, Plan] = {}
        self.outcomes: dict[str, list[str]] = {}
        self.started: set[str] = set()
        self.settled: set[str] = set()
        self.steps: list[tuple[Batch, list[Plan], Scope]] = []
        self.do(self._open())

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        # A deadlock shall fail, not hang.
        return self.loop.run_until_complete(asyncio.wait_for(work, 20))

    async def _open(self) -> None:
        self.root = Scope("host", clock=self.clock)
        self.bridge = Bridge(self.root)
        self.executor = Executor(self.root, self.bridge, loop_slots=3)
        leaf, box = self._tools()
        self.environment = CallEnvironment(
            session_id="s1",
            tools={"leaf": leaf, "box": box},
            workspace=Path("/"),
            loop=self.loop,
            bridge=self.bridge,
            hooks=Watch(self),
        )

    def _tools(self) -> Any:
        def effects(args: Any) -> Effects:
            return self.plans[args.plan].effects

        @tool(effects=effects)
        async def leaf(plan: int) -> None:
            """Hold what was declared until let go."""
            mine = self.plans[plan]
            self.running[plan] = mine
            try:
                while not self.gates[plan].is_set():
                    try:
                        await self.gates[plan].wait()
                    except asyncio.CancelledError:
                        if not mine.stubborn:
                            raise
            finally:
                self.running.pop(plan, None)

        @tool(effects=effects, container=True)
        async def box(plan: int, context: ToolContext) -> None:
            """Call all parts at once."""
            async with asyncio.TaskGroup() as group:
                for part in self.plans[plan].parts:
                    self.number(part)
                    group.create_task(context.call(part.tool, {"plan": part.number}))

        return leaf, box

    def number(self, plan: Plan) -> None:
        plan.number = next(self.numbers)
        self.plans[plan.number] = plan
        self.gates[plan.number] = asyncio.Event()

    async def _settle(self) -> None:
        # Deeper than any chain of wake-ups in these trees.
        for _ in range(60):
            await asyncio.sleep(0)

    @rule(step=st.lists(plans, min_size=1, max_size=4))
    def start(self, step: list[Plan]) -> None:
        # hypothesis may hand out one object twice
        step = [Plan(plan.effects, plan.stubborn, plan.parts) for plan in step]
        for plan in step:
            self.number(plan)

        async def begin() -> None:
            turn = self.root.child("turn")
            calls = [
                ToolCall(f"p{plan.number}", plan.tool, f'{{"plan":{plan.number}}}') for plan in step
            ]
            self.steps.append((self.executor.start(self.environment, calls, turn), step, turn))
            await self._settle()

        self.do(begin())

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        self.gates[data.draw(st.sampled_from(sorted(self.running)))].set()
        self.do(self._settle())

    @precondition(lambda self: self.steps)
    @rule(data=st.data(), reason=st.sampled_from(["interrupt", "steer"]))
    def cancel_one(self, data: st.DataObject, reason: Reason) -> None:
        batch, step, _ = data.draw(st.sampled_from(self.steps))
        plan = data.draw(st.sampled_from(step))
        batch.cancel(f"p{plan.number}", reason)
        self.do(self._settle())

    @precondition(lambda self: self.steps)
    @rule(data=st.data())
    def cancel_all(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.steps))[2].cancel("interrupt")
        self.do(self._settle())

    @rule()
    def pass_a_grace(self) -> None:
        self.clock.advance(GRACE)
        self.do(self._settle())

    @invariant()
    def no_two_conflicting_leaves_run(self) -> None:
        over = {plan for plan in self.running.values() if self._has_outcome(plan)}
        live = [plan for plan in self.running.values() if plan not in over]
        for one, other in itertools.combinations(live, 2):
            assert not conflict(one.effects, other.effects)

    def _has_outcome(self, plan: Plan) -> bool:
        return any(
            self.outcomes.get(call_id)
            for call_id, number in self.numbers_by_call.items()
            if number == plan.number
        )

    @property
    def numbers_by_call(self) -> dict[str, int]:
        return Watch.numbers_of(self)

    @invariant()
    def calls_of_a_step_keep_their_order(self) -> None:
        for _, step, _ in self.steps:
            for earlier, later in itertools.combinations(step, 2):
                if conflict(earlier.effects, later.effects) and f"p{later.number}" in self.started:
                    assert self.outcomes.get(f"p{earlier.number}")

    @invariant()
    def no_call_has_two_outcomes(self) -> None:
        assert all(len(outcomes) == 1 for outcomes in self.outcomes.values())

    def teardown(self) -> None:
        try:
            self.do(self._end())
        finally:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    async def _end(self) -> None:
        for _ in range(200):
            for gate in self.gates.values():
                gate.set()
            await self._settle()
            self.clock.advance(GRACE + EXIT_REPORT)
            await self._settle()
            if self.executor.running == 0 and not self.executor.left_over:
                break
        assert self.executor.running == 0, "a deadlock: gates are open and calls still wait"
        for batch, step, turn in self.steps:
            assert len(await batch.outcomes()) == len(step)
            assert turn.children == ()
            turn.close()
        assert len(self.environment.holdings) == 0
        assert self.environment.left_over == {}
        assert self.executor.left_over == ()
        assert not self.running
        assert len(self.root.deadlines) == 0
        await self.executor.close()
        await self.bridge.close()


class Watch(NoHooks):
    """Tells the machine what happens."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.numbers: dict[str, int] = {}

    @staticmethod
    def numbers_of(machine: Machine) -> dict[str, int]:
        assert isinstance(machine.environment.hooks, Watch)
        return machine.environment.hooks.numbers

    async def starting(self, call: CallView) -> None:
        self.numbers[call.call_id] = call.args.plan
        self.machine.started.add(call.call_id)

    def ended(self, call: CallView, outcome: CallOutcome) -> None:
        self.machine.outcomes.setdefault(call.call_id, []).append(outcome.outcome)

    def settled(self, call: CallView, duration: float) -> None:
        self.machine.settled.add(call.call_id)


TestExecutor = Machine.TestCase
