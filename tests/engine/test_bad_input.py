"""Bad input: a clear error or a bounded result, never a crash and never a hang."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from typing import Any

import pytest

from keryx.engine.calls.call_hooks import NoHooks
from keryx.engine.calls.truncation import RESULT_LIMIT
from keryx.messages import CallOutcome, ToolCall
from keryx.ports.effects import NO_EFFECTS, Effects
from keryx.ports.tool import Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from tests.engine.host import Host, recorder

pytestmark = pytest.mark.promise("house.9")


@tool(effects=NO_EFFECTS)
async def add(a: int, b: int = 0) -> int:
    """Add."""
    return a + b


async def one(host: Host, tested_tool: Tool, arguments: str = "{}") -> CallOutcome:
    (outcome,) = await host.run(
        host.environment(tested_tool), ToolCall("c1", tested_tool.name, arguments)
    )
    return outcome


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ('{"a": "one"}', "Expected `int`, got `str`"),
        ("{}", "missing"),
        ('{"a": 1, "c": 2}', "unknown field `c`"),
        ('{"a": 1', "JSON"),
        ("", "missing"),
        ("[1]", "object"),
        ('{"a": 1, "b": null}', "$.b"),
    ],
)
async def test_arguments_that_do_not_fit_are_answered_with_what_is_wrong(
    host: Host, arguments: str, says: str
) -> None:
    outcome = await one(host, add, arguments)
    assert (outcome.outcome, outcome.started) == ("failed", False)
    assert says.lower() in outcome.text.lower()


async def test_fifty_megabytes_of_arguments_are_refused_with_the_limit(host: Host) -> None:
    outcome = await one(host, add, '{"a": "' + "x" * 50_000_000 + '"}')
    assert outcome.outcome == "failed"
    assert "the limit is 16777216" in outcome.text
    assert len(outcome.text) < 1_000


async def test_an_unknown_tool_is_answered_with_those_there_are(host: Host) -> None:
    (outcome,) = await host.run(host.environment(add), ToolCall("c1", "ad"))
    assert outcome.outcome == "failed"
    assert "Did you mean 'add'?" in outcome.text


async def test_one_bad_call_does_not_touch_its_siblings(host: Host) -> None:
    outcomes = await host.run(
        host.environment(add),
        ToolCall("c1", "add", '{"a": 1}'),
        ToolCall("c2", "nothing"),
        ToolCall("c3", "add", "{"),
        ToolCall("c4", "add", '{"a": 4}'),
    )
    assert [outcome.outcome for outcome in outcomes] == [
        "completed",
        "failed",
        "failed",
        "completed",
    ]


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration(), BaseException("base")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_a_tool_that_raises_anything_fails_and_the_host_goes_on(
    host: Host, where: str, error: BaseException
) -> None:
    @tool(effects=NO_EFFECTS)
    async def on_loop() -> None:
        """Raise it."""
        raise error

    @tool(effects=NO_EFFECTS)
    def in_thread() -> None:
        """Raise it."""
        raise error

    outcome = await one(host, on_loop if where == "loop" else in_thread)
    assert outcome.outcome == "failed"
    assert type(error).__name__ in outcome.text
    assert (await one(host, add, '{"a": 1}')).text == "1"


class Unencodable:
    pass


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_a_result_that_cannot_be_encoded_is_a_failure_that_says_so(
    host: Host, where: str
) -> None:
    @tool(effects=NO_EFFECTS)
    async def on_loop() -> Any:
        """Return an object."""
        return {"value": Unencodable()}

    @tool(effects=NO_EFFECTS)
    def in_thread() -> Any:
        """Return an object."""
        return {"value": Unencodable()}

    outcome = await one(host, on_loop if where == "loop" else in_thread)
    assert outcome.outcome == "failed"
    assert "Unencodable has no JSON form" in outcome.text


async def test_a_result_that_contains_itself_is_a_failure(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    async def endless() -> Any:
        """Return a circle."""
        circle: list[Any] = []
        circle.append(circle)
        return circle

    assert (await one(host, endless)).outcome == "failed"


async def test_a_huge_result_is_cut_in_the_middle_and_says_so(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    def huge() -> str:
        """Return a lot."""
        return "begin" + "x" * 20_000_000 + "end"

    outcome = await one(host, huge)
    assert len(outcome.text) < RESULT_LIMIT + 100
    assert outcome.text.startswith("begin")
    assert outcome.text.endswith("end")
    assert "characters left out" in outcome.text


@pytest.mark.parametrize("where", ["process", "thread", "loop"])
@pytest.mark.timeout(120)
async def test_a_gigabyte_of_output_is_bounded(host: Host, where: str) -> None:
    piece = "0123456789abcde\n" * 65_536
    pieces = 1024

    @tool(effects=NO_EFFECTS)
    async def by_process(context: ToolContext) -> None:
        """Let a process write it."""
        script = "echo begin; head -c 1073741824 /dev/zero | tr '\\0' x; echo end"
        async with await context.place.spawn(["/bin/sh", "-c", script]) as process:
            await process.wait()
        raise RuntimeError("show the output")

    @tool(effects=NO_EFFECTS)
    def by_thread(context: ToolContext) -> None:
        """Emit it from a thread."""
        context.emit("begin\n")
        for _ in range(pieces):
            context.emit(piece)
        context.emit("end\n")
        raise RuntimeError("show the output")

    @tool(effects=NO_EFFECTS)
    async def on_loop(context: ToolContext) -> None:
        """Emit it on the loop."""
        context.emit("begin\n")
        for _ in range(pieces):
            context.emit(piece)
            await asyncio.sleep(0)
        context.emit("end\n")
        raise RuntimeError("show the output")

    tested_tool = {"process": by_process, "thread": by_thread, "loop": on_loop}[where]
    before = peak_memory()
    environment = host.environment(tested_tool, hooks=NoHooks())
    (outcome,) = await host.run(environment, ToolCall("c1", tested_tool.name))
    assert outcome.outcome == "failed"
    assert outcome.text.startswith("begin")
    assert "end\n" in outcome.text
    assert "bytes left out" in outcome.text
    assert len(outcome.text) < RESULT_LIMIT
    assert peak_memory() - before < 200_000_000


@pytest.mark.promise("house.2")
async def test_a_warden_that_is_killed_gives_unknown_and_the_next_call_a_new_one(
    host: Host,
) -> None:
    @tool(effects=NO_EFFECTS)
    async def shell(script: str, context: ToolContext) -> None:
        """Run a script."""
        async with await context.place.spawn(["/bin/sh", "-c", script]) as process:
            await process.wait()

    environment = host.environment(shell)
    batch = host.start(
        environment, ToolCall("c1", "shell", '{"script": "echo hanging; sleep 1000"}')
    )
    await recorder(environment).until_noted("output", "c1")
    warden = host.runtime.warden.pid
    assert warden is not None
    os.kill(warden, signal.SIGKILL)
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("unknown", "warden lost")
    assert "hanging" in outcome.text
    (after,) = await host.run(environment, ToolCall("c2", "shell", '{"script": "echo again"}'))
    assert after.outcome == "completed"
    assert recorder(environment).texts["c2"] == "again\n"


async def test_a_tool_whose_effects_cannot_be_told_fails_alone(host: Host) -> None:
    def broken(args: Any) -> Effects:
        raise ZeroDivisionError

    @tool(effects=broken)
    async def undecided() -> None:
        """Has broken effects."""

    outcome = await one(host, undecided)
    assert outcome.outcome == "failed"
    assert "failed to declare its effects" in outcome.text


async def test_a_tool_that_needs_a_process_of_its_own_is_refused_for_now(host: Host) -> None:
    outcome = await one(host, tool(effects=NO_EFFECTS, isolation="process")(importable))
    assert (outcome.outcome, outcome.started) == ("failed", False)
    assert "process of its own" in outcome.text


def importable() -> None:
    """Can be imported."""


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
