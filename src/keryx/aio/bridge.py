"""The one bridge between blocking and async code, and between loops.

A `Bridge` belongs to the loop that made it. All its tables change on that loop only; threads
hand it their results with `call_soon_threadsafe`. Its threads are daemons, because library pools
join theirs at exit and a tool that never returns would hold the process.

The three ways across:

- `to_thread`: async code on the owner loop runs blocking code in a thread;
- `from_thread`: blocking code in any other thread runs async code on the owner loop;
- `from_loop`: async code on another loop runs async code on the owner loop.

Contexts are copied on the way, so the call's token is found on both sides; cancelling the token
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

# Blocking tools mostly wait, so threads are many and cheap; 64 run at once on any machine.
THREADS: Final = 64
# Threads that compute fight for the interpreter: fifty small reads at once took twice as long as
# one after another. So only a few begin together. What has not returned after a moment waits for
# something, and others begin; if none has returned, twice as many: 64 are under way in 5 ms.
EAGER: Final = 4
MOMENT: Final = 0.001
# Left-overs keep their thread, so the pool grows past them; beyond this, something is broken.
MOST_THREADS: Final = 512


class ThreadWork(Generic[T]):
    """Blocking work under way. Await `future`."""

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
        """Give its place in the pool to others. The future still tells when it returns."""
        self._bridge.count_left_over(self)

    def abandon(self) -> None:
        """Stop waiting for it: its result is dropped."""
        if not self.future.done():
            self.future.cancel()
            self.leave_over()


class _Worker:
    """One daemon thread. Idle ones wait at their own queue."""

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
            except BaseException as raised:  # noqa: BLE001 (whatever it is, it goes to who awaits)
                error = raised
            _serving.work = None
            if not call_soon(loop, bridge.take_result, self, work, value, error):
                return
            del work, value, error


class _Serving(threading.local):
    """Which work this thread serves, if it is one of ours."""

    work: ThreadWork[Any] | None = None


_serving: Final = _Serving()


class Bridge:
    """Threads for the loop that made it, and the way back from them."""

    def __init__(
        self, scope: Scope, *, threads: int = THREADS, most_threads: int = MOST_THREADS
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._threads = threads
        self._most = most_threads
        self._idle: list[_Worker] = []
        self._busy: dict[ThreadWork[Any], _Worker] = {}
        # The busy ones that count: not left over, and not waiting for the loop themselves.
        self._live: set[ThreadWork[Any]] = set()
        # Those of them that began less than a moment ago, and how many there may be.
        self._quick: dict[ThreadWork[Any], float] = {}
        self._width = EAGER
        self._watch: asyncio.TimerHandle | None = None
        self._waiting: deque[ThreadWork[Any]] = deque()
        self._made = 0
        self._closed = False
        self._answers: set[_Answer[Any]] = set()
        self._group = Group(scope.child("bridge"))

    # -- async to blocking

    def start_thread(self, work: Callable[[], T], *, name: str = "work") -> ThreadWork[T]:
        """Start blocking work now, or as soon as a thread is free. On the owner loop only."""
        if self._closed:
            raise ScopeClosedError(f"the bridge is closed; {name!r} is refused")
        started = ThreadWork(self, work, name, self.loop.create_future())
        if self._has_room():
            self._begin(started)
        elif not self._live:
            raise self._exhausted()
        else:
            self._wait(started)
        return started

    async def to_thread(self, work: Callable[..., T], *args: Any) -> T:
        """Run blocking code in a thread. If the caller is cancelled, the thread is left over."""
        started = self.start_thread(lambda: work(*args), name=getattr(work, "__name__", "work"))
        try:
            return await started.future
        except asyncio.CancelledError:
            self.count_left_over(started)
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
                "this thread runs the event loop that would have to answer; await the work instead"
            )
        woken = threading.Event()
        answer = _Answer(work(*args), woken.set)
        serving = _serving.work if _serving.work in self._busy else None
        if not call_soon(self.loop, self._begin_answer, answer, serving):
            answer.refuse("the loop that would have to answer is closed")
        try:
            if not woken.wait(timeout):
                raise DeadlineError(f"no answer within {timeout} s; the work was cancelled")
        finally:
            # Also when an alarm or Ctrl+C ends the wait: nothing runs on for a caller that left.
            call_soon(self.loop, self._end_answer, answer, serving)
        return answer.result()

    async def from_loop(self, work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        """Run async code on the owner loop and await it on this one."""
        here = asyncio.get_running_loop()
        if here is self.loop:
            return await work(*args)
        woken = here.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        answer = _Answer(work(*args), lambda: call_soon(here, wake))
        if not call_soon(self.loop, self._begin_answer, answer, None):
            answer.refuse("the loop that would have to answer is closed")
        try:
            await woken
        finally:
            call_soon(self.loop, self._end_answer, answer, None)
        return answer.result()

    # -- the end

    @property
    def left_over(self) -> tuple[str, ...]:
        """The names of the work that nobody waits for and whose threads have not returned."""
        return tuple(work.name for work in self._busy if work.is_left_over)

    async def close(self) -> None:
        """End all threads that return, refuse all that is new, answer all that wait."""
        self._closed = True
        for work in (*self._waiting, *self._busy):
            work.abandon()
        self._waiting.clear()
        if self._watch is not None:
            self._watch.cancel()
        # Busy ones find it when they return, also if that is after the loop has gone.
        for worker in (*self._idle, *self._busy.values()):
            worker.inbox.put(None)
        self._idle.clear()
        await self._group.leave()
        for answer in tuple(self._answers):
            answer.refuse("the bridge is closed")

    # -- threads, on the owner loop

    def _has_room(self) -> bool:
        return (
            len(self._quick) < self._width
            and len(self._live) < self._threads
            and len(self._busy) < self._most
        )

    def _wait(self, work: ThreadWork[Any]) -> None:
        self._waiting.append(work)
        if self._watch is None:
            self._watch = self.loop.call_later(MOMENT, self._look)

    def _look(self) -> None:
        """A moment has passed and work waits: who still runs is no longer counted as quick."""
        self._watch = None
        before = time.monotonic() - MOMENT
        slow = [work for work, began in self._quick.items() if began <= before]
        self._width = min(self._width * 2, self._threads) if len(slow) == self._width else EAGER
        for work in slow:
            del self._quick[work]
        self._begin_waiting()
        if self._waiting:
            self._watch = self.loop.call_later(MOMENT, self._look)
        else:
            self._width = EAGER

    def _forget(self, work: ThreadWork[Any]) -> None:
        """It counts no more: it has returned, is left over, or waits for the loop."""
        self._live.discard(work)
        self._quick.pop(work, None)

    def _begin(self, work: ThreadWork[Any]) -> None:
        if self._idle:
            worker = self._idle.pop()
        else:
            self._made += 1
            worker = _Worker(self, self._made)
        self._busy[work] = worker
        self._live.add(work)
        self._quick[work] = time.monotonic()
        worker.inbox.put(work)

    def _begin_waiting(self) -> None:
        while self._waiting and self._has_room():
            self._begin(self._waiting.popleft())
        if self._waiting and not self._live:
            # Every thread there may be is left over or waits for another one: nobody will free one.
            while self._waiting:
                future = self._waiting.popleft().future
                if not future.done():
                    future.set_exception(self._exhausted())

    def _exhausted(self) -> ThreadsExhaustedError:
        """Nobody will free a thread: what holds them is given up, or waits for further ones."""
        left_over = len(self.left_over)
        held: list[str] = []
        if waiting := len(self._busy) - left_over:
            held.append(
                f"{waiting} wait for calls that they made, which need threads too; run fewer at "
                "once, nest them less deeply, or make the outer tools async"
            )
        if left_over:
            held.append(
                f"{left_over} left over, whose tools were given up and have not returned; restart, "
                "or declare such tools isolation='process'"
            )
        return ThreadsExhaustedError(f"all {self._most} threads are held: {'; '.join(held)}")

    def count_left_over(self, work: ThreadWork[Any]) -> None:
        """A running thread stops counting as live; work that had not begun is forgotten."""
        work.is_left_over = True
        self._forget(work)
        if work in self._waiting:
            self._waiting.remove(work)
            work.future.cancel()
        self._begin_waiting()

    def take_result(
        self, worker: _Worker, work: ThreadWork[Any], value: Any, error: BaseException | None
    ) -> None:
        """A thread has returned."""
        del self._busy[work]
        self._forget(work)
        if not self._closed:
            self._idle.append(worker)
        if not work.future.done():
            if error is None:
                work.future.set_result(value)
            else:
                work.future.set_exception(_storable(error))
        self._begin_waiting()

    # -- answers, on the owner loop

    def _begin_answer(self, answer: _Answer[Any], serving: ThreadWork[Any] | None) -> None:
        if self._closed:
            answer.refuse("the bridge is closed")
            return
        if serving is not None:
            # A thread that waits for the loop does not count, or nesting could use all of them up.
            self._forget(serving)
            self._begin_waiting()
        self._answers.add(answer)
        answer.begin(self._group)

    def _end_answer(self, answer: _Answer[Any], serving: ThreadWork[Any] | None) -> None:
        self._answers.discard(answer)
        answer.cancel()
        if serving is not None and serving in self._busy and not serving.is_left_over:
            self._live.add(serving)


class _Answer(Generic[T]):
    """Async work that someone on another thread waits for."""

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
        """A task that was cancelled before its first step has run nothing, and told nobody."""
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
        self.refuse("its caller has gone")
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
    """A future refuses StopIteration, and one of these must not end the loop that reads it."""
    if isinstance(error, StopIteration | KeyboardInterrupt | SystemExit | GeneratorExit):
        wrapped = RuntimeError(f"{type(error).__name__}: {error}")
        wrapped.__cause__ = error
        return wrapped
    return error
