"""A running call of an MCP server keeps its own end, whatever becomes of its server's requests."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.ports.tool_context import ToolContext
from keryx.tools.mcp.wire.running import RunningCall

pytestmark = pytest.mark.promise("kit.6")
PATIENCE = 20.0


class Context:
    """The part of a call's context that the requests use."""

    def cancel_after(self, seconds: float) -> None:
        """Do nothing: this call has no timeout."""


@pytest.mark.parametrize("fails", [False, True], ids=["result", "error"])
async def test_a_request_that_the_server_withdrew_does_not_change_how_the_call_ends(
    fails: bool,
) -> None:
    group = Group(Scope("test"), on_error=lambda name, error: None)
    call = RunningCall(cast("ToolContext", Context()), 5.0)
    ends, asked = asyncio.Event(), asyncio.Event()

    async def work() -> str:
        await ends.wait()
        if fails:
            raise ConnectionError("the server is gone")
        return "the answer"

    async def ask(context: ToolContext) -> Any:
        del context
        asked.set()
        await asyncio.get_running_loop().create_future()

    async with asyncio.timeout(PATIENCE), group:
        running = asyncio.ensure_future(call.run(group, work))
        first = asyncio.ensure_future(call.ask(ask))
        await asked.wait()
        second = asyncio.ensure_future(call.ask(ask))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        ends.set()
        await asyncio.wait([running])
        if fails:
            assert isinstance(running.exception(), ConnectionError)
        else:
            assert running.result() == "the answer"
        assert await first is None
