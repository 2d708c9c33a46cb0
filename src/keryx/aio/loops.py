"""Event loops: create one, run a program on one, or run one in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Self, TypeVar

from keryx.aio.bridge import Bridge
from keryx.aio.group import keep_until_ended
from keryx.aio.scope import GRACE, Scope, call_soon

T = TypeVar("T")

# How long a loop may take to end: clients close quickly, and a stuck one must not hold the exit.
LOOP_JOIN: Final = 5.0


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a new uvloop if it is installed, else a new loop of asyncio."""
    try:
        import uvloop  # noqa: PLC0415 (heavy; loaded when the first loop is made)
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run_loop(
    main: Coroutine[Any, Any, T],
    *,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    """Run a program to its end on a new loop, then end the remaining tasks in a bounded time.

    `asyncio.run` waits at exit for every task: for ever, if one swallows its cancellation.
    """
    interrupts = _Interrupts()
    with interrupts:
        try:
            loop = (loop_factory or new_loop)()
        except BaseException:
            main.close()
            raise
        task = loop.create_task(main, name="main")
        interrupts.cancel_with(loop, task)
        try:
            return loop.run_until_complete(task)
        except asyncio.CancelledError:
            if interrupts.is_interrupted:
                raise KeyboardInterrupt from None
            raise
        finally:
            _end(loop, set() if task.done() else {task}, LOOP_JOIN)
            if interrupts.is_interrupted and task.done() and not task.cancelled():
                task.exception()  # marks it as read: the interrupt is reported, not this error
            _end(loop, asyncio.all_tasks(loop), GRACE)
            loop.run_until_complete(_bounded(loop.shutdown_asyncgens()))
            loop.close()


class _Interrupts:
    """The first Ctrl+C cancels the program, which then cleans up; a second one ends it at once.

    Python's own handler raises wherever the main thread is at that moment. In a callback of the
    loop that error can get lost, and the program would go on as if nobody had pressed a key.
    """

    def __init__(self) -> None:
        self._cancel: Callable[[], object] | None = None
        self._installed = False
        self.is_interrupted = False

    def __enter__(self) -> None:
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            self._installed = True
            signal.signal(signal.SIGINT, self._handle)

    def __exit__(self, *exc: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def cancel_with(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        """Cancel this task at an interrupt, also at one that came before this call."""
        self._cancel = partial(call_soon, loop, task.cancel)
        if self.is_interrupted:
            task.cancel()

    def _handle(self, number: int, frame: object) -> None:
        del number, frame
        if self.is_interrupted:
            raise KeyboardInterrupt
        self.is_interrupted = True
        if self._cancel is not None:
            self._cancel()


def _end(loop: asyncio.AbstractEventLoop, tasks: set[asyncio.Task[Any]], patience: float) -> None:
    for task in tasks:
        task.cancel()
        keep_until_ended(task)
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=patience))


async def _bounded(work: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(work, LOOP_JOIN)


class LoopThread:
    """An event loop in a thread, with a bridge to it, for programs that run no loop themselves."""

    def __init__(
        self,
        *,
        name: str = "keryx-loop",
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    ) -> None:
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._bridge: Bridge | None = None
        self._loop_factory = loop_factory
        self._thread = threading.Thread(  # noqa: TID251 (the bridge is where threads come from)
            target=self._serve, name=name, daemon=True
        )
        self._thread.start()
        self._ready.wait()

    @property
    def bridge(self) -> Bridge:
        assert self._bridge is not None
        return self._bridge

    def call(
        self,
        work: Callable[..., Coroutine[Any, Any, T]],
        *args: Any,
        timeout: float | None = None,
    ) -> T:
        """Run async code on the loop and block for its result."""
        return self.bridge.from_thread(work, *args, timeout=timeout)

    def close(self) -> None:
        """Cancel all work on the loop and stop it."""
        if self._stop is not None and call_soon(self.bridge.loop, self._stop.set):
            self._thread.join(LOOP_JOIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _serve(self) -> None:
        run_loop(self._main(), loop_factory=self._loop_factory)

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        scope = Scope("loop thread")
        self._bridge = Bridge(scope)
        self._ready.set()
        await self._stop.wait()
        scope.cancel("shutdown", by="close")
        await self._bridge.close()
        scope.close()
