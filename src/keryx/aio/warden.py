"""Child processes, as the host sees them: start one, feed it, read it, end its whole tree.

A `Warden` belongs to the loop that made it and starts the warden process on first use; all
children run under that one, so none survives the host. It owns the sockets and the pipes;
which processes belong to a child and how they die is the business of `warden_main.py`. It
knows nothing of shells, confinement (a policy is passed on unread) or tools.

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
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, assert_never

import msgspec

from keryx.aio.capture import OutputSink, Streams, close_all
from keryx.aio.scope import EXIT_REPORT, GRACE, Registration, Scope
from keryx.errors import (
    KeryxError,
    ScopeClosedError,
    SpawnError,
    ToolCancelledError,
    WardenLostError,
)

# A spawn that is cancelled while a cold warden still starts waits for the end of what it
# ordered: the start of a Python process on a loaded machine, then one kill.
UNDO: Final = 1.0
# All writers are dead when the exit is reported, so both streams end at once. Only what a
# stranger holds stays open, and nobody waits longer for that.
DRAIN: Final = 1.0
# A sweep takes 10 ms; of a thousand processes, 150 ms. A warden that does not answer in this
# time is killed, and its keepers get as long as CLOSE_KILLED to sweep on their own.
CLOSE: Final = 2.0
CLOSE_KILLED: Final = 1.0

# The kernel takes 6 MB of arguments at most, and a character may need six bytes in a frame.
MAX_FRAME: Final = 64 * 1024 * 1024
_HEADER: Final = 4
_MAIN: Final = str(Path(__file__).with_name("warden_main.py"))


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: a code, or the signal that ended it."""

    code: int | None
    signal: int | None


class _Report(msgspec.Struct):
    """What the warden or a keeper says; `id` names the order that it is about."""

    op: Literal["started", "refused", "exit", "unopened", "broken"]
    id: int = 0
    pid: int = 0
    code: int | None = None
    signal: int | None = None
    error: str = ""


_decode = msgspec.json.Decoder(_Report).decode


class _Link:
    """A socket to the warden or to a keeper: orders with descriptors out, reports in, one end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        on_report: Callable[[_Report], None],
        on_end: Callable[[], None],
    ) -> None:
        sock.setblocking(False)
        self._loop = loop
        self._sock = sock
        self._on_report = on_report
        self._on_end = on_end
        self._unread = bytearray()
        self._unsent: deque[tuple[memoryview, list[int]]] = deque()
        self.open = True
        loop.add_reader(sock.fileno(), self._read)

    def send(self, order: Mapping[str, object], fds: list[int]) -> None:
        """Send an order. The descriptors are closed here once they are under way."""
        # json and not msgspec: names of files may be bytes that are no text, escaped one by one.
        body = json.dumps(order).encode()
        if len(body) > MAX_FRAME or not self.open:
            close_all(fds)
            if self.open:
                raise SpawnError("the arguments are too long; pass long text by stdin or a file")
            return
        self._unsent.append((memoryview(len(body).to_bytes(_HEADER, "big") + body), fds))
        if len(self._unsent) == 1 and not self._flush():
            self._loop.add_writer(self._sock.fileno(), self._write)

    def is_alive(self) -> bool:
        """Whether the other side is there, also if the loop has not heard of its end yet."""
        try:
            return self.open and self._sock.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def finish(self) -> None:
        """Say that nothing more comes; the other side then sweeps and ends the link."""
        if self.open:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        if not self.open:
            return
        self.open = False
        fileno = self._sock.fileno()
        self._loop.remove_reader(fileno)
        self._loop.remove_writer(fileno)
        self._sock.close()
        for _, fds in self._unsent:
            close_all(fds)
        self._unsent.clear()
        self._on_end()

    def _flush(self) -> bool:
        """Send as much as fits; True if nothing is left."""
        while self._unsent:
            data, fds = self._unsent[0]
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
            try:
                count = self._sock.sendmsg([data], rights)
            except BlockingIOError:
                return False
            except (BrokenPipeError, ConnectionResetError):
                count = len(data)  # what the other side said before it died is still to be read
            except OSError:
                self.end()  # out of memory or of room for descriptors: an order must not get lost
                return True
            close_all(fds)
            if count == len(data):
                self._unsent.popleft()
            else:
                self._unsent[0] = (data[count:], [])
        return True

    def _write(self) -> None:
        if self._flush() and self.open:
            self._loop.remove_writer(self._sock.fileno())

    def _read(self) -> None:
        try:
            data = self._sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.end()
            return
        self._unread += data
        while len(self._unread) >= _HEADER:
            end = _HEADER + int.from_bytes(self._unread[:_HEADER], "big")
            if end > len(self._unread):
                break
            report = _decode(self._unread[_HEADER:end])
            del self._unread[:end]
            self._on_report(report)


class Process:
    """A child process and everything below it. Leaving the `async with` ends the whole tree."""

    def __init__(self, order_id: int, scope: Scope, link: _Link, streams: Streams) -> None:
        loop = asyncio.get_running_loop()
        self.id: Final = order_id
        self.pid = 0
        self._scope = scope
        self._link = link
        self._streams = streams
        self._terminated = False
        self._exit: Exit | WardenLostError | None = None
        # Errors travel as values: a future that nobody awaits must not complain.
        self._answer: asyncio.Future[int | KeryxError] = loop.create_future()
        self._ended: asyncio.Future[Exit | WardenLostError] = loop.create_future()
        self._registrations: list[Registration] = []

    @property
    def running(self) -> bool:
        """Whether some of it may still run."""
        return self._exit is None

    async def wait(self) -> Exit:
        """How it ended, once all of it has and its output was read; WardenLostError if unknown."""
        end = await asyncio.shield(self._ended)
        if isinstance(end, WardenLostError):
            raise WardenLostError(*end.args)
        return end

    def terminate(self) -> None:
        """SIGTERM to the whole tree, once."""
        if not self._terminated:
            self._terminated = True
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the whole tree and to whatever else it leaves behind."""
        self._terminated = True
        self._signal(signal.SIGKILL)

    async def write(self, data: bytes) -> None:
        """Write to its stdin; BrokenPipeError once it reads no more."""
        await self._streams.write(data)

    def close_stdin(self) -> None:
        self._streams.close_stdin()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        cancelled: asyncio.CancelledError | None = None
        for rung, patience in ((self.terminate, GRACE), (self.kill, EXIT_REPORT)):
            if self.running:
                rung()
                cancelled = await _outlast(self._ended, patience, self._scope) or cancelled
        self._streams.drain()
        if cancelled is not None:
            raise cancelled

    def _signal(self, number: int) -> None:
        if self.running:
            self._link.send({"op": "signal", "id": self.id, "signal": number}, [])

    # -- for the warden and the keeper

    async def begin(self) -> Self:
        """Wait until it runs; if that is no longer wanted, it does not when this raises."""
        scope = self._scope
        self._registrations = [scope.on_cancel(self.terminate), scope.on_kill(self.kill)]
        try:
            answer = await self._answer
        except asyncio.CancelledError:
            await self._undo()
            raise
        if isinstance(answer, KeryxError):
            raise answer
        if scope.reason is not None:
            await self._undo()
            raise ToolCancelledError(scope.reason)
        return self

    def started(self, pid: int) -> None:
        self.pid = pid
        if not self._answer.done():
            self._answer.set_result(pid)

    async def _undo(self) -> None:
        """Nobody will ever see this process: end it at once."""
        self.kill()
        await _outlast(self._ended, UNDO, self._scope)

    def refused(self, error: SpawnError) -> None:
        if not self._answer.done():
            self._answer.set_result(error)
        self.finish(WardenLostError("the process was never started"))

    def finish(self, end: Exit | WardenLostError) -> None:
        """The exit is known; what is still in the pipes is read before anyone hears of it."""
        self._exit = end
        for registration in self._registrations:
            registration.remove()
        if isinstance(end, WardenLostError):
            if not self._answer.done():
                self._answer.set_result(end)
            self._streams.drain()
        self._streams.close_stdin()
        if self._streams.reading:
            deadlines, until = self._scope.deadlines, self._scope.clock.monotonic() + DRAIN
            deadline = deadlines.add(until, self._streams.drain)
            self._ended.add_done_callback(lambda _: deadlines.drop(deadline))
        self._streams.on_end(lambda: self._ended.set_result(end))


class _Keeper:
    """The host's side of one keeper: the processes that run there, by the ids of their orders."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, on_end: Callable[[], None]
    ) -> None:
        self.link = _Link(loop, sock, self._hear, self._end)
        self.processes: dict[int, Process] = {}
        self._on_end = on_end
        self._why = "the process that it ran under has died; nobody knows how far it came"

    def _hear(self, report: _Report) -> None:
        match report.op:
            case "started":
                self.processes[report.id].started(report.pid)
            case "refused":
                self.processes.pop(report.id).refused(SpawnError(report.error))
            case "exit":
                self.processes.pop(report.id).finish(Exit(report.code, report.signal))
            case "unopened":
                while self.processes:
                    self.processes.popitem()[1].refused(SpawnError(report.error))
            case "broken":
                self._why = f"the process that it ran under has failed: {report.error}"
            case _:
                assert_never(report.op)

    def _end(self) -> None:
        while self.processes:
            self.processes.popitem()[1].finish(WardenLostError(self._why))
        self._on_end()


class Warden:
    """Starts child processes under one warden process, and a new one if that has died."""

    def __init__(self, scope: Scope) -> None:
        self._loop = asyncio.get_running_loop()
        self._scope = scope
        self._ids = itertools.count(1)
        self._pid: int | None = None
        self._control: _Link | None = None
        self._keepers: dict[str, _Keeper] = {}  # by policy
        self._links: set[_Link] = set()  # all that have not ended, those of lost wardens too
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
        """
        owner = self._scope if scope is None else scope
        owner.raise_if_cancelled()
        if self._closed:
            raise ScopeClosedError("the warden has been closed; it starts nothing more")
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
        return await process.begin()

    async def close(self) -> None:
        """Kill all that still runs; when this returns, it is gone."""
        self._closed = True
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
        return await _outlast(self._emptied, seconds, self._scope)

    def _check_emptied(self) -> None:
        waiter = self._emptied
        if waiter is not None and not (waiter.done() or self._links or self._pidfds):
            waiter.set_result(None)

    def _keeper(self, policy: object) -> _Keeper:
        key = json.dumps(policy, sort_keys=True)
        control = self._control
        if control is None or not control.is_alive():
            control = self._start()
        keeper = self._keepers.get(key)
        if keeper is not None and keeper.link.is_alive():
            return keeper
        ours, theirs = socket.socketpair()

        def ended() -> None:
            self._links.discard(opened.link)
            if self._keepers.get(key) is opened:
                del self._keepers[key]
            self._check_emptied()

        opened = self._keepers[key] = _Keeper(self._loop, ours, ended)
        self._links.add(opened.link)
        control.send({"op": "open", "policy": policy}, [theirs.detach()])
        return opened

    def _start(self) -> _Link:
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
            if pid not in self._pidfds:
                os.waitpid(pid, 0)  # short: its socket closed because it is ending
            self._check_emptied()

        control = _Link(self._loop, ours, self._hear, ended)
        self._links.add(control)
        self._control, self._pid = control, pid
        self._keepers.clear()  # those of a warden that died; they sweep and end on their own
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # a sandbox may forbid it
                self._pidfds[pid] = pidfd = os.pidfd_open(pid)
                self._loop.add_reader(pidfd, self._bury, pid)
        return control

    def _hear(self, report: _Report) -> None:
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


async def _outlast(
    future: asyncio.Future[Any], seconds: float, scope: Scope
) -> asyncio.CancelledError | None:
    """Wait for a future, at most so long, through cancellations; the last one is returned."""
    expired: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    until = scope.clock.monotonic() + seconds
    deadline = scope.deadlines.add(until, lambda: expired.set_result(None))
    cancelled: asyncio.CancelledError | None = None
    while not (future.done() or expired.done()):
        try:
            await asyncio.wait((future, expired), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as error:
            cancelled = error
    scope.deadlines.drop(deadline)
    return cancelled
