"""Calls by files, for places that share nothing but a folder: the server's side.

A call is claimed by a rename, so it runs at most once. One that another server had claimed when it
ended is answered as unknown, and not run again. Giving a call up is a file too; progress has no way
to the caller here and is dropped. Not every shared folder tells when something changes in it, so it
is looked at: often while calls come, seldom otherwise.

It refuses to know what the calls mean, and leaves the disk to `letterbox`.
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

from keryx.aio.bridge import Bridge
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.rpc import packets
from keryx.rpc.file_queue import Claim, FileQueue, FolderTakenError
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

# A look costs a tenth of the shortest pause, and the longest is what a person does not notice.
SHORTEST_PAUSE: Final = 0.001
LONGEST_PAUSE: Final = 0.05
# How often the server says that it lives.
BEAT: Final = 1.0
# Callers wait five minutes unless they say otherwise; twice that, and nobody comes any more.
UNREAD: Final = 600.0
# A full disk is tried again so often.
RETRY: Final = 0.25
# How long the last answers may take; they are small, and a disk that hangs must not hold the end.
LAST_ANSWERS: Final = 1.0


@dataclass(slots=True, eq=False)
class _Open:
    """A call that was claimed and is not answered; without a task, its answer is being written."""

    id: msgspec.Raw
    size: int
    task: asyncio.Task[bytes] | None = None
    given_up: bool = False


class FileTransport:
    """Answers the calls that come into one folder. Belongs to one loop."""

    def __init__(
        self, box: FileQueue, scope: Scope, bridge: Bridge, handler: Handler, limits: Limits
    ) -> None:
        self._box = box
        self._bridge = bridge
        self._handler = handler
        self._limits = limits
        self._group = Group(scope.child("folder"))
        # Answers are written also when the scope is cancelled: they say that it was.
        self._service = Group(Scope("folder service", clock=scope.clock))
        self._calls: dict[str, _Open] = {}
        self._count = 0
        self._pause = SHORTEST_PAUSE
        self._resting: asyncio.Future[None] | None = None
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
        """Serve that folder; `FolderTakenError` if someone does already."""
        opening = bridge.start_thread(partial(FileQueue.open, path), name="folder").future
        try:
            box = await asyncio.shield(opening)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError, FolderTakenError):
                await bridge.to_thread((await opening).close)
            raise
        server = cls(box, scope, bridge, handler, limits)
        try:
            for orphan in await server._disk(box.orphans):
                claim = await server._disk(box.read, orphan, limits.largest_frame)
                open_ = server._calls[orphan] = _Open(packets.id_of(claim.data), 0)
                gone = CallError(RESTARTED, name=UNKNOWN_NAME)
                server._settle(orphan, open_, failure(open_.id, gone))
            await server._disk(box.beat, scope.clock.wall())
        except BaseException:
            await server.close()
            raise
        server._service.start(server._serve(), name="look")
        server._service.start(server._live(), name="beat")
        return server

    @property
    def in_flight(self) -> int:
        """How many calls are claimed and not answered."""
        return len(self._calls)

    async def close(self) -> None:
        """End what runs, say so to its callers, and let go of the folder."""
        self._closing = True
        for over in self._sleeping:
            _end(over)
        await self._group.leave()
        for name, open_ in tuple(self._calls.items()):
            if open_.task is not None and not open_.task.done():
                unknown = CallError(LEFT_OVER, name=UNKNOWN_NAME)
                self._settle(name, open_, failure(open_.id, unknown))
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
            await self._bridge.to_thread(self._box.close)

    # -- calls

    async def _serve(self) -> None:
        while not self._closing and not self._group.scope.is_cancelled:
            most = self._limits.most_in_flight - len(self._calls)
            room = self._limits.most_held - sum(open_.size for open_ in self._calls.values())
            largest, idle = self._limits.largest_frame, not self._calls
            look = partial(self._box.look, most, room, largest=largest, idle=idle)
            try:
                claims, given_up = await self._disk(look)
                for name in given_up:
                    self._give_up(name)
                for claim in claims:
                    self._begin(claim)
            except OSError:
                # The folder is away for a moment, or for good; the callers' own deadlines tell.
                self._pause = LONGEST_PAUSE
            else:
                if claims or given_up:
                    self._pause = SHORTEST_PAUSE
            await self._rest()

    def _begin(self, claim: Claim) -> None:
        self._count += 1
        name = claim.name
        open_ = self._calls[name] = _Open(packets.id_of(claim.data), len(claim.data))
        try:
            self._refuse_or_not(claim)
            letter = packets.decode_letter(claim.data)
        except CallError as error:
            self._settle(name, open_, failure(open_.id, error))
        except (msgspec.DecodeError, RecursionError) as error:
            refused = CallError(f"what came is no call: {error}", code=INVALID)
            self._settle(name, open_, failure(open_.id, refused))
        else:
            call = Call(self, self._count, letter.method, bytes(letter.params))
            self._start(name, open_, call)

    def _refuse_or_not(self, claim: Claim) -> None:
        most = self._limits.most_calls
        if claim.fault:
            raise CallError(claim.fault, code=INVALID)
        if most is not None and self._count > most:
            raise CallError(f"all {most} calls have been made", code=LIMIT_REACHED)
        if self._group.scope.is_cancelled:
            raise cancelled("this side is ending")

    def _start(self, name: str, open_: _Open, call: Call) -> None:
        work = answer_to(self._handler, call, open_.id, largest=self._limits.largest_frame)
        open_.task = self._group.start(work, name=f"{call.method[:100]} {name}")
        open_.task.add_done_callback(partial(self._ended, name))

    def _give_up(self, name: str) -> None:
        open_ = self._calls.get(name)
        if open_ is not None:
            open_.given_up = True
            if open_.task is not None:
                open_.task.cancel()

    def _ended(self, name: str, task: asyncio.Task[bytes]) -> None:
        open_ = self._calls.get(name)
        if open_ is None or open_.task is not task:
            return  # it was left over, and its caller knows
        if not task.cancelled():
            answer = task.result()
        else:
            closed = self._group.scope.is_cancelled
            why = "the server was closed" if closed else "by what it waited for"
            answer = failure(open_.id, cancelled(why))
        self._settle(name, open_, answer)

    async def tell(self, call_id: int, value: bytes) -> None:
        """There is no way to the caller before the answer."""

    # -- answers

    def _settle(self, name: str, open_: _Open, answer: bytes) -> None:
        open_.task = None
        self._service.start(self._answer(name, open_, answer), name=f"answer {name}")

    async def _answer(self, name: str, open_: _Open, answer: bytes) -> None:
        """Write the answer; if it cannot be, say so, as soon as that can."""
        try:
            while not open_.given_up:
                try:
                    await self._disk(self._box.answer, name, answer)
                    break
                except FileExistsError:
                    break  # someone answered in our name; that one is not overwritten
                except OSError as error:
                    if self._closing:
                        return  # it stays claimed, and the next server says that nobody knows
                    text = f"the answer could not be written: {error.strerror or error}"
                    answer = failure(open_.id, CallError(text))
                    await self._sleep(RETRY)
            if open_.given_up:
                with contextlib.suppress(OSError):
                    await self._disk(self._box.drop, name)
                    await self._disk(self._box.withdraw, name)
        finally:
            del self._calls[name]
            self._wake()

    # -- the server's own life

    async def _live(self) -> None:
        while not self._closing:
            wall = self._service.scope.clock.wall()
            with contextlib.suppress(OSError):  # a full disk; the answers tell
                await self._disk(self._box.beat, wall)
                await self._disk(self._box.sweep, wall - UNREAD)
            await self._sleep(BEAT)

    async def _rest(self) -> None:
        """Until the next look, which comes sooner if a caller has just got its answer."""
        self._resting = asyncio.get_running_loop().create_future()
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        await self._sleep(pause, self._resting)

    def _wake(self) -> None:
        self._pause = SHORTEST_PAUSE
        if self._resting is not None:
            _end(self._resting)

    async def _sleep(self, seconds: float, over: asyncio.Future[None] | None = None) -> None:
        """So long, or until the server is closing."""
        if self._closing:
            return
        over = over or asyncio.get_running_loop().create_future()
        scope = self._service.scope
        deadline = scope.deadlines.add(scope.clock.monotonic() + seconds, partial(_end, over))
        self._sleeping.add(over)
        try:
            await over
        finally:
            self._sleeping.discard(over)
            scope.deadlines.drop(deadline)

    async def _disk(self, work: Callable[..., T], *args: object) -> T:
        """Work in a thread; the folder's descriptors are closed after it, never under it."""
        started = self._bridge.start_thread(partial(work, *args), name="folder")
        self._on_disk.add(started.future)
        started.future.add_done_callback(self._on_disk.discard)
        return await asyncio.shield(started.future)


def _end(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)
