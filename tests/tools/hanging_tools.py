"""How each built-in tool is made to hang, and when it does."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keryx.messages import ToolCall
from keryx.tools.files import searching
from tests.tools.tool_session import ToolSession


@dataclass(frozen=True)
class Scenario:
    """A call that never ends by itself."""

    arguments: dict[str, Any]
    how: str
    """How it stops, for the table."""
    keeps: str = ""
    """What is kept of its output."""
    background: bool = False
    slow_ripgrep: bool = False
    """A stand-in for ripgrep, which is too fast to be caught."""


HANGING: dict[str, Scenario] = {
    "terminal": Scenario(
        {"command": "echo hanging; sleep 1000 | cat"},
        "SIGTERM to its whole process tree, SIGKILL after the grace",
        keeps="hanging",
    ),
    "process": Scenario(
        {"action": "wait", "name": "bg1", "seconds": 1000},
        "the wait is cancelled; the background process goes on",
        background=True,
    ),
    "search_files": Scenario(
        {"pattern": "x"},
        "SIGTERM to ripgrep",
        slow_ripgrep=True,
    ),
    "execute_code": Scenario(
        {"code": "print('hanging', flush=True)\nwhile True: pass"},
        "SIGTERM to the script's whole process tree; its calls in flight are cancelled with it",
        keeps="hanging",
    ),
    "clarify": Scenario(
        {"question": "Which one?"},
        "the question expires",
    ),
}

ATOMIC: dict[str, dict[str, Any]] = {
    "read_file": {"path": "a.txt"},
    "write_file": {"path": "a.txt", "content": "other\n", "overwrite": True},
    "patch": {"patch": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"},
    "list_files": {},
    "tool_search": {"query": "anything"},
}
"""Short ones: they are checked before they act, and are over in a moment."""


@asynccontextmanager
async def opened(
    folder: Path, scenario: Scenario
) -> AsyncGenerator[tuple[ToolSession, ToolCall, Callable[[], Awaitable[None]]]]:
    """The tools in a workspace, the call, and a function that returns once the call hangs."""
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    fifo = folder / "hangs"
    os.mkfifo(fifo)
    installed = searching._installed  # pyright: ignore[reportPrivateUsage] (a slow one stands in for it)
    if scenario.slow_ripgrep:
        program = folder / "rg"
        program.write_text(f"#!/bin/sh\necho hanging > {fifo}\nsleep 1000\n")
        program.chmod(0o755)
        searching._installed = lambda: str(program)  # pyright: ignore[reportPrivateUsage] (same)
    shop = ToolSession(workspace)
    await shop.open()
    try:
        if scenario.background:
            await shop.run(shop.call("terminal", command="sleep 1000", background=True))
        name = next(name for name, each in HANGING.items() if each is scenario)
        call = shop.call(name, **scenario.arguments)
        yield shop, call, lambda: _until_hanging(shop, call, scenario, fifo)
    finally:
        searching._installed = installed  # pyright: ignore[reportPrivateUsage] (same)
        await shop.close()


async def _until_hanging(shop: ToolSession, call: ToolCall, scenario: Scenario, fifo: Path) -> None:
    if scenario.keeps:
        await shop.watch.until(call.call_id, scenario.keeps)
    elif scenario.slow_ripgrep:
        await shop.runtime.bridge.to_thread(fifo.read_bytes)
    elif scenario.background:
        await shop.watch.until_started(call.call_id)
    else:
        await shop.watch.asked.wait()
