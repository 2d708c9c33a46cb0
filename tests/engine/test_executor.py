"""The executor: calls run side by side, in the order that their effects demand, to one outcome."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keryx.aio.scope import Scope, get_token
from keryx.engine.witness import CallView
from keryx.errors import DeveloperMustActError, ToolCancelledError, ToolFailedError
from keryx.messages import CallOutcome
from keryx.ports.effects import NO_EFFECTS, Effects, reads, uses, writes
from keryx.ports.tool import Complete, ToolContext
from keryx.tools.function import tool
from tests.engine.host import Host, Recorder, recorder


@tool(effects=NO_EFFECTS)
async def echo(text: str) -> str:
    """Say it again."""
    return text


@tool(effects=NO_EFFECTS)
def echo_blocking(text: str) -> str:
    """Say it again, in a thread."""
    return text


class Gates:
    """A tool whose calls wait until the test lets each of them go."""

    def __init__(self, effects: Effects | Callable[[Any], Effects] = NO_EFFECTS) -> None:
        self.running: list[str] = []
        self.order: list[str] = []
        self.changed = asyncio.Event()
        self._gates: dict[str, asyncio.Event] = {}

        @tool(effects=effects)
        async def gate(name: str, path: str = "") -> str:
            """Wait to be let go."""
            self.running.append(name)
            self.order.append(name)
            self.changed.set()
            try:
                await self._gate(name).wait()
            finally:
                self.running.remove(name)
                self.changed.set()
            return name

        self.tool = gate

    async def until_running(self, *names: str) -> None:
        """Wait by event until just these run."""
        while sorted(self.running) != sorted(names):
            self.changed.clear()
            await self.changed.wait()
        await turns()
        assert sorted(self.running) == sorted(names)

    def _gate(self, name: str) -> asyncio.Event:
        return self._gates.setdefault(name, asyncio.Event())

    def open(self, *names: str) -> None:
        for name in names:
            self._gate(name).set()


async def turns(count: int = 10) -> None:
    """Let everything that can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)


# -- results


async def test_results_come_in_call_order_and_are_announced_as_they_end(host: Host) -> None:
    gates = Gates()
    lane = host.lane(gates.tool)
    batch = host.start(lane, *(host.call(gates.tool, name=name) for name in "abc"))
    await turns()
    gates.open("c")
    await recorder(lane).until_noted("completed", "c3")
    gates.open("a", "b")
    assert [outcome.text for outcome in await batch.outcomes()] == ["a", "b", "c"]
    assert [call for what, call in recorder(lane).log if what == "completed"] == ["c3", "c1", "c2"]


async def test_outcomes_can_be_read_as_they_come(host: Host) -> None:
    gates = Gates()
    lane = host.lane(gates.tool, echo)
    batch = host.start(lane, host.call(gates.tool, name="a"), host.call(echo, text="b"))
    seen: list[str] = []
    async for outcome in batch.as_ended():
        seen.append(outcome.text)
        gates.open("a")
    assert seen == ["b", "a"]


@pytest.mark.parametrize("each", [echo, echo_blocking], ids=["async", "blocking"])
async def test_a_completed_call_says_so(host: Host, each: Any) -> None:
    (outcome,) = await host.run(host.lane(each), host.call(each, text="hi"))
    assert (outcome.outcome, outcome.text, outcome.started) == ("completed", "hi", True)
    assert outcome.duration >= 0
    assert outcome.left_over == ()


async def test_a_tool_sees_its_session_through_its_context(host: Host, tmp_path: Path) -> None:
    @tool(effects=NO_EFFECTS)
    async def look(context: ToolContext) -> dict[str, Any]:
        """Look around."""
        token = get_token()
        return {
            "session": context.session_id,
            "call": context.call_id,
            "workspace": str(context.workspace),
            "path": context.environment["PATH"],
            "token": token is not None and token.is_cancelled,
        }

    (outcome,) = await host.run(host.lane(look), host.call(look))
    assert outcome.text == (
        '{"session":"s1","call":"c1","workspace":"' + str(tmp_path) + '",'
        '"path":"/usr/bin:/bin","token":false}'
    )


async def test_output_and_progress_are_streamed_from_the_loop_and_from_threads(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    async def on_loop(context: ToolContext) -> None:
        """Emit on the loop."""
        context.emit("one ")
        context.emit("two")
        context.progress(1, 2, "half")

    @tool(effects=NO_EFFECTS)
    def in_thread(context: ToolContext) -> None:
        """Emit from a thread."""
        context.emit("one ")
        context.emit("two")
        context.progress(1, 2, "half")

    lane = host.lane(on_loop, in_thread)
    await host.run(lane, host.call(on_loop), host.call(in_thread))
    await turns()
    assert recorder(lane).texts == {"c1": "one two", "c2": "one two"}
    assert {("progress 1/2 half", "c1"), ("progress 1/2 half", "c2")} <= set(recorder(lane).log)


async def test_a_blocking_tool_calls_async_code_through_its_context(host: Host) -> None:
    async def on_the_loop(value: int) -> int:
        await asyncio.sleep(0)
        return value + 1

    @tool(effects=NO_EFFECTS)
    def ask(context: ToolContext) -> int:
        """Call async code."""
        return context.from_thread(on_the_loop, 1)

    (outcome,) = await host.run(host.lane(ask), host.call(ask))
    assert outcome.text == "2"


# -- order


def by_path(args: Any) -> Effects:
    return writes(args.path) if args.path else NO_EFFECTS


async def test_calls_without_conflict_run_side_by_side(host: Host) -> None:
    gates = Gates(by_path)
    batch = host.start(
        host.lane(gates.tool),
        host.call(gates.tool, name="a", path="x"),
        host.call(gates.tool, name="b", path="y/z"),
        host.call(gates.tool, name="c"),
    )
    await gates.until_running("a", "b", "c")
    gates.open("a", "b", "c")
    await batch.outcomes()


async def test_conflicting_calls_run_in_call_order(host: Host) -> None:
    gates = Gates(by_path)
    batch = host.start(
        host.lane(gates.tool),
        host.call(gates.tool, name="a", path="tree"),
        host.call(gates.tool, name="b", path="tree/leaf"),
        host.call(gates.tool, name="c", path="tree/other"),
        host.call(gates.tool, name="d", path="tree/./x/../leaf"),
    )
    await gates.until_running("a")
    gates.open("a")
    await gates.until_running("b", "c")
    gates.open("b")
    await gates.until_running("c", "d")
    gates.open("c", "d")
    await batch.outcomes()


async def test_paths_are_compared_in_canonical_form(host: Host, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    gates = Gates(by_path)
    batch = host.start(
        host.lane(gates.tool),
        host.call(gates.tool, name="a", path="real/file"),
        host.call(gates.tool, name="b", path="link/file"),
    )
    await gates.until_running("a")
    gates.open("a", "b")
    await batch.outcomes()


async def test_an_undeclared_tool_is_exclusive(host: Host) -> None:
    order: list[str] = []

    @tool
    async def undeclared(name: str) -> None:
        """Who knows what it does."""
        order.append(f"{name} in")
        await turns(3)
        order.append(f"{name} out")

    await host.run(
        host.lane(undeclared, echo),
        host.call(undeclared, name="a"),
        host.call(undeclared, name="b"),
    )
    assert order == ["a in", "a out", "b in", "b out"]


async def test_peers_run_side_by_side_and_order_everyone_else(host: Host) -> None:
    gates = Gates(lambda args: writes(".", peers="terminal") if args.path == "t" else reads("f"))
    batch = host.start(
        host.lane(gates.tool),
        host.call(gates.tool, name="t1", path="t"),
        host.call(gates.tool, name="t2", path="t"),
        host.call(gates.tool, name="f1", path="f"),
        host.call(gates.tool, name="t3", path="t"),
    )
    await gates.until_running("t1", "t2")
    gates.open("t1", "t2")
    await gates.until_running("f1")
    gates.open("f1")
    await gates.until_running("t3")
    gates.open("t3")
    await batch.outcomes()


async def test_resources_are_named_and_readers_share(host: Host) -> None:
    gates = Gates(lambda args: uses("db", writes=args.path == "w"))
    batch = host.start(
        host.lane(gates.tool),
        *(host.call(gates.tool, name=n, path=p) for n, p in (("a", "r"), ("b", "r"), ("c", "w"))),
    )
    await gates.until_running("a", "b")
    gates.open("a", "b", "c")
    await batch.outcomes()


async def test_a_failed_call_lets_the_next_one_go(host: Host) -> None:
    @tool
    async def fail(name: str) -> None:
        """Fail."""
        raise ToolFailedError(name)

    outcomes = await host.run(host.lane(fail), host.call(fail, name="a"), host.call(fail, name="b"))
    assert [(o.outcome, o.text) for o in outcomes] == [("failed", "a"), ("failed", "b")]


# -- approval and log


async def test_a_denied_call_never_starts_and_says_why(host: Host) -> None:
    class Denies(Recorder):
        async def approve(self, call: CallView) -> str | None:
            return "expired"

    lane = host.lane(echo, witness=Denies())
    (outcome,) = await host.run(lane, host.call(echo, text="x"))
    assert (outcome.outcome, outcome.reason, outcome.started) == ("denied", "expired", False)


async def test_a_call_that_waits_for_approval_holds_back_only_later_conflicting_siblings(
    host: Host,
) -> None:
    asked = asyncio.Event()

    class Asks(Recorder):
        async def approve(self, call: CallView) -> str | None:
            if call.call_id == "c1":
                await asked.wait()
            return None

    gates = Gates(by_path)
    lane = host.lane(gates.tool, witness=Asks())
    batch = host.start(
        lane,
        host.call(gates.tool, name="asks", path="x"),
        host.call(gates.tool, name="later", path="x"),
        host.call(gates.tool, name="free", path="y"),
    )
    other_step = host.start(lane, host.call(gates.tool, name="other step", path="x"))
    await gates.until_running("free", "other step")
    gates.open("other step", "free", "asks", "later")
    await other_step.outcomes()
    asked.set()
    await batch.outcomes()
    assert gates.order[2:] == ["asks", "later"]


async def test_a_call_acts_only_after_its_start_was_logged(host: Host) -> None:
    committed, acted = asyncio.Event(), list[bool]()

    class Commits(Recorder):
        async def starting(self, call: CallView) -> None:
            await turns()
            committed.set()

    @tool(effects=NO_EFFECTS)
    async def act() -> None:
        """Act."""
        acted.append(committed.is_set())

    await host.run(host.lane(act, witness=Commits()), host.call(act))
    assert acted == [True]


async def test_a_call_cancelled_while_its_start_is_logged_does_not_act(host: Host) -> None:
    entered, commit = asyncio.Event(), asyncio.Event()
    acted: list[bool] = []

    class Commits(Recorder):
        async def starting(self, call: CallView) -> None:
            entered.set()
            await commit.wait()

    @tool(effects=NO_EFFECTS)
    async def act() -> None:
        """Act."""
        acted.append(True)

    batch = host.start(host.lane(act, witness=Commits()), host.call(act))
    await entered.wait()
    batch.cancel("c1", "steer")
    await turns()
    commit.set()
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason, outcome.started) == ("cancelled", "steer", False)
    assert acted == []


# -- cancelling


async def test_one_call_is_cancelled_while_the_others_go_on(host: Host) -> None:
    gates = Gates()
    batch = host.start(host.lane(gates.tool), *(host.call(gates.tool, name=name) for name in "abc"))
    await turns()
    assert batch.cancel("c2", "interrupt", by="person") is True
    await gates.until_running("a", "c")
    gates.open("a", "c")
    assert [o.outcome for o in await batch.outcomes()] == ["completed", "cancelled", "completed"]
    assert batch.cancel("c2") is False
    assert batch.cancel("no such call") is False


async def test_cancelling_the_turn_cancels_all_also_those_that_wait(host: Host) -> None:
    gates = Gates(lambda args: writes("x"))
    turn = host.scope.child("turn")
    lane = host.lane(gates.tool)
    batch = host.start(lane, *(host.call(gates.tool, name=name) for name in "ab"), scope=turn)
    await gates.until_running("a")
    turn.cancel("steer")
    outcomes = await batch.outcomes()
    assert [(o.outcome, o.reason, o.started) for o in outcomes] == [
        ("cancelled", "steer", True),
        ("cancelled", "steer", False),
    ]
    assert len(lane.holdings) == 0


async def test_a_call_cancelled_while_it_waits_keeps_its_place_in_the_order(host: Host) -> None:
    gates = Gates(lambda args: Effects(exclusive=True) if not args.path else uses(args.path))
    batch = host.start(
        host.lane(gates.tool),
        host.call(gates.tool, name="first", path="a"),
        host.call(gates.tool, name="exclusive"),
        host.call(gates.tool, name="last", path="a"),
    )
    await gates.until_running("first")
    batch.cancel("c2")
    await turns()
    assert gates.running == ["first"], "the last one conflicts with the first"
    gates.open("first", "last")
    assert [o.outcome for o in await batch.outcomes()] == ["completed", "cancelled", "completed"]


async def test_a_batch_started_in_a_cancelled_turn_never_acts(host: Host) -> None:
    turn = host.scope.child("turn")
    turn.cancel("interrupt")
    (outcome,) = await host.run(host.lane(echo), host.call(echo, text="x"), scope=turn)
    assert (outcome.outcome, outcome.started) == ("cancelled", False)


async def test_what_was_emitted_survives_as_the_partial_result(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    async def half(context: ToolContext) -> str:
        """Do half of it."""
        context.emit("half of it")
        await asyncio.get_running_loop().create_future()
        return "all of it"

    lane = host.lane(half)
    batch = host.start(lane, host.call(half))
    await recorder(lane).until_noted("output", "c1")
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.text) == ("cancelled", "half of it")


@pytest.mark.parametrize("complete", [False, True])
async def test_a_value_returned_within_the_grace_is_partial_unless_marked_complete(
    host: Host, *, complete: bool
) -> None:
    entered = threading.Event()

    @tool(effects=NO_EFFECTS)
    def listen(context: ToolContext) -> Any:
        """Listen to the token."""
        entered.set()
        context.token.wait_cancelled_sync()
        return Complete("done") if complete else "so far"

    batch = host.start(host.lane(listen), host.call(listen))
    await host.bridge.to_thread(entered.wait)
    batch.cancel("c1", "steer")
    (outcome,) = await batch.outcomes()
    expected = ("completed", "done", None) if complete else ("cancelled", "so far", "steer")
    assert (outcome.outcome, outcome.text, outcome.reason) == expected


async def test_a_timeout_counts_from_the_start_of_the_call(host: Host) -> None:
    @tool(effects=NO_EFFECTS, timeout=0.01)
    async def slow(context: ToolContext) -> None:
        """Take too long."""
        context.emit("so far")
        await asyncio.get_running_loop().create_future()

    (outcome,) = await host.run(host.lane(slow), host.call(slow))
    assert (outcome.outcome, outcome.reason, outcome.text) == ("cancelled", "timeout", "so far")


async def test_a_tool_may_let_the_cancellation_error_pass(host: Host) -> None:
    entered = threading.Event()

    @tool(effects=NO_EFFECTS)
    def check(context: ToolContext) -> None:
        """Ask, in a loop, as the report's tools do."""
        entered.set()
        while True:
            context.token.raise_if_cancelled()

    batch = host.start(host.lane(check), host.call(check))
    await host.bridge.to_thread(entered.wait)
    batch.cancel("c1", "steer")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason, outcome.text) == ("cancelled", "steer", "")


async def test_a_tool_cannot_claim_a_cancellation_that_was_not(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    async def lie(kind: str) -> None:
        """Claim to be cancelled."""
        raise asyncio.CancelledError if kind == "asyncio" else ToolCancelledError("interrupt")

    lane = host.lane(lie)
    outcomes = await host.run(lane, host.call(lie, kind="asyncio"), host.call(lie, kind="ours"))
    assert [outcome.outcome for outcome in outcomes] == ["failed", "failed"]


# -- containers


@tool(effects=NO_EFFECTS, container=True)
async def fan_out(names: list[str], context: ToolContext) -> list[str]:
    """Call echo for each name at once."""
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(context.call("echo", {"text": name})) for name in names]
    return [call.result().text for call in calls]


async def test_a_container_calls_tools_side_by_side_each_with_an_id_of_its_own(host: Host) -> None:
    lane = host.lane(fan_out, echo)
    (outcome,) = await host.run(lane, host.call(fan_out, names=["a", "b", "c"]))
    assert outcome.text == '["a","b","c"]'
    assert {call_id for what, call_id in recorder(lane).log if what == "completed"} == {
        "c1",
        "c1.1",
        "c1.2",
        "c1.3",
    }


async def test_nested_calls_of_an_exclusive_container_run(host: Host) -> None:
    @tool(container=True)
    async def exclusive(context: ToolContext) -> str:
        """Call an exclusive leaf from an exclusive container."""
        return (await context.call("leaf", {})).text

    @tool
    async def leaf() -> str:
        """Undeclared, so exclusive."""
        return "ran"

    outcomes = await host.run(
        host.lane(exclusive, leaf), host.call(exclusive), host.call(exclusive), host.call(leaf)
    )
    assert [outcome.text for outcome in outcomes] == ["ran", "ran", "ran"]


async def test_only_a_container_may_call(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    async def sneaky(context: ToolContext) -> None:
        """Not a container."""
        await context.call("echo", {"text": "x"})

    (outcome,) = await host.run(host.lane(sneaky, echo), host.call(sneaky))
    assert outcome.outcome == "failed"
    assert "container=True" in outcome.text


async def test_cancelling_a_container_cancels_what_it_called(host: Host) -> None:
    gates = Gates()

    @tool(effects=NO_EFFECTS, container=True)
    async def outer(context: ToolContext) -> None:
        """Call and wait."""
        await context.call("gate", {"name": "inner"})

    lane = host.lane(outer, gates.tool)
    batch = host.start(lane, host.call(outer))
    await recorder(lane).until_noted("starting", "c1.1")
    await turns()
    batch.cancel("c1", "steer")
    (outcome,) = await batch.outcomes()
    assert outcome.outcome == "cancelled"
    assert gates.running == []
    ends = [entry for entry in recorder(lane).log if entry[0] == "cancelled"]
    assert ends == [("cancelled", "c1.1"), ("cancelled", "c1")], "the inner one ends first"


async def test_a_container_that_returns_early_takes_its_calls_with_it(host: Host) -> None:
    gates = Gates()
    kept: list[asyncio.Task[CallOutcome]] = []

    @tool(effects=NO_EFFECTS, container=True)
    async def hasty(context: ToolContext) -> str:
        """Return without waiting."""
        kept.append(asyncio.create_task(context.call("gate", {"name": "inner"})))
        await turns()
        return "done"

    lane = host.lane(hasty, gates.tool)
    (outcome,) = await host.run(lane, host.call(hasty))
    assert (outcome.outcome, outcome.text) == ("completed", "done")
    assert (await kept[0]).outcome == "cancelled"
    assert gates.running == []


async def test_giving_up_on_a_nested_call_cancels_it(host: Host) -> None:
    gates = Gates()

    @tool(effects=NO_EFFECTS, container=True)
    async def impatient(context: ToolContext) -> str:
        """Wait only a moment."""
        try:
            async with asyncio.timeout(0.01):
                await context.call("gate", {"name": "inner"})
        except TimeoutError:
            return "gave up"
        return "waited"

    lane = host.lane(impatient, gates.tool)
    (outcome,) = await host.run(lane, host.call(impatient))
    assert outcome.text == "gave up"
    assert ("cancelled", "c1.1") in recorder(lane).log


async def test_a_container_that_calls_itself_for_ever_fails(host: Host) -> None:
    @tool(effects=NO_EFFECTS, container=True)
    async def deeper(context: ToolContext) -> str:
        """Call itself."""
        return (await context.call("deeper", {})).text

    (outcome,) = await host.run(host.lane(deeper), host.call(deeper))
    assert "nested 16 deep" in outcome.text


# -- grants, ids, the end


async def test_no_tools_granted_means_no_tools(host: Host) -> None:
    (outcome,) = await host.run(host.lane(), host.call("echo", text="x"))
    assert (outcome.outcome, outcome.started) == ("failed", False)
    assert "no tools are granted" in outcome.text


async def test_two_calls_of_a_step_cannot_share_an_id(host: Host) -> None:
    call = host.call(echo, text="x")
    with pytest.raises(DeveloperMustActError, match="same id"):
        host.start(host.lane(echo), call, call)


async def test_closing_ends_all_calls_with_reason_shutdown(tmp_path: Path, host: Host) -> None:
    gates = Gates()
    batch = host.start(host.lane(gates.tool), host.call(gates.tool, name="a"))
    await turns()
    assert await host.executor.close() == ()
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("cancelled", "shutdown")


async def test_tables_are_empty_when_all_is_done(host: Host) -> None:
    lane = host.lane(fan_out, echo, echo_blocking)
    turn = host.scope.child("turn")
    await host.run(lane, *(host.call(echo, text=str(n)) for n in range(50)), scope=turn)
    await host.run(lane, *(host.call(echo_blocking, text=str(n)) for n in range(50)), scope=turn)
    await host.run(lane, host.call(fan_out, names=["a"] * 20), scope=turn)
    assert host.executor.running == 0
    assert len(lane.holdings) == 0
    assert turn.children == ()
    assert len(host.scope.deadlines) == 0
    assert isinstance(turn, Scope)
