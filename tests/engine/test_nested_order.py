"""Calls of a container that read and write: ordered by what the paths are, not by how they are
written, also for a read that was let in before anyone asked what its path is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from keryx.aio.group import Group
from keryx.engine.calls.call_hooks import CallView, Consent
from keryx.ports.effects import NO_EFFECTS, Effects, reads, writes
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import FunctionTool, tool
from tests.engine.gated_tools import Gates
from tests.engine.host import Host, Recorder

Nested = Callable[[str, str], None]
Steps = Callable[[Nested], Coroutine[Any, Any, None]]


def by_name(args: Any) -> Effects:
    return (writes if args.name.startswith("write") else reads)(args.path)


@pytest.fixture
def folders(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("real")


def container(gates: Gates, steps: Steps) -> FunctionTool[..., Any]:
    @tool(effects=NO_EFFECTS, container=True)
    async def script(context: ToolContext) -> None:
        """Start calls one by one, as the test says."""
        async with Group(context.scope) as group:

            def call(name: str, path: str) -> None:
                async def one() -> None:
                    ended = await context.call(gates.tool.name, {"name": name, "path": path})
                    assert ended.outcome == "completed"

                group.start(one(), name=name)

            await steps(call)

    return script


async def play(host: Host, gates: Gates, steps: Steps, hooks: Recorder | None = None) -> None:
    script = container(gates, steps)
    environment = host.environment(gates.tool, script)
    if hooks is not None:
        environment.hooks = hooks
    (outcome,) = await host.run(environment, host.call(script))
    assert outcome.outcome == "completed", outcome.text


@pytest.mark.usefixtures("folders")
async def test_a_write_waits_for_a_read_that_had_another_name_for_the_file(host: Host) -> None:
    gates = Gates(by_name)

    async def steps(call: Nested) -> None:
        call("read", "link/file")
        await gates.until_running("read")
        call("write", "real/file")
        call("write elsewhere", "other/file")
        await gates.until_running("read", "write elsewhere")
        gates.open("read")
        await gates.until_running("write", "write elsewhere")
        gates.open("write", "write elsewhere")

    await play(host, gates, steps)


@pytest.mark.usefixtures("folders")
async def test_a_read_waits_for_a_write_that_had_another_name_for_the_file(host: Host) -> None:
    gates = Gates(by_name)

    async def steps(call: Nested) -> None:
        call("write", "real/file")
        await gates.until_running("write")
        call("read", "link/file")
        call("read elsewhere", "other/file")
        await gates.until_running("write", "read elsewhere")
        gates.open("write")
        await gates.until_running("read", "read elsewhere")
        gates.open("read", "read elsewhere")

    await play(host, gates, steps)


@pytest.mark.usefixtures("folders")
async def test_a_read_that_begins_while_a_write_waits_for_approval_is_ordered_too(
    host: Host,
) -> None:
    gates = Gates(by_name)
    requested, consent = asyncio.Event(), asyncio.Event()

    class AsksFirst(Recorder):
        async def approve(self, call: CallView) -> Consent:
            if getattr(call.args, "name", "") == "write":
                requested.set()
                await consent.wait()
            return Consent()

    async def steps(call: Nested) -> None:
        call("write", "real/file")
        await requested.wait()
        call("read", "link/file")
        await gates.until_running("read")
        consent.set()
        call("read elsewhere", "other/file")
        await gates.until_running("read", "read elsewhere")
        gates.open("read")
        await gates.until_running("write", "read elsewhere")
        gates.open("write", "read elsewhere")

    await play(host, gates, steps, AsksFirst())
