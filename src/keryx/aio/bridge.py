"""The one bridge between blocking and async code, and between loops.

A `Bridge` belongs to the loop that made it. All its tables change on that loop only; threads
hand it their results with `call_soon_threadsafe`. Its threads are daemons: the pools of the
standard library join their threads at exit, so a tool that never returns would hold the process.

Three methods cross the bridge:

- `to_thread`: async code on the owner loop runs blocking code in a thread;
- `from_thread`: blocking code in any other thread runs async code on the owner loop;
- `from_loop`: async code on another loop runs async code on the owner loop.

Each method copies the context, so code on both sides finds the call's token; cancelling the token
reaches both sides too.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from keryx.aio.group import Group
from keryx.aio.scope import GRACE, Scope, call_soon, get_token, is_loop_thread
from keryx.errors import (
    DeadlineError,
    ScopeClosedError,
    ThreadsExhaustedError,
    ToolCancelledError,
    WrongThreadError,
)

T = TypeVar("T")

# Blocking tools mostly wait, so many threads cost little; 64 run at once on any machine.
THREADS: Final = 64
# Threads that compute fight for the interpreter: fifty small reads at once took twice as long as
# one after another. So only a few begin together. Work that has not returned after this time is
# waiting for something, so more work begins; if none has returned, twice as much: 64 run in 5 ms.
FIRST_WIDTH: Final = 4
QUICK_SECONDS: Final = 0.001
# Left-over work keeps its thread, so the pool grows past it; beyond this, something is broken.
MOST_THREADS: Final = 512


class ThreadWork(Generic[T]):
    """Blocking work that runs in a thread or waits for one. Await `future` for its result."""

    __slots__ = ("_bridge", "_work", "context", "future", "is_left_over", "name")

    def __init__(
        self,
        bridge: Bridge,
        work: Callable[[], T],
        name: str,
        future: asyncio.Future[T],
    ) -> None:
        self._bridge = bridge
        self._work = work
        self.name = name
        self.future = future
        self.context = contextvars.copy_context()
        self.is_left_over = False

    def run(self) -> T:
        return self.context.run(self._work)

    def leave_over(self) -> None:
        """Give its place in the pool to other work. The future still completes when it returns."""
        self._bridge.count_left_over(self)

    def abandon(self) -> None:
        """Stop waiting for this work and drop its result."""
        if not self.future.done():
            self.future.cancel()
            self.leave_over()


class _Worker:
    """One daemon thread with a queue of its own; an idle thread waits for that queue."""

    __slots__ = ("inbox",)

    def __init__(self, bridge: Bridge, number: int) -> None:
        self.inbox: queue.SimpleQueue[ThreadWork[Any] | None] = queue.SimpleQueue()
        threading.Thread(  # noqa: TID251 (the bridge is where threads come from)
            target=self._serve, args=(bridge,), name=f"keryx-{number}", daemon=True
        ).start()

    def _serve(self, bridge: Bridge) -> None:
        loop = bridge.loop
        while (work := self.inbox.get()) is not None:
            _serving.work = work
            value, error = None, None
            try:
                value = work.run()
            except BaseException as raised:  # noqa: BLE001 (every error goes to the code that awaits)
                error = raised
            _serving.work = None
            if not call_soon(loop, bridge.take_result, self, work, value, error):
                return
            del work, value, error


class _Serving(threading.local):
    """The work that this thread runs now; None if it is not a thread of a bridge."""

    work: ThreadWork[Any] | None = None


_serving: Final = _Serving()


class Bridge:
    """A thread pool for the loop that made it, and calls from other threads to that loop."""

    def __init__(
        self, scope: Scope, *, threads: int = THREADS, most_threads: int = MOST_THREADS
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._threads = threads
        self._most = most_threads
        self._idle: list[_Worker] = []
        self._busy: dict[ThreadWork[Any], _Worker] = {}
        # Busy work that counts against the limit: neither left over nor waiting for the loop.
        self._counted: set[ThreadWork[Any]] = set()
        # The part of it that began less than QUICK_SECONDS ago, and how much of it there may be.
        self._quick: dict[ThreadWork[Any], float] = {}
        self._width = FIRST_WIDTH
        self._slow_work_timer: asyncio.TimerHandle | None = None
        self._queued: deque[ThreadWork[Any]] = deque()
        self._thread_count = 0
        self._closed = False
        self._loop_calls: set[_LoopCall[Any]] = set()
        self._group = Group(scope.child("bridge"))

    # -- async to blocking

    def start_thread(self, work: Callable[[], T], *, name: str = "work") -> ThreadWork[T]:
        """Start blocking work now, or as soon as a thread is free. On the owner loop only."""
        if self._closed:
            raise ScopeClosedError(f"the bridge is closed; {name!r} is refused")
        thread_work = ThreadWork(self, work, name, self.loop.create_future())
        if self._has_room():
            self._begin(thread_work)
        elif not self._counted:
            raise self._exhausted()
        else:
            self._enqueue(thread_work)
        return thread_work

    async def to_thread(self, work: Callable[..., T], *args: Any) -> T:
        """Run blocking code in a thread. If the caller is cancelled, the thread is left over."""
        name = getattr(work, "__name__", "work")
        thread_work = self.start_thread(lambda: work(*args), name=name)
        try:
            return await thread_work.future
        except asyncio.CancelledError:
            self.count_left_over(thread_work)
            raise

    async def to_thread_and_end(self, work: Callable[..., T], *args: Any) -> T:
        """Run blocking code in a thread. If the caller is cancelled, this returns when the thread
        has ended, however long that takes: the caller is left over as long as its thread."""
        name = getattr(work, "__name__", "work")
        thread_work = self.start_thread(lambda: work(*args), name=name)
        future = thread_work.future
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self.count_left_over(thread_work)
            while not future.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([future])
            if not future.cancelled():
                future.exception()  # nobody wants it any more
            raise

    # -- blocking to async

    def from_thread(
        self,
        work: Callable[..., Coroutine[Any, Any, T]],
        *args: Any,
        timeout: float | None = None,
    ) -> T:
        """Run async code on the owner loop and block for its result, from any other thread.

        Raises `DeadlineError` after the timeout and `ToolCancelledError` if the call that this
        thread serves is cancelled; the async code is cancelled either way.
        """
        if is_loop_thread(self.loop):
            raise WrongThreadError(
                "this thread runs the event loop that has to run the work; await the work instead"
            )
        woken = threading.Event()
        call = _LoopCall(work(*args), woken.set)
        serving = _serving.work if _serving.work in self._busy else None
        if not call_soon(self.loop, self._begin_call, call, serving):
            call.refuse("the event loop that has to run the work is closed")
        try:
            if not woken.wait(timeout):
                raise DeadlineError(f"no answer within {timeout} s; the work was cancelled")
        finally:
            # Also when an alarm or Ctrl+C ends the wait: no work goes on for a caller that left.
            call_soon(self.loop, self._end_call, call, serving)
        return call.result()

    async def from_loop(self, work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        """Run async code on the owner loop and await it on this one."""
        here = asyncio.get_running_loop()
        if here is self.loop:
            return await work(*args)
        woken = here.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        call = _LoopCall(work(*args), lambda: call_soon(here, wake))
        if not call_soon(self.loop, self._begin_call, call, None):
            call.refuse("the event loop that has to run the work is closed")
        try:
            await woken
        finally:
            call_soon(self.loop, self._end_call, call, None)
        return call.result()

    # -- the end

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def left_over(self) -> tuple[str, ...]:
        """The names of abandoned work whose threads have not returned."""
        return tuple(work.name for work in self._busy if work.is_left_over)

    async def close(self) -> None:
        """End all threads that return, refuse new work, and fail all calls that wait."""
        self._closed = True
        for work in (*self._queued, *self._busy):
            work.abandon()
        self._queued.clear()
        if self._slow_work_timer is not None:
            self._slow_work_timer.cancel()
        # Busy workers find the None when they return, also after the loop has closed.
        for worker in (*self._idle, *self._busy.values()):
            worker.inbox.put(None)
        self._idle.clear()
        await self._group.leave()
        for call in tuple(self._loop_calls):
            call.refuse("the bridge is closed")

    # -- threads, on the owner loop

    def _has_room(self) -> bool:
        return (
            len(self._quick) < self._width
            and len(self._counted) < self._threads
            and len(self._busy) < self._most
        )

    def _enqueue(self, work: ThreadWork[Any]) -> None:
        self._queued.append(work)
        if self._slow_work_timer is None:
            self._slow_work_timer = self.loop.call_later(QUICK_SECONDS, self._admit_past_slow_work)

    def _admit_past_slow_work(self) -> None:
        """Stop counting slow work as quick, and begin queued work in its place."""
        self._slow_work_timer = None
        before = time.monotonic() - QUICK_SECONDS
        slow = [work for work, began_at in self._quick.items() if began_at <= before]
        self._width = (
            min(self._width * 2, self._threads) if len(slow) == self._width else FIRST_WIDTH
        )
        for work in slow:
            del self._quick[work]
        self._begin_queued()
        if self._queued:
            self._slow_work_timer = self.loop.call_later(QUICK_SECONDS, self._admit_past_slow_work)
        else:
            self._width = FIRST_WIDTH

    def _stop_counting(self, work: ThreadWork[Any]) -> None:
        """Take work off the count: it has returned, is left over, or waits for the loop."""
        self._counted.discard(work)
        self._quick.pop(work, None)

    def _begin(self, work: ThreadWork[Any]) -> None:
        if self._idle:
            worker = self._idle.pop()
        else:
            self._thread_count += 1
            worker = _Worker(self, self._thread_count)
        self._busy[work] = worker
        self._counted.add(work)
        self._quick[work] = time.monotonic()
        worker.inbox.put(work)

    def _begin_queued(self) -> None:
        while self._queued and self._has_room():
            self._begin(self._queued.popleft())
        if self._queued and not self._counted:
            # Every thread is left over or waits for another one, so none will become free.
            while self._queued:
                future = self._queued.popleft().future
                if not future.done():
                    future.set_exception(self._exhausted())

    def _exhausted(self) -> ThreadsExhaustedError:
        """Return the error for work that would wait for a thread for ever."""
        left_over = len(self.left_over)
        causes: list[str] = []
        if waiting := len(self._busy) - left_over:
            causes.append(
                f"{waiting} wait for calls that they made, which need threads too; run fewer at "
                "once, nest them less deeply, or make the outer tools async"
            )
        if left_over:
            causes.append(
                f"{left_over} left over, whose tools were given up and have not returned; restart, "
                "or declare such tools isolation='process'"
            )
        return ThreadsExhaustedError(f"all {self._most} threads are held: {'; '.join(causes)}")

    def count_left_over(self, work: ThreadWork[Any]) -> None:
        """Stop counting work that runs; remove work that has not begun from the queue."""
        work.is_left_over = True
        self._stop_counting(work)
        if work in self._queued:
            self._queued.remove(work)
            work.future.cancel()
        self._begin_queued()

    def take_result(
        self, worker: _Worker, work: ThreadWork[Any], value: Any, error: BaseException | None
    ) -> None:
        """Take the result of a thread that has returned."""
        del self._busy[work]
        self._stop_counting(work)
        if not self._closed:
            self._idle.append(worker)
        if not work.future.done():
            if error is None:
                work.future.set_result(value)
            else:
                work.future.set_exception(_storable(error))
        self._begin_queued()

    # -- calls from other threads, on the owner loop

    def _begin_call(self, call: _LoopCall[Any], serving: ThreadWork[Any] | None) -> None:
        if self._closed:
            call.refuse("the bridge is closed")
            return
        if serving is not None:
            # A thread that waits for the loop does not count, or nested calls could use up all.
            self._stop_counting(serving)
            self._begin_queued()
        self._loop_calls.add(call)
        call.begin(self._group)

    def _end_call(self, call: _LoopCall[Any], serving: ThreadWork[Any] | None) -> None:
        self._loop_calls.discard(call)
        call.cancel()
        if serving is not None and serving in self._busy and not serving.is_left_over:
            self._counted.add(serving)


class _LoopCall(Generic[T]):
    """Async work on the owner loop that code on another thread waits for."""

    __slots__ = ("_context", "_error", "_registration", "_task", "_value", "_wake", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], wake: Callable[[], object]) -> None:
        self._work: Coroutine[Any, Any, T] | None = work
        self._wake = wake
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[None] | None = None
        self._value: list[T] = []
        self._error: BaseException | None = None
        self._registration = None

    def begin(self, group: Group) -> None:
        work = self._work
        if work is None:
            return
        self._work = None
        token = self._context.run(get_token)
        self._task = self._context.run(group.start, self._run(work), name="from another thread")
        self._task.add_done_callback(lambda _: self._ended(work))
        if token is not None:
            self._registration = token.on_cancel(self._cancel_for_caller)

    async def _run(self, work: Coroutine[Any, Any, T]) -> None:
        try:
            self._settle(None, [await work])
        except asyncio.CancelledError:
            self._settle(self._cancelled())
            raise
        except BaseException as error:  # noqa: BLE001 (it belongs to the thread that waits)
            self._settle(_storable(error))

    def _ended(self, work: Coroutine[Any, Any, T]) -> None:
        """Settle the call if its task was cancelled before its first step."""
        work.close()
        self._settle(self._cancelled())

    def _cancelled(self) -> ToolCancelledError:
        token = self._context.run(get_token)
        return ToolCancelledError((token.reason if token is not None else None) or "parent")

    def _cancel_for_caller(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            # Work that swallows its cancellation must not hold the thread that waits for it.
            self._task.get_loop().call_later(GRACE, self._settle, self._cancelled())

    def cancel(self) -> None:
        self.refuse("its caller stopped waiting")
        if self._registration is not None:
            self._registration.remove()
        if self._task is not None and not self._task.done():
            self._task.cancel()

    def refuse(self, why: str) -> None:
        if self._work is not None:
            self._work.close()
            self._work = None
        self._settle(ScopeClosedError(why))

    def _settle(self, error: BaseException | None, value: list[T] | None = None) -> None:
        if self._error is None and not self._value:
            self._error = error
            self._value = value or []
            self._wake()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value[0]


def _storable(error: BaseException) -> BaseException:
    """Wrap errors that a future refuses (StopIteration) or that would end the loop."""
    if isinstance(error, StopIteration | KeyboardInterrupt | SystemExit | GeneratorExit):
        wrapped = RuntimeError(f"{type(error).__name__}: {error}")
        wrapped.__cause__ = error
        return wrapped
    return error
