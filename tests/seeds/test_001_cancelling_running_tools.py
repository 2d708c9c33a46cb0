"""hermes-agent issue #28809: cooperative cancellation for tools that run at the same time.

There, `Future.cancel()` had no effect on running tools, leaving the pool waited for all of them,
a steer was delivered only when everything had run to its end, and most tools could not know.
Here are the report's own scenarios.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from keryx import (
    NO_EFFECTS,
    CancellationToken,
    ToolCancelledError,
    ToolContext,
    get_token,
    is_interrupted,
    tool,
)
from keryx.aio.scope import Reason
from keryx.messages import ToolCall
from tests.engine.host import Host, recorder


def streaming_response(started: threading.Event) -> Iterator[str]:
    """A response that never ends, and that blocks between its chunks."""
    number = 0
    while True:
        yield f"chunk {number}"
        number += 1
        started.set()
        threading.Event().wait(0.001)


@pytest.mark.promise("001.1")
@pytest.mark.parametrize("reason", ["interrupt", "steer"])
async def test_the_report_s_own_tool_pattern_returns_early(host: Host, reason: Reason) -> None:
    started = threading.Event()

    @tool(effects=NO_EFFECTS)
    def some_tool() -> str:
        """Read a stream and look at the token between chunks, as the report proposes."""
        token = get_token()
        for _ in streaming_response(started):
            if token and token.is_cancelled:
                return f"[Cancelled: {token.reason}]"
        return "never"

    batch = host.start(host.environment(some_tool), ToolCall("c1", "some_tool"))
    await host.bridge.to_thread(started.wait)
    batch.cancel("c1", reason)
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.text) == ("cancelled", f"[Cancelled: {reason}]")


@pytest.mark.promise("001.1")
async def test_the_short_form_and_the_raising_form_work_at_any_depth(host: Host) -> None:
    entered = threading.Event()

    def far_down() -> None:
        entered.set()
        while not is_interrupted():
            threading.Event().wait(0.001)
        token = get_token()
        assert isinstance(token, CancellationToken)
        with pytest.raises(ToolCancelledError, match="steer"):
            token.raise_if_cancelled()
        token.raise_if_cancelled()

    @tool(effects=NO_EFFECTS)
    def deep() -> None:
        """Look from far down."""
        far_down()

    batch = host.start(host.environment(deep), ToolCall("c1", "deep"))
    await host.bridge.to_thread(entered.wait)
    batch.cancel("c1", "steer")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("cancelled", "steer")


@pytest.mark.promise("001.1")
async def test_tools_that_never_look_at_the_token_work_as_before(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    def plain(text: str) -> str:
        """Know nothing of tokens."""
        return text.upper()

    (outcome,) = await host.run(
        host.environment(plain), ToolCall("c1", "plain", '{"text": "as before"}')
    )
    assert (outcome.outcome, outcome.text) == ("completed", "AS BEFORE")


@pytest.mark.promise("001.3", "001.5")
async def test_a_steer_reaches_three_running_tools_at_once_and_not_after_they_ended(
    host: Host,
) -> None:
    """The report's evidence: with three running futures, cancelling them did nothing."""
    release = threading.Event()
    running = threading.Barrier(4)

    @tool(effects=NO_EFFECTS)
    def deaf(context: ToolContext) -> str:
        """Run to the end, whatever is asked."""
        context.emit("so far")
        running.wait()
        release.wait()
        return "ran to completion"

    @tool(effects=NO_EFFECTS)
    async def next_step() -> str:
        """What the model asks for after the steer."""
        return "steered"

    environment = host.environment(deaf, next_step)
    turn = host.scope.child("turn")
    batch = host.start(environment, *(ToolCall(f"c{n}", "deaf") for n in range(3)), scope=turn)
    await host.bridge.to_thread(running.wait)
    turn.cancel("steer", by="person")
    outcomes = await batch.outcomes()
    assert [(o.outcome, o.reason, o.text) for o in outcomes] == [("unknown", "steer", "so far")] * 3
    assert not release.is_set(), "all three are still running, and hold nobody"
    (following,) = await host.run(environment, ToolCall("c3", "next_step"))
    assert following.text == "steered"
    release.set()
    await recorder(environment).until(lambda: host.executor.left_over == ())


@pytest.mark.promise("001.3")
async def test_leaving_the_executor_never_blocks_on_a_running_tool(host: Host) -> None:
    """There, `executor.shutdown(wait=True)` undid the break out of the wait loop."""
    release, entered = threading.Event(), threading.Event()

    @tool(effects=NO_EFFECTS)
    def deaf() -> None:
        """Never return."""
        entered.set()
        release.wait()

    batch = host.start(host.environment(deaf), ToolCall("c1", "deaf"))
    await host.bridge.to_thread(entered.wait)
    assert await host.executor.close() == ("c1",)
    assert (await batch.outcomes())[0].outcome == "unknown"
    assert not release.is_set()
    release.set()


@pytest.mark.promise("001.4")
async def test_partial_results_survive_and_are_what_the_model_would_see(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    async def search(context: ToolContext) -> str:
        """Find things one after another."""
        context.emit("result 1\n")
        context.emit("result 2\n")
        await asyncio.get_running_loop().create_future()
        return "all results"

    environment = host.environment(search)
    batch = host.start(environment, ToolCall("c1", "search"))
    await recorder(environment).until(
        lambda: "result 2" in recorder(environment).texts.get("c1", "")
    )
    batch.cancel("c1", "steer")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.text) == ("cancelled", "result 1\nresult 2\n")


@pytest.mark.promise("001.3")
async def test_a_late_interrupt_on_an_idle_session_touches_nobody(host: Host) -> None:
    """There, thread ids are recycled: the next session's tool was interrupted 20 of 20 times."""

    @tool(effects=NO_EFFECTS)
    def look() -> list[object]:
        """Say who runs this, and whether it is interrupted."""
        return [threading.get_ident(), is_interrupted()]

    first_lane, second_lane = (
        host.environment(look, session_id="one"),
        host.environment(look, session_id="two"),
    )
    turn = host.scope.child("turn of the first session")
    (first,) = await host.run(first_lane, ToolCall("c1", "look"), scope=turn)
    turn.cancel("interrupt")
    (second,) = await host.run(second_lane, ToolCall("c1", "look"))
    assert first.text == second.text, "the same thread served both, and saw no interrupt"
