"""The running models: one worker for each file, shared by all sessions of a host.

A worker is started at its first use, and ended when nobody has used it for some minutes. One that
died is started anew by the next request. Requests beyond the worker's slots wait in the order in
which they came, so a session with many requests cannot overtake one with a single request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from keryx.aio.bridge import Bridge
from keryx.aio.clock import Deadline
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.errors import ModelError
from keryx.models.embedded.model_file import ModelFile, check
from keryx.models.embedded.worker_process import WorkerProcess, start_worker
from keryx.warden import Warden

LONGEST_IDLE: Final = 600.0
"""Seconds. A loaded model holds hundreds of megabytes; to load it again takes seconds."""


class _SharedWorker:
    """The worker of one file, and who uses it."""

    def __init__(self, file: ModelFile) -> None:
        self.file: Final = file
        # A semaphore of asyncio wakes its waiters in the order in which they came.
        self.slots: Final = asyncio.Semaphore(file.slots)
        self.users = 0
        self.process: WorkerProcess | None = None
        self.starting: asyncio.Task[WorkerProcess | ModelError] | None = None
        self.idle_deadline: Deadline | None = None


class Workers:
    """The workers of one host. Belongs to the host's loop."""

    def __init__(self, warden: Warden, bridge: Bridge, scope: Scope) -> None:
        self._warden = warden
        self._bridge = bridge
        self._group = Group(scope.child("local models"))
        self._workers: dict[Path, _SharedWorker] = {}

    @property
    def running(self) -> tuple[WorkerProcess, ...]:
        """The workers that have loaded their model and have not ended."""
        processes = (worker.process for worker in self._workers.values())
        return tuple(process for process in processes if process and process.is_running)

    @asynccontextmanager
    async def slot(self, file: ModelFile) -> AsyncGenerator[WorkerProcess]:
        """Wait for a free slot of this file's worker, and hold it."""
        worker = self._workers.setdefault(file.path, _SharedWorker(file))
        worker.users += 1
        if worker.idle_deadline is not None:
            self._group.scope.deadlines.drop(worker.idle_deadline)
            worker.idle_deadline = None
        try:
            async with worker.slots:
                yield await self._started(worker)
        finally:
            worker.users -= 1
            if not worker.users:
                self._mark_idle(worker)

    async def close(self) -> None:
        """End all workers."""
        for process in self.running:
            process.kill()
        await self._group.leave()
        self._group.scope.close()

    async def _started(self, worker: _SharedWorker) -> WorkerProcess:
        """Return the running process. Callers that come first at the same time share one start."""
        if worker.process is not None and worker.process.is_running:
            return worker.process
        if worker.starting is None or worker.starting.done():
            worker.starting = self._group.start(self._start(worker), name="start a local model")
        # A caller that is cancelled does not end the start: others may wait for it.
        process = await asyncio.shield(worker.starting)
        if isinstance(process, ModelError):
            raise ModelError(process.kind, process.message, process.hint)
        return process

    async def _start(self, worker: _SharedWorker) -> WorkerProcess | ModelError:
        """Start the worker, or return the error: an error that is raised would end the group."""
        try:
            packages = await self._bridge.to_thread(check, worker.file)
            process = await start_worker(self._warden, self._group, worker.file, packages)
        except ModelError as error:
            return error
        worker.process = process
        return process

    def _mark_idle(self, worker: _SharedWorker) -> None:
        scope = self._group.scope
        if scope.is_cancelled:
            return
        until = scope.clock.monotonic() + LONGEST_IDLE
        worker.idle_deadline = scope.deadlines.add(until, lambda: self._end_idle(worker))

    def _end_idle(self, worker: _SharedWorker) -> None:
        worker.idle_deadline = None
        # The next request starts another one, even before the end of this one is reported.
        process, worker.process = worker.process, None
        if process is not None and process.is_running:
            process.kill()
