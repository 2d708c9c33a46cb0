"""The host's side of worker processes, which run tools that must be killable.

A worker is a child in the session's place, so confinement and the cancellation ladder apply to it
as to any other. It serves one call at a time, and only calls of its session. It is used again only
after a clean return. `worker.py` runs inside it; the engine handles calls, outcomes and the log.
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
from keryx.decoding import msgpack_decoder
from keryx.errors import (
    ScopeClosedError,
    ToolFailedError,
    WardenLostError,
)
from keryx.messages import Needs
from keryx.ports.place import Exit, Place, Process
from keryx.ports.workers import Address, Returned
from keryx.rpc.framing import FrameError, FrameReader, frame
from keryx.sandbox.worker_call import End, WorkerCall, result_of
from keryx.sandbox.worker_protocol import Answer, Order

# A worker takes a tenth of a second to start and some 30 MB of memory.
MOST_IDLE: Final = 4
LONGEST_IDLE: Final = 60.0

# Isolated: the workspace and the environment do not affect what the worker imports. Unbuffered:
# printed output is seen while the tool runs.
_PYTHON: Final = (
    sys.executable,
    "-I",
    "-u",
    "-X",
    "utf8",
    str(Path(__file__).with_name("worker.py")),
)
_KERYX: Final = str(Path(__file__).parent.parent)
_UNREADABLE: Final = "the tool's process was killed: its answer could not be read"

_decode_answer: Final = msgpack_decoder(Answer).decode


class WorkerSetup(msgspec.Struct, frozen=True):
    """What a worker was started with; only a call with an equal setup may use it."""

    place: Place
    env: frozenset[tuple[str, str]]
    cwd: str
    granted: Needs
    path: tuple[str, ...]
    """The host's import path; the worker may read it, because the tool's code is there."""

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
    """One worker process, idle or with one call."""

    def __init__(self, setup: WorkerSetup, scope: Scope) -> None:
        self.setup: Final = setup
        self.scope: Final = scope
        """The scope of its process; cancelling it runs the ladder."""
        self.process: Process | None = None
        self.idle_deadline: Deadline | None = None
        """When it is ended because it was idle for too long."""
        self._frames = FrameReader()
        self._answer_unreadable = False
        self._has_ended = asyncio.Event()
        self._call: WorkerCall | None = None

    @property
    def is_reusable(self) -> bool:
        """Whether it may serve another call."""
        return self.process is not None and self.process.running and not self.scope.is_cancelled

    async def perform(
        self, process: Process, address: Address, arguments: str, output: OutputSink
    ) -> End:
        call = self._call = WorkerCall(output)
        order = Order(address.finder, address.finder_args, arguments, call.mark)
        with contextlib.suppress(BrokenPipeError):  # it has died; its exit is reported soon
            await process.write(frame(msgspec.msgpack.encode(order)))
        try:
            return await call.end
        finally:
            self._call = None

    def feed(self, stream: str, data: bytes) -> None:
        """Take output of the process: frames on stdout, printed output on stderr."""
        call = self._call
        if call is None:
            return
        if stream != "stdout":
            call.printed(data)
            return
        try:
            for body in self._frames.feed(data):
                call.answered(_decode_answer(body))
        except (FrameError, msgspec.MsgspecError):
            self._answer_unreadable = True
            self.kill()

    def ended(self, end: Exit | WardenLostError) -> None:
        if self._call is not None:
            self._call.ended(ToolFailedError(_UNREADABLE) if self._answer_unreadable else end)
        self.scope.close()
        self._has_ended.set()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    async def end(self) -> None:
        """End the whole tree by the ladder; a call that still runs there ends first."""
        if self.process is not None:
            await self.process.__aexit__(None, None, None)
            if not self.process.running:
                await self._has_ended.wait()


class Workers:
    """The worker processes of one session. Belongs to the loop that made it."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._all: set[Worker] = set()
        self._idle: list[Worker] = []  # the longest idle first
        # A scope tree of its own: tasks that wait for processes must survive their cancellation.
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
        setup = WorkerSetup(place, frozenset(env.items()), cwd, granted, _import_path())
        worker = self._take(setup) or self._new(setup)
        stops = (
            scope.on_cancel(lambda: worker.scope.cancel(scope.reason or "parent", by=scope.name)),
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
        if isinstance(end, Answer) and end.clean and worker.is_reusable:
            self._keep(worker)
        else:
            await worker.end()
        return result_of(end, scope)

    async def close(self) -> None:
        """End all workers; later calls are refused."""
        self._closed = True
        self._idle.clear()
        for worker in self._all:
            if worker.idle_deadline is not None:
                self._scope.deadlines.drop(worker.idle_deadline)
            worker.scope.cancel("shutdown", by="close")
        for worker in tuple(self._all):
            await worker.end()
        await self._group.leave()

    # -- the life of one worker

    def _new(self, setup: WorkerSetup) -> Worker:
        worker = Worker(setup, self._scope.child("worker"))
        self._all.add(worker)
        return worker

    async def _start(self, worker: Worker) -> Process:
        try:
            worker.process = process = await worker.setup.spawn(worker.scope, worker)
        except BaseException:
            self._all.discard(worker)
            worker.scope.close()
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

    def _take(self, setup: WorkerSetup) -> Worker | None:
        """Return an idle worker with an equal setup, the last used first; None if there is none."""
        for worker in reversed(self._idle):
            if worker.setup == setup and worker.is_reusable:
                self._forget_idle(worker)
                return worker
        return None

    def _keep(self, worker: Worker) -> None:
        idle_deadline = self._scope.clock.monotonic() + LONGEST_IDLE
        worker.idle_deadline = self._scope.deadlines.add(
            idle_deadline, lambda: self._end_idle(worker)
        )
        self._idle.append(worker)
        if len(self._idle) > MOST_IDLE:
            self._end_idle(self._idle[0])

    def _end_idle(self, worker: Worker) -> None:
        self._forget_idle(worker)
        worker.scope.cancel("parent", by="idle for too long")

    def _forget_idle(self, worker: Worker) -> None:
        if worker.idle_deadline is not None:
            self._scope.deadlines.drop(worker.idle_deadline)
            worker.idle_deadline = None
        if worker in self._idle:
            self._idle.remove(worker)


def _import_path() -> tuple[str, ...]:
    """Return this process's import path in absolute form: the worker's folder is another."""
    if all(os.path.isabs(folder) for folder in sys.path):  # noqa: PTH117 (text; no file is touched)
        return tuple(sys.path)
    here = Path.cwd()
    return tuple(str(here / folder) for folder in sys.path)
