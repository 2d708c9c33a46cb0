"""Calls by files, for places that share only a folder: the server's side.

A rename claims a call, so it runs at most once. A call that an earlier server had claimed and not
answered is answered as unknown, and not run again. A caller gives a call up by a file too;
progress cannot be sent and is dropped. Not every shared folder reports changes, so the folder is
polled: often while calls arrive, seldom otherwise.

It knows nothing of what the calls mean; `file_queue` does the work on the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import msgspec

from keryx.aio.acquire import acquire
from keryx.aio.bridge import Bridge
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.rpc import packets
from keryx.rpc.file_queue import Claim, FileQueue
from keryx.rpc.incoming_calls import (
    INVALID,
    LEFT_OVER,
    LIMIT_REACHED,
    LIMITS,
    RESTARTED,
    UNKNOWN_NAME,
    Call,
    CallError,
    Handler,
    Limits,
    answer_to,
    cancelled,
    failure,
)

T = TypeVar("T")

# A poll costs a tenth of the shortest pause, and a person does not notice the longest.
SHORTEST_PAUSE: Final = 0.001
LONGEST_PAUSE: Final = 0.05
# Seconds between two heartbeats of the server.
HEARTBEAT: Final = 1.0
# Callers wait five minutes by default; an answer that is twice as old will not be read.
UNREAD: Final = 600.0
# Seconds between two tries to write to a full disk.
RETRY: Final = 0.25
# How long the last answers may take; they are small, and a hanging disk must not block `close`.
LAST_ANSWERS: Final = 1.0


@dataclass(slots=True, eq=False)
class _ClaimedCall:
    """A claimed call without an answer yet; if `task` is None, its answer is being written."""

    id: msgspec.Raw
    size: int
    task: asyncio.Task[bytes] | None = None
    given_up: bool = False


class FileTransport:
    """Answers the calls that arrive in one folder. Belongs to one loop."""

    def __init__(
        self, queue: FileQueue, scope: Scope, bridge: Bridge, handler: Handler, limits: Limits
    ) -> None:
        self._queue = queue
        self._bridge = bridge
        self._handler = handler
        self._limits = limits
        self._group = Group(scope.child("folder"))
        # Answers are written also when the scope is cancelled: they say that it was.
        self._service = Group(Scope("folder service", clock=scope.clock))
        self._calls: dict[str, _ClaimedCall] = {}
        self._count = 0
        self._pause = SHORTEST_PAUSE
        self._poll_wait: asyncio.Future[None] | None = None
        self._on_disk: set[asyncio.Future[Any]] = set()
        self._sleeping: set[asyncio.Future[None]] = set()
        self._closing = False

    @classmethod
    async def open(
        cls,
        path: Path,
        scope: Scope,
        bridge: Bridge,
        handler: Handler,
        *,
        limits: Limits = LIMITS,
    ) -> Self:
        """Serve that folder; raise `FolderTakenError` if another server does already."""
        queue = await acquire(bridge, partial(FileQueue.open, path), FileQueue.close, name="folder")
        server = cls(queue, scope, bridge, handler, limits)
        try:
            for orphan in await server._in_thread(queue.orphans):
                claim = await server._in_thread(queue.read, orphan, limits.largest_frame)
                claimed = server._calls[orphan] = _ClaimedCall(packets.id_of(claim.data), 0)
                unknown = CallError(RESTARTED, name=UNKNOWN_NAME)
                server._settle(orphan, claimed, failure(claimed.id, unknown))
            await server._in_thread(queue.write_heartbeat, scope.clock.wall())
        except BaseException:
            await server.close()
            raise
        server._service.start(server._serve(), name="look")
        server._service.start(server._send_heartbeats(), name="beat")
        return server

    @property
    def in_flight(self) -> int:
        """The number of calls that are claimed and not answered."""
        return len(self._calls)

    async def close(self) -> None:
        """End the running calls, tell their callers, and release the folder."""
        self._closing = True
        for done in self._sleeping:
            _end(done)
        await self._group.leave()
        for name, claimed in tuple(self._calls.items()):
            if claimed.task is not None and not claimed.task.done():
                unknown = CallError(LEFT_OVER, name=UNKNOWN_NAME)
                self._settle(name, claimed, failure(claimed.id, unknown))
        service = self._service
        until = service.scope.clock.monotonic() + LAST_ANSWERS
        service.scope.cancel_at(until, by="the server is closing")
        try:
            async with service:
                pass
        finally:
            service.scope.close()
            self._group.scope.close()
            if self._on_disk:
                await asyncio.wait(self._on_disk)
            await self._bridge.to_thread(self._queue.close)

    # -- calls

    async def _serve(self) -> None:
        while not self._closing and not self._group.scope.is_cancelled:
            most = self._limits.most_in_flight - len(self._calls)
            most_bytes = self._limits.most_held - sum(call.size for call in self._calls.values())
            largest, idle = self._limits.largest_frame, not self._calls
            take = partial(self._queue.take_calls, most, most_bytes, largest=largest, idle=idle)
            try:
                claims, given_up = await self._in_thread(take)
                for name in given_up:
                    self._give_up(name)
                for claim in claims:
                    self._begin(claim)
            except OSError:
                # The folder is not reachable now; callers have deadlines of their own.
                self._pause = LONGEST_PAUSE
            else:
                if claims or given_up:
                    self._pause = SHORTEST_PAUSE
            await self._wait_next_poll()

    def _begin(self, claim: Claim) -> None:
        self._count += 1
        name = claim.name
        claimed = self._calls[name] = _ClaimedCall(packets.id_of(claim.data), len(claim.data))
        try:
            self._check_claim(claim)
            standalone_call = packets.decode_standalone_call(claim.data)
        except CallError as error:
            self._settle(name, claimed, failure(claimed.id, error))
        except (msgspec.DecodeError, RecursionError) as error:
            invalid = CallError(f"the file is not a call: {error}", code=INVALID)
            self._settle(name, claimed, failure(claimed.id, invalid))
        else:
            call = Call(self, self._count, standalone_call.method, bytes(standalone_call.params))
            self._start(name, claimed, call)

    def _check_claim(self, claim: Claim) -> None:
        most = self._limits.most_calls
        if claim.fault:
            raise CallError(claim.fault, code=INVALID)
        if most is not None and self._count > most:
            raise CallError(f"all {most} calls have been made", code=LIMIT_REACHED)
        if self._group.scope.is_cancelled:
            raise cancelled("this side is ending")

    def _start(self, name: str, claimed: _ClaimedCall, call: Call) -> None:
        work = answer_to(self._handler, call, claimed.id, largest=self._limits.largest_frame)
        claimed.task = self._group.start(work, name=f"{call.method[:100]} {name}")
        claimed.task.add_done_callback(partial(self._ended, name))

    def _give_up(self, name: str) -> None:
        claimed = self._calls.get(name)
        if claimed is not None:
            claimed.given_up = True
            if claimed.task is not None:
                claimed.task.cancel()

    def _ended(self, name: str, task: asyncio.Task[bytes]) -> None:
        claimed = self._calls.get(name)
        if claimed is None or claimed.task is not task:
            return  # it was left over, and its caller has the answer
        if not task.cancelled():
            answer = task.result()
        else:
            closed = self._group.scope.is_cancelled
            why = "the server was closed" if closed else "by what it waited for"
            answer = failure(claimed.id, cancelled(why))
        self._settle(name, claimed, answer)

    async def send_progress(self, call_id: int, value: bytes) -> None:
        """Do nothing: this transport can send only the answer."""

    # -- answers

    def _settle(self, name: str, claimed: _ClaimedCall, answer: bytes) -> None:
        claimed.task = None
        self._service.start(self._answer(name, claimed, answer), name=f"answer {name}")

    async def _answer(self, name: str, claimed: _ClaimedCall, answer: bytes) -> None:
        """Write the answer; if that fails, write the error as soon as that is possible."""
        try:
            while not claimed.given_up:
                try:
                    await self._in_thread(self._queue.answer, name, answer)
                    break
                except FileExistsError:
                    break  # another program wrote an answer, which is not overwritten
                except OSError as error:
                    if self._closing:
                        return  # it stays claimed, and the next server answers it as unknown
                    text = f"the answer could not be written: {error.strerror or error}"
                    answer = failure(claimed.id, CallError(text))
                    await self._sleep(RETRY)
            if claimed.given_up:
                with contextlib.suppress(OSError):
                    await self._in_thread(self._queue.drop, name)
                    await self._in_thread(self._queue.remove_answer, name)
        finally:
            del self._calls[name]
            self._wake()

    # -- heartbeat and polling

    async def _send_heartbeats(self) -> None:
        while not self._closing:
            wall = self._service.scope.clock.wall()
            with contextlib.suppress(OSError):  # a full disk; the next answers report it
                await self._in_thread(self._queue.write_heartbeat, wall)
                await self._in_thread(self._queue.remove_unread_answers, wall - UNREAD)
            await self._sleep(HEARTBEAT)

    async def _wait_next_poll(self) -> None:
        """Wait until the next poll, which comes sooner if a call has just been answered."""
        self._poll_wait = asyncio.get_running_loop().create_future()
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        await self._sleep(pause, self._poll_wait)

    def _wake(self) -> None:
        self._pause = SHORTEST_PAUSE
        if self._poll_wait is not None:
            _end(self._poll_wait)

    async def _sleep(self, seconds: float, done: asyncio.Future[None] | None = None) -> None:
        """Sleep for that time, or until the server closes."""
        if self._closing:
            return
        done = done or asyncio.get_running_loop().create_future()
        scope = self._service.scope
        deadline = scope.deadlines.add(scope.clock.monotonic() + seconds, partial(_end, done))
        self._sleeping.add(done)
        try:
            await done
        finally:
            self._sleeping.discard(done)
            scope.deadlines.drop(deadline)

    async def _in_thread(self, work: Callable[..., T], *args: object) -> T:
        """Run work in a thread; `close` waits for it before it closes the descriptors."""
        started = self._bridge.start_thread(partial(work, *args), name="folder")
        self._on_disk.add(started.future)
        started.future.add_done_callback(self._on_disk.discard)
        return await asyncio.shield(started.future)


def _end(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
