"""Any interleaving over a scope tree: the first reason stays, and every callback runs once."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from keryx.aio.clock import FakeClock
from keryx.aio.scope import GRACE, Reason, Scope

REASONS: list[Reason] = ["interrupt", "steer", "shutdown"]

pytestmark = pytest.mark.promise("house.4")


class Model:
    """The expected state of one scope, modelled without a tree."""

    def __init__(self, parent: Model | None) -> None:
        self.parent = parent
        self.children: list[Model] = []
        self.reason: str | None = parent.reason if parent else None
        self.callback_count = 0
        self.killed = 0
        self.deadline: float | None = None
        self.closed = False
        if parent:
            parent.children.append(self)

    def cancel(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
            self.deadline = None
        for child in self.children:
            if not child.closed:
                child.cancel(self.reason)


class Node:
    def __init__(self, scope: Scope, model: Model) -> None:
        self.scope = scope
        self.model = model
        scope.on_cancel(self.count_told)
        scope.on_kill(self.count_killed)

    def count_told(self) -> None:
        self.model.callback_count += 1

    def count_killed(self) -> None:
        self.model.killed += 1


class ScopeMachine(RuleBasedStateMachine):
    nodes: Bundle[Node] = Bundle("nodes")

    @initialize(target=nodes)
    def begin(self) -> Node:
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()
        self.all: list[Node] = []
        self.root = self.loop.run_until_complete(self._make())
        return self._add(self.root, Model(None))

    async def _make(self) -> Scope:
        return Scope("root", clock=self.clock)

    def _add(self, scope: Scope, model: Model) -> Node:
        node = Node(scope, model)
        self.all.append(node)
        return node

    @rule(target=nodes, parent=nodes)
    def grow(self, parent: Node) -> Node:
        if parent.model.closed:
            return parent
        return self._add(parent.scope.child("child"), Model(parent.model))

    @rule(node=nodes, reason=st.sampled_from(REASONS))
    def cancel(self, node: Node, reason: Reason) -> None:
        if node.model.closed:
            return
        assert node.scope.cancel(reason) == (node.model.reason is None)
        node.model.cancel(reason)

    @rule(node=nodes, seconds=st.floats(0.01, 2))
    def set_deadline(self, node: Node, seconds: float) -> None:
        self.settle()
        if not node.model.closed and node.model.reason is None:
            node.model.deadline = self.clock.monotonic() + seconds
            node.scope.cancel_at(node.model.deadline)

    @rule(seconds=st.floats(0.01, 1))
    def pass_time(self, seconds: float) -> None:
        self._pass_time(seconds)

    def _pass_time(self, seconds: float) -> None:
        self.settle()
        until = self.clock.monotonic() + seconds
        self.clock.advance(seconds)
        due = [n.model for n in self.all if n.model.deadline is not None and not n.model.closed]
        for model in sorted(due, key=lambda model: cast("float", model.deadline)):
            if model.deadline is not None and model.deadline <= until:
                model.cancel("timeout")
        self.settle()

    @rule(node=consumes(nodes))
    def leave(self, node: Node) -> None:
        if node.model.parent is None or any(not child.closed for child in node.model.children):
            return
        self.settle()
        node.scope.close()
        node.model.closed = True

    def settle(self) -> None:
        """Let the loop deliver what was cancelled."""
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.run_until_complete(asyncio.sleep(0))

    @invariant()
    def reasons_are_the_model_s(self) -> None:
        for node in getattr(self, "all", []):
            assert node.scope.reason == node.model.reason

    def teardown(self) -> None:
        if not hasattr(self, "all"):
            return
        try:
            self._check_all_were_told()
        finally:
            self.loop.close()

    def _check_all_were_told(self) -> None:
        self._pass_time(3)  # past every deadline
        self._pass_time(2 * GRACE)  # past every kill
        for node in self.all:
            if not node.model.closed:
                cancelled = node.model.reason is not None
                assert (node.model.callback_count, node.model.killed) == (cancelled, cancelled)
            assert node.model.callback_count <= 1
            assert node.model.killed <= 1
        for node in reversed(self.all):
            node.scope.close()
        assert len(self.root.deadlines) == 0
        assert self.root.children == ()


TestScopeMachine = ScopeMachine.TestCase
