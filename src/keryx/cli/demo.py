"""Show what the runtime does, measured on this machine, in half a minute.

The tools really run, in tasks, threads and processes, and the times are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from keryx.aio.loops import run_loop
from keryx.app.runtime import Runtime
from keryx.cli.screens.live_turn import show_turns
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallView, NoHooks
from keryx.messages import CallOutcome, Outcome, ToolCall
from keryx.ports.effects import NO_EFFECTS
from keryx.testing.hangs import HANGING, Ends, Hangs
from keryx.tools.function import tool

PAUSE: Final = 0.3
"""How long each of the demo's own tools takes, in seconds."""

NARROWEST: Final = 60
LEFT_OVER: Final = 3
"""How many of the hanging tools cannot be stopped."""
ALLOWED: Final[Mapping[Ends, tuple[Outcome, ...]]] = {
    "at once": ("cancelled",),
    "by a signal": ("cancelled", "unknown"),
    "left over": ("unknown",),
}
"""The honest outcomes. On a busy machine the end of a killed process may be reported too late."""


@tool(effects=NO_EFFECTS)
def wait_blocking() -> str:
    """Block a thread for a moment, as most libraries do."""
    threading.Event().wait(PAUSE)
    return "done"


@tool(effects=NO_EFFECTS)
async def wait_async() -> str:
    """Await for a moment."""
    await asyncio.sleep(PAUSE)
    return "done"


class Screen:
    """Prints headings and tables to standard output."""

    def __init__(self) -> None:
        self._fancy = sys.stdout.isatty()
        self._width = max(NARROWEST, min(100, shutil.get_terminal_size().columns))

    def heading(self, number: int, text: str) -> None:
        print(f"\n{self._bold(f'{number}. {text}')}", flush=True)

    def say(self, text: str) -> None:
        print(f"   {text}")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
        self._line(head, widths, bold=True)
        self.say("─" * min(self._width - 3, sum(widths) + 3 * (len(widths) - 1)))
        for row in rows:
            self._line(row, widths)

    def _line(self, row: Sequence[str], widths: Sequence[int], *, bold: bool = False) -> None:
        text = "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        self.say(self._bold(text.rstrip()) if bold else text.rstrip())

    def _bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._fancy else text


class Watch(NoHooks):
    """Records which tools hang, and when each call ended."""

    def __init__(self) -> None:
        self.hanging: set[str] = set()
        self.ended_at: dict[str, float] = {}
        self.all_hang = asyncio.Event()
        self.all_settled = asyncio.Event()
        self.expected = 0
        self.settled_calls = 0

    def output(self, call: CallView, stream: str, text: str) -> None:
        del stream
        if HANGING.strip() in text:
            self.hanging.add(call.call_id)
        if len(self.hanging) >= self.expected:
            self.all_hang.set()

    def ended(self, call: CallView, outcome: CallOutcome) -> None:
        del outcome
        self.ended_at[call.call_id] = time.perf_counter()

    def settled(self, call: CallView, duration: float) -> None:
        del call, duration
        self.settled_calls += 1
        if self.settled_calls == LEFT_OVER:
            self.all_settled.set()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: this command has no options."""
    del parser


def run(options: argparse.Namespace) -> int:
    """Run the demo; exit code 0 if everything worked as promised."""
    del options
    return run_loop(_demo(Path(tempfile.gettempdir())))  # nothing is written there


async def _demo(workspace: Path) -> int:
    screen = Screen()
    screen.say("Keryx: real tools, measured on this machine. No model, no key, no network.")
    async with Runtime() as runtime:
        results = [
            await _side_by_side(runtime, workspace, screen),
            await _cancel_everything(runtime, workspace, screen),
            await _cancel_one(runtime, workspace, screen),
        ]
    screen.heading(4, "Two turns, live; the second is steered while its tools run")
    results.append(await show_turns())
    if not all(results):
        print("\n   Something did not work as promised; see above.", file=sys.stderr)
        return 1
    print()
    return 0


async def _side_by_side(runtime: Runtime, workspace: Path, screen: Screen) -> bool:
    screen.heading(1, f"Ten tools of {PAUSE} s, called at once")
    rows: list[list[str]] = []
    for wait, where in ((wait_blocking, "in threads"), (wait_async, "on the loop")):
        environment = runtime.call_environment("demo", [wait], workspace=workspace)
        calls = [ToolCall(f"{wait.name}-{number}", wait.name) for number in range(10)]
        start = time.perf_counter()
        outcomes = await runtime.executor.run(environment, calls, runtime.scope)
        duration = time.perf_counter() - start
        done = sum(outcome.outcome == "completed" for outcome in outcomes)
        rows.append([where, f"{done} of 10", f"{duration:.3f} s", f"{10 * PAUSE:.1f} s"])
    screen.table(["where", "completed", "together", "one by one"], rows)
    return all(row[1] == "10 of 10" for row in rows)


async def _cancel_everything(runtime: Runtime, workspace: Path, screen: Screen) -> bool:
    screen.heading(2, "Tools that hang in every way, then one cancel for all of them")
    hangs, watch = Hangs(), Watch()
    watch.expected = len(hangs.all)
    environment = runtime.call_environment(
        "demo", [hang.tool for hang in hangs.all], workspace=workspace, hooks=watch
    )
    turn = runtime.scope.child("turn")
    calls = [ToolCall(hang.name, hang.name) for hang in hangs.all]
    batch = runtime.executor.start(environment, calls, turn)
    await watch.all_hang.wait()
    cancelled_at = time.perf_counter()
    turn.cancel("interrupt", by="demo")
    outcomes = await batch.outcomes()
    rows = [
        [hang.blocked_in, outcome.outcome, f"{_ms(watch, outcome, cancelled_at):6.1f} ms"]
        for hang, outcome in zip(hangs.all, outcomes, strict=True)
    ]
    screen.table(["a tool that hangs in", "outcome", "control back after"], rows)
    await _release(environment, watch, hangs, screen)
    turn.close()
    late = [
        hang.blocked_in
        for hang, outcome in zip(hangs.all, outcomes, strict=True)
        if hang.ends == "by a signal" and outcome.outcome == "unknown"
    ]
    if late:
        screen.say(f"This machine is too busy to know in time how these ended: {', '.join(late)}.")
    return all(
        outcome.outcome in ALLOWED[hang.ends]
        for hang, outcome in zip(hangs.all, outcomes, strict=True)
    )


async def _release(
    environment: CallEnvironment, watch: Watch, hangs: Hangs, screen: Screen
) -> None:
    names = ", ".join(environment.left_over)
    screen.say(f"Left over, and refused if they still act: {names}.")
    hangs.release()
    await watch.all_settled.wait()
    hangs.close()
    screen.say(f"They have ended now; {len(hangs.acted_late)} of them acted after their outcome.")


def _ms(watch: Watch, outcome: CallOutcome, since: float) -> float:
    return (watch.ended_at[outcome.call_id] - since) * 1000


async def _cancel_one(runtime: Runtime, workspace: Path, screen: Screen) -> bool:
    screen.heading(3, "One call of five is cancelled; the others go on")
    watch = Watch()
    environment = runtime.call_environment("demo", [wait_async], workspace=workspace, hooks=watch)
    calls = [ToolCall(f"call {number}", wait_async.name) for number in range(1, 6)]
    start = time.perf_counter()
    batch = runtime.executor.start(environment, calls, runtime.scope)
    await asyncio.sleep(PAUSE / 3)
    batch.cancel("call 3", "interrupt", by="demo")
    outcomes = await batch.outcomes()
    rows = [
        [outcome.call_id, outcome.outcome, f"{_ms(watch, outcome, start):6.1f} ms"]
        for outcome in outcomes
    ]
    screen.table(["call", "outcome", "ended after"], rows)
    others = {outcome.outcome for outcome in outcomes if outcome.call_id != "call 3"}
    return outcomes[2].outcome == "cancelled" and others == {"completed"}
