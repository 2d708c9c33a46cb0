"""The executor: calls run side by side, in the order that their effects demand, to one outcome."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from keryx.aio.scope import get_token
from keryx.engine.calls.call_hooks import CallView, Consent
from keryx.errors import ToolFailedError
from keryx.messages import CallOutcome
from keryx.ports.effects import NO_EFFECTS, Effects, reads, uses, writes
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from tests.engine.gated_tools import Gates, echo, echo_blocking, turns
from tests.engine.host import Host, Recorder, recorder

# -- results


async def test_results_come_in_call_order_and_are_announced_as_they_end(host: Host) -> None:
    gates = Gates()
    environment = host.environment(gates.tool)
    batch = host.start(environment, *(host.call(gates.tool, name=name) for name in "abc"))
    await turns()
    gates.open("c")
    await recorder(environment).until_noted("completed", "c3")
    gates.open("a", "b")
    assert [outcome.text for outcome in await batch.outcomes()] == ["a", "b", "c"]
    assert [call for what, call in recorder(environment).log if what == "completed"] == [
        "c3",
        "c1",
        "c2",
    ]


async def test_outcomes_can_be_read_as_they_come(host: Host) -> None:
    gates = Gates()
    environment = host.environment(gates.tool, echo)
    batch = host.start(environment, host.call(gates.tool, name="a"), host.call(echo, text="b"))
    seen: list[str] = []
    async for outcome in batch.as_ended():
        seen.append(outcome.text)
        gates.open("a")
    assert seen == ["b", "a"]


@pytest.mark.parametrize("tested_tool", [echo, echo_blocking], ids=["async", "blocking"])
async def test_a_completed_call_says_so(host: Host, tested_tool: Any) -> None:
    (outcome,) = await host.run(host.environment(tested_tool), host.call(tested_tool, text="hi"))
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

    (outcome,) = await host.run(host.environment(look), host.call(look))
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

    environment = host.environment(on_loop, in_thread)
    await host.run(environment, host.call(on_loop), host.call(in_thread))
    await turns()
    assert recorder(environment).texts == {"c1": "one two", "c2": "one two"}
    assert {("progress 1/2 half", "c1"), ("progress 1/2 half", "c2")} <= set(
        recorder(environment).log
    )


async def test_a_blocking_tool_calls_async_code_through_its_context(host: Host) -> None:
    async def on_the_loop(value: int) -> int:
        await asyncio.sleep(0)
        return value + 1

    @tool(effects=NO_EFFECTS)
    def ask(context: ToolContext) -> int:
        """Call async code."""
        return context.from_thread(on_the_loop, 1)

    (outcome,) = await host.run(host.environment(ask), host.call(ask))
    assert outcome.text == "2"


# -- order


def by_path(args: Any) -> Effects:
    return writes(args.path) if args.path else NO_EFFECTS


async def test_calls_without_conflict_run_side_by_side(host: Host) -> None:
    gates = Gates(by_path)
    batch = host.start(
        host.environment(gates.tool),
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
        host.environment(gates.tool),
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
        host.environment(gates.tool),
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
        host.environment(undeclared, echo),
        host.call(undeclared, name="a"),
        host.call(undeclared, name="b"),
    )
    assert order == ["a in", "a out", "b in", "b out"]


async def test_peers_run_side_by_side_and_order_everyone_else(host: Host) -> None:
    gates = Gates(lambda args: writes(".", peers="terminal") if args.path == "t" else reads("f"))
    batch = host.start(
        host.environment(gates.tool),
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
        host.environment(gates.tool),
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

    outcomes = await host.run(
        host.environment(fail), host.call(fail, name="a"), host.call(fail, name="b")
    )
    assert [(o.outcome, o.text) for o in outcomes] == [("failed", "a"), ("failed", "b")]


# -- approval and log


async def test_a_denied_call_never_starts_and_says_why(host: Host) -> None:
    class Denies(Recorder):
        async def approve(self, call: CallView) -> Consent:
            return Consent("expired")

    environment = host.environment(echo, hooks=Denies())
    (outcome,) = await host.run(environment, host.call(echo, text="x"))
    assert (outcome.outcome, outcome.reason, outcome.started) == ("denied", "expired", False)


async def test_a_call_that_waits_for_approval_holds_back_only_later_conflicting_siblings(
    host: Host,
) -> None:
    requested = asyncio.Event()

    class Asks(Recorder):
        async def approve(self, call: CallView) -> Consent:
            if call.call_id == "c1":
                await requested.wait()
            return Consent()

    gates = Gates(by_path)
    environment = host.environment(gates.tool, hooks=Asks())
    batch = host.start(
        environment,
        host.call(gates.tool, name="asks", path="x"),
        host.call(gates.tool, name="later", path="x"),
        host.call(gates.tool, name="free", path="y"),
    )
    other_step = host.start(environment, host.call(gates.tool, name="other step", path="x"))
    await gates.until_running("free", "other step")
    gates.open("other step", "free", "asks", "later")
    await other_step.outcomes()
    requested.set()
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

    await host.run(host.environment(act, hooks=Commits()), host.call(act))
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

    batch = host.start(host.environment(act, hooks=Commits()), host.call(act))
    await entered.wait()
    batch.cancel("c1", "steer")
    await turns()
    commit.set()
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason, outcome.started) == ("cancelled", "steer", False)
    assert acted == []


async def test_a_witness_that_breaks_holds_nobody_and_is_reported(host: Host) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: reported.append(context["exception"])
    )

    class Breaks(Recorder):
        def ended(self, call: CallView, outcome: CallOutcome) -> None:
            raise ZeroDivisionError

    (outcome,) = await host.run(host.environment(echo, hooks=Breaks()), host.call(echo, text="x"))
    assert outcome.outcome == "completed"
    assert [type(error) for error in reported] == [ZeroDivisionError]
    (after,) = await host.run(host.environment(echo), host.call(echo, text="still here"))
    assert after.text == "still here"
