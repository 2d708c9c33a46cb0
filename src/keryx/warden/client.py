"""Child processes, as the host sees them: start one, feed it, read it, end its whole tree.

A `Warden` belongs to the loop that made it and starts the warden process on first use; all
children run under that one, so none survives the host. It owns the sockets and the pipes;
which processes belong to a child and how they die is the business of `main.py`. It
knows nothing of shells, confinement (a policy is passed on unread) or tools.

Each policy has its own keeper. Those that run nothing are ended, the longest unused first, once
they are many or old.

No task and no thread: everything happens in the loop's reader and writer callbacks.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from keryx.aio.capture import OutputSink
from keryx.aio.scope import Scope
from keryx.errors import ScopeClosedError, SpawnError
from keryx.warden.keepers import Confinement, Keeper, Keepers
from keryx.warden.link import Link, Report
from keryx.warden.pipes import Streams
from keryx.warden.process import Process, outlast

# A sweep takes 10 ms; of a thousand processes, 150 ms. A warden that does not answer in this
# time is killed, and its keepers get as long as CLOSE_KILLED to sweep on their own.
CLOSE: Final = 2.0
CLOSE_KILLED: Final = 1.0

_MAIN: Final = str(Path(__file__).with_name("main.py"))


class Warden:
    """Starts child processes under one warden process, and a new one if that has died."""

    def __init__(self, scope: Scope) -> None:
        self._loop = asyncio.get_running_loop()
        self._scope = scope
        self._ids = itertools.count(1)
        self._pid: int | None = None
        self._control: Link | None = None
        self._keepers = Keepers(scope)
        self._links: set[Link] = set()  # all that have not ended, those of lost wardens too
        self._pidfds: dict[int, int] = {}  # of wardens that were not reaped yet
        self._emptied: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The warden process, if one runs."""
        return self._pid

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        scope: Scope | None = None,
        output: OutputSink | None = None,
        stdin: bool = False,
        policy: object = None,
    ) -> Process:
        """Start a process that belongs to the scope, with exactly this environment.

        Cancelling the scope sends SIGTERM to its whole tree and SIGKILL after the grace. What
        it writes goes to `output`, or nowhere. Raises SpawnError if it cannot be started.

        A policy (see `keryx.sandbox`) confines it; the environment is the caller's even then, so
        set TMPDIR to what `confinement` tells.
        """
        owner = self._scope if scope is None else scope
        owner.raise_if_cancelled()
        self._check_open()
        if not argv or not cwd.startswith("/"):
            raise SpawnError("a process needs a program to run, and an absolute path to run it in")
        order: dict[str, object] = {"argv": list(argv), "env": dict(env), "cwd": cwd}
        try:
            keeper = self._keeper(policy)
            streams = Streams(self._loop, output, stdin=stdin)
        except OSError as error:
            raise SpawnError(f"{error}; end other processes, or raise ulimit -n") from error
        process = Process(next(self._ids), owner, keeper.link, streams)
        order |= {"op": "spawn", "id": process.id, "fds": list(streams.ends)}
        keeper.processes[process.id] = process
        try:
            keeper.link.send(order, list(streams.ends.values()))
        except SpawnError as error:
            keeper.processes.pop(process.id).refused(error)
            self._keepers.rest(keeper)
        return await process.begin()

    async def confinement(self, policy: object) -> Confinement:
        """How far children with this policy are confined here; SpawnError if they cannot start."""
        self._check_open()
        try:
            keeper = self._keeper(policy)
        except OSError as error:
            raise SpawnError(f"{error}; end other processes, or raise ulimit -n") from error
        found = await asyncio.shield(keeper.confinement)
        if not keeper.processes:
            self._keepers.rest(keeper)
        if isinstance(found, SpawnError):
            raise SpawnError(*found.args)
        return found

    def _check_open(self) -> None:
        if self._closed:
            raise ScopeClosedError("the warden has been closed; it starts nothing more")

    async def close(self) -> None:
        """Kill all that still runs; when this returns, it is gone."""
        self._closed = True
        self._keepers.clear()
        for link in self._links:
            link.finish()
        cancelled = await self._wait_emptied(CLOSE)
        for pidfd in self._pidfds.values():
            if sys.platform == "linux":
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        cancelled = await self._wait_emptied(CLOSE_KILLED) or cancelled
        for link in tuple(self._links):
            link.end()
        if cancelled is not None:
            raise cancelled

    async def _wait_emptied(self, seconds: float) -> asyncio.CancelledError | None:
        self._emptied = self._loop.create_future()
        self._check_emptied()
        return await outlast(self._emptied, seconds, self._scope)

    def _check_emptied(self) -> None:
        waiter = self._emptied
        if waiter is not None and not (waiter.done() or self._links or self._pidfds):
            waiter.set_result(None)

    def _keeper(self, policy: object) -> Keeper:
        key = json.dumps(policy, sort_keys=True)
        control = self._control
        if control is None or not control.is_alive():
            control = self._start()
        keeper = self._keepers.use(key)
        if keeper is not None:
            return keeper
        ours, theirs = socket.socketpair()

        def ended(keeper: Keeper) -> None:
            self._links.discard(keeper.link)
            self._keepers.forget(keeper)
            if keeper.is_orphaned and self._control is control:
                self._control = self._pid = None
            self._check_emptied()

        opened = Keeper(self._loop, ours, key, self._keepers.rest, ended)
        self._keepers.add(opened)
        self._links.add(opened.link)
        control.send({"op": "open", "policy": policy}, [theirs.detach()])
        return opened

    def _start(self) -> Link:
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-I", "-S", _MAIN, str(os.getpid())]
        try:
            pid = os.posix_spawn(
                argv[0],
                argv,
                {},
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)],
                setsid=True,
                setsigmask=(),
            )
        except OSError as error:
            ours.close()
            raise SpawnError(f"the warden cannot be started as {argv}: {error}") from error
        finally:
            theirs.close()

        def ended() -> None:
            self._links.discard(control)
            if self._control is control:
                self._control = self._pid = None
            if not is_watched:
                os.waitpid(pid, 0)  # short: its socket closed because it is ending
            self._check_emptied()

        is_watched = self._watch(pid)
        control = Link(self._loop, ours, self._hear, ended)
        self._links.add(control)
        self._control, self._pid = control, pid
        self._keepers.clear()  # those of a warden that died; they sweep and end on their own
        return control

    def _watch(self, pid: int) -> bool:
        """Have it reaped when it dies, if that can be seen here."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # a sandbox may forbid it
                self._pidfds[pid] = pidfd = os.pidfd_open(pid)
                self._loop.add_reader(pidfd, self._bury, pid)
                return True
        return False

    def _hear(self, report: Report) -> None:
        self._loop.call_exception_handler({"message": f"the warden has failed: {report}"})

    def _bury(self, pid: int) -> None:
        """Reap a warden that has died, so that no zombie stays."""
        pidfd = self._pidfds.pop(pid)
        self._loop.remove_reader(pidfd)
        if sys.platform == "linux":
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
        os.close(pidfd)
        self._check_emptied()
