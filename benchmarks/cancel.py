"""How fast control comes back: every kind of hanging tool by every way to cancel it."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from keryx.aio.scope import Scope
from keryx.app import Runtime
from keryx.engine.calls.call_hooks import CallView, NoHooks
from keryx.engine.steps.batch import Batch
from keryx.messages import ToolCall
from keryx.testing.hangs import HANGING, Hang, Hangs

LIMITS = {"at once": 10.0, "by a signal": 300.0, "left over": 300.0}
"""Milliseconds, by how the tool gives way."""

Way = Callable[[Runtime, Scope, Batch], Awaitable[None]]


class Watch(NoHooks):
    """Tells when the tool hangs, and when it has settled."""

    def __init__(self) -> None:
        self.hangs = asyncio.Event()
        self.done = asyncio.Event()

    def output(self, call: CallView, stream: str, text: str) -> None:
        if HANGING.strip() in text:
            self.hangs.set()

    def settled(self, call: CallView, duration: float) -> None:
        self.done.set()


async def task(runtime: Runtime, turn: Scope, batch: Batch) -> None:
    turn.cancel("interrupt")


async def thread(runtime: Runtime, turn: Scope, batch: Batch) -> None:
    await runtime.bridge.to_thread(turn.cancel, "interrupt")


async def handler(runtime: Runtime, turn: Scope, batch: Batch) -> None:
    def handle(number: int, frame: object) -> None:
        turn.cancel("interrupt")

    before = signal.signal(signal.SIGUSR2, handle)
    signal.raise_signal(signal.SIGUSR2)
    signal.signal(signal.SIGUSR2, before)


async def parent(runtime: Runtime, turn: Scope, batch: Batch) -> None:
    assert turn.parent is not None
    turn.parent.cancel("shutdown")


async def deadline(runtime: Runtime, turn: Scope, batch: Batch) -> None:
    turn.cancel_at(turn.clock.monotonic())


async def one_call(runtime: Runtime, turn: Scope, batch: Batch) -> None:
    batch.cancel("hung")


WAYS: list[Way] = [task, thread, handler, parent, deadline, one_call]


async def measure(runtime: Runtime, kind: int, way: Way) -> tuple[Hang, str, float]:
    """Milliseconds from the cancel to the outcome; for processes that is when all are dead."""
    hangs, watch = Hangs(), Watch()
    hang = hangs.all[kind]
    session = runtime.scope.child("session")
    turn = session.child("turn")
    environment = runtime.call_environment("bench", [hang.tool], workspace=Path("/"), hooks=watch)
    batch = runtime.executor.start(environment, [ToolCall("hung", hang.name)], turn)
    await watch.hangs.wait()
    began = time.perf_counter()
    await way(runtime, turn, batch)
    (outcome,) = await batch.outcomes()
    took = (time.perf_counter() - began) * 1e3
    hangs.release()
    if outcome.left_over:
        await watch.done.wait()
    hangs.close()
    turn.close()
    session.close()
    return hang, outcome.outcome, took


async def main() -> None:
    async with Runtime() as runtime:
        print(f"{'hangs in':<40}" + "".join(f"{way.__name__:>10}" for way in WAYS) + "   outcome")
        missed = 0
        for kind in range(len(KINDS)):
            best = [
                min([await measure(runtime, kind, way) for _ in range(3)], key=lambda row: row[2])
                for way in WAYS
            ]
            hang, outcome, _ = best[0]
            missed += sum(row[2] > LIMITS[hang.ends] for row in best)
            figures = "".join(f"{row[2]:10.1f}" for row in best)
            print(f"{hang.blocked_in:<40}{figures}   {outcome}, limit {LIMITS[hang.ends]:.0f}")
        print(f"milliseconds, best of three; limits missed: {missed}")


def kinds() -> list[str]:
    hangs = Hangs()
    hangs.close()
    return [hang.name for hang in hangs.all]


KINDS = kinds()

if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    sys.exit(0)
