"""Warm worker processes for tools that must be killable, as the host sees them.

A worker is a child in the session's place, so its confinement and the warden's ladder hold for
it as for any other. It serves one call at a time. It is kept for the next one only after a clean
return, and never leaves its session. What runs inside it is `worker.py`; calls, outcomes and the
log are the engine's affair.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from keryx.aio.capture import OutputSink
from keryx.aio.clock import Deadline
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.errors import (
    ScopeClosedError,
    ToolFailedError,
    WardenLostError,
)
from keryx.messages import Needs
from keryx.ports.place import Exit, Place, Process
from keryx.ports.workers import Address, Returned
from keryx.rpc.framing import FrameError, FrameReader, frame
from keryx.sandbox.worker_call import End, WorkerCall, returned_of
from keryx.sandbox.worker_protocol import Answer, Order

# A worker takes a tenth of a second to start and some 30 MB to keep.
MOST_IDLE: Final = 4
LONGEST_IDLE: Final = 60.0

# Isolated: nothing in the workspace or the environment decides what the worker imports. Unbuffered:
# what a tool prints is seen while it runs.
_PYTHON: Final = (
    sys.executable,
    "-I",
    "-u",
    "-X",
    "utf8",
    str(Path(__file__).with_name("worker.py")),
)
_KERYX: Final = str(Path(__file__).parent.parent)
_NONSENSE: Final = "the tool's process was killed: it wrote nonsense where its answer belongs"

_decode_answer: Final = msgspec.msgpack.Decoder(Answer).decode


class Footing(msgspec.Struct, frozen=True):
    """What a worker was started with, and what another call must want to be given it."""

    place: Place
    env: frozenset[tuple[str, str]]
    cwd: str
    granted: Needs
    path: tuple[str, ...]
    """Where the host imports from; the worker may read there, for there is the tool's code."""

    async def spawn(self, scope: Scope, output: OutputSink) -> Process:
        code = Needs(reads=tuple(dict.fromkeys((*self.path, _KERYX))))
        return await self.place.spawn(
            (*_PYTHON, *self.path),
            env=dict(self.env),
            cwd=self.cwd,
            scope=scope,
            output=output,
            stdin=True,
            granted=self.granted | code,
        )


class Worker:
    """One worker process, with a call or without."""

    def __init__(self, footing: Footing, life: Scope) -> None:
        self.footing: Final = footing
        self.life: Final = life
        """What its process hangs on; cancelling it runs the ladder."""
        self.process: Process | None = None
        self.until: Deadline | None = None
        """When it has idled for too long."""
        self._frames = FrameReader()
        self._nonsense = False
        self._gone = asyncio.Event()
        self._exchange: WorkerCall | None = None

    @property
    def fit(self) -> bool:
        """Whether it may serve another call."""
        return self.process is not None and self.process.running and not self.life.is_cancelled

    async def perform(
        self, process: Process, address: Address, arguments: str, output: OutputSink
    ) -> End:
        exchange = self._exchange = WorkerCall(output)
        order = Order(address.finder, address.told, arguments, exchange.mark)
        with contextlib.suppress(BrokenPipeError):  # it has died; how will be known in a moment
            await process.write(frame(msgspec.msgpack.encode(order)))
        try:
            return await exchange.over
        finally:
            self._exchange = None

    def feed(self, stream: str, data: bytes) -> None:
        """What the process writes: frames, or whatever its tool prints."""
        exchange = self._exchange
        if exchange is None:
            return
        if stream != "stdout":
            exchange.printed(data)
            return
        try:
            for body in self._frames.feed(data):
                exchange.answered(_decode_answer(body))
        except (FrameError, msgspec.MsgspecError):
            self._nonsense = True
            self.kill()

    def ended(self, end: Exit | WardenLostError) -> None:
        if self._exchange is not None:
            self._exchange.ended(ToolFailedError(_NONSENSE) if self._nonsense else end)
        self.life.close()
        self._gone.set()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    async def end(self) -> None:
        """End the whole tree, by the ladder; a call that still ran there has heard of it then."""
        if self.process is not None:
            await self.process.__aexit__(None, None, None)
            if not self.process.running:
                await self._gone.wait()


class Workers:
    """The worker processes of one session. Belongs to the loop that made it."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._all: set[Worker] = set()
        self._idle: list[Worker] = []  # the longest idle first
        # A tree of its own: what waits for the end of processes must outlast their cancellation.
        self._group = Group(Scope("workers", clock=scope.clock))
        self._closed = False

    async def run(
        self,
        address: Address,
        arguments: str,
        *,
        scope: Scope,
        output: OutputSink,
        place: Place,
        env: Mapping[str, str],
        cwd: str,
        granted: Needs,
    ) -> Returned:
        """Run a tool in a worker; see `keryx.ports.workers`."""
        if self._closed:
            raise ScopeClosedError("the workers of this session have ended")
        footing = Footing(place, frozenset(env.items()), cwd, granted, _import_path())
        worker = self._take(footing) or self._new(footing)
        stops = (
            scope.on_cancel(lambda: worker.life.cancel(scope.reason or "parent", by=scope.name)),
            scope.on_kill(worker.kill),
        )
        try:
            process = worker.process or await self._start(worker)
            end = await worker.perform(process, address, arguments, output)
        except BaseException:
            worker.kill()
            raise
        finally:
            for stop in stops:
                stop.remove()
        if isinstance(end, Answer) and end.clean and worker.fit:
            self._keep(worker)
        else:
            await worker.end()
        return returned_of(end, scope)

    async def close(self) -> None:
        """End all workers; nothing more is run."""
        self._closed = True
        self._idle.clear()
        for worker in self._all:
            if worker.until is not None:
                self._scope.deadlines.drop(worker.until)
            worker.life.cancel("shutdown", by="close")
        for worker in tuple(self._all):
            await worker.end()
        await self._group.leave()

    # -- one worker's way

    def _new(self, footing: Footing) -> Worker:
        worker = Worker(footing, self._scope.child("worker"))
        self._all.add(worker)
        return worker

    async def _start(self, worker: Worker) -> Process:
        try:
            worker.process = process = await worker.footing.spawn(worker.life, worker)
        except BaseException:
            self._all.discard(worker)
            worker.life.close()
            raise
        self._group.start(self._watch(worker, process), name="worker")
        return process

    async def _watch(self, worker: Worker, process: Process) -> None:
        end: Exit | WardenLostError
        try:
            end = await process.wait()
        except WardenLostError as error:
            end = error
        except asyncio.CancelledError:
            end = WardenLostError("the process has not ended in time")
        self._all.discard(worker)
        self._forget_idle(worker)
        worker.ended(end)

    def _take(self, footing: Footing) -> Worker | None:
        """A worker that is warm and fits, the last used first."""
        for worker in reversed(self._idle):
            if worker.footing == footing and worker.fit:
                self._forget_idle(worker)
                return worker
        return None

    def _keep(self, worker: Worker) -> None:
        until = self._scope.clock.monotonic() + LONGEST_IDLE
        worker.until = self._scope.deadlines.add(until, lambda: self._dismiss(worker))
        self._idle.append(worker)
        if len(self._idle) > MOST_IDLE:
            self._dismiss(self._idle[0])

    def _dismiss(self, worker: Worker) -> None:
        self._forget_idle(worker)
        worker.life.cancel("parent", by="idle for too long")

    def _forget_idle(self, worker: Worker) -> None:
        if worker.until is not None:
            self._scope.deadlines.drop(worker.until)
            worker.until = None
        if worker in self._idle:
            self._idle.remove(worker)


def _import_path() -> tuple[str, ...]:
    """Where this process imports from; the worker has another working directory."""
    if all(os.path.isabs(folder) for folder in sys.path):  # noqa: PTH117 (text; no file is touched)
        return tuple(sys.path)
    here = Path.cwd()
    return tuple(str(here / folder) for folder in sys.path)
