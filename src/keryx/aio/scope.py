"""The scope tree: what is cancelled together, why, and by when.

A `Scope` owns no work itself. It stores one fact, "this is cancelled, for this reason", and
wakes the code that waits for it. A `Group` attaches tasks to a scope; `on_cancel` and
`on_kill` attach child processes and nested calls.

`cancel` can be called from a signal handler and needs no lock: it stores the fact with
`dict.setdefault`, which is atomic, so the first reason wins and never changes; everything
else (callbacks, children, timers) happens on the owner loop, which `cancel` only wakes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, Literal

import msgspec

from keryx.aio.clock import Callback, Clock, Deadline, Deadlines, RealClock
from keryx.errors import ScopeClosedError, ToolCancelledError, WrongThreadError

Reason = Literal["interrupt", "steer", "timeout", "shutdown", "parent"]

# The ladder. Rung one, at the cancel itself: tokens, tasks, sockets, SIGTERM.
# Rung two, after the grace: SIGKILL. 200 ms let a shell or a client library clean up,
# and the person who pressed the key still feels no delay.
GRACE: Final = 0.2
# After SIGKILL the exit report needs a scheduler round and one socket hop; 100 ms is
# twenty times what a loaded machine took. A process that has not reported by then is left over.
EXIT_REPORT: Final = 0.1


class Cancellation(msgspec.Struct, frozen=True):
    """Why a scope was cancelled, and who cancelled it."""

    reason: Reason
    by: str


class Registration:
    """A callback that is registered with a scope; `remove` unregisters it."""

    __slots__ = ("_table",)

    def __init__(self, table: dict[Registration, Callback]) -> None:
        self._table = table

    def remove(self) -> None:
        self._table.pop(self, None)


class Scope:
    """One node of the tree. Created on its owner loop; cancelled from any thread."""

    __slots__ = (
        "_callbacks",
        "_cell",
        "_children",
        "_closed",
        "_deadline",
        "_delivered",
        "_kill_at",
        "_kills",
        "_loop",
        "deadlines",
        "name",
        "parent",
    )

    def __init__(
        self,
        name: str,
        *,
        parent: Scope | None = None,
        clock: Clock | None = None,
    ) -> None:
        if parent is not None and parent._closed:
            raise ScopeClosedError(f"scope {parent.name!r} has been left; {name!r} cannot start")
        self.name = name
        self.parent = parent
        self._loop = asyncio.get_running_loop() if parent is None else parent._loop
        self.deadlines = Deadlines(clock or RealClock()) if parent is None else parent.deadlines
        self._cell: dict[None, Cancellation] = {}
        self._callbacks: dict[Registration, Callback] = {}
        self._kills: dict[Registration, Callback] = {}
        self._children: dict[Scope, None] = {}
        self._deadline: Deadline | None = None
        self._kill_at: Deadline | None = None
        self._delivered = False
        self._closed = False
        if parent is not None:
            parent._children[self] = None
            if parent._delivered:
                self._deliver()

    # -- callable from any thread

    @property
    def cancellation(self) -> Cancellation | None:
        """Why this scope is cancelled, or None; the first reason stays."""
        own = self._cell.get(None)
        if own is not None:
            return own
        ancestor = self.parent  # read once: another thread may close the scope, which clears it
        while ancestor is not None:
            inherited = ancestor._cell.get(None)
            if inherited is not None:
                return self._cell.setdefault(None, inherited)
            ancestor = ancestor.parent
        return self._cell.get(None)

    @property
    def is_cancelled(self) -> bool:
        return self.cancellation is not None

    @property
    def reason(self) -> Reason | None:
        cancellation = self.cancellation
        return None if cancellation is None else cancellation.reason

    def raise_if_cancelled(self) -> None:
        cancellation = self.cancellation
        if cancellation is not None:
            raise ToolCancelledError(cancellation.reason)

    def cancel(self, reason: Reason, *, by: str = "") -> bool:
        """Cancel this scope and everything below it. Return True if this was the first reason.

        Callable from any task, thread or signal handler: it stores the fact and wakes the
        owner loop, which runs the callbacks.
        """
        if self.cancellation is not None:
            return False
        cancellation = Cancellation(reason, by)
        if self._cell.setdefault(None, cancellation) is not cancellation:
            return False
        call_soon(self._loop, self._deliver)
        return True

    # -- on the owner loop

    def child(self, name: str) -> Scope:
        return Scope(name, parent=self)

    @property
    def children(self) -> tuple[Scope, ...]:
        return tuple(self._children)

    @property
    def clock(self) -> Clock:
        return self.deadlines.clock

    def cancel_at(self, when: float, *, by: str = "deadline") -> None:
        """Set the deadline (in the clock's monotonic time); a later call replaces it."""
        if self._deadline is not None:
            self.deadlines.drop(self._deadline)
        self._deadline = self.deadlines.add(when, lambda: self._expire(by))

    def on_cancel(self, callback: Callback) -> Registration:
        """Run the callback once on the owner loop at the cancel; soon, if it has happened."""
        return self._register(self._callbacks, callback)

    def on_kill(self, callback: Callback) -> Registration:
        """Run the callback one grace after the cancel, unless it was removed by then."""
        registration = self._register_quietly(self._kills, callback)
        if self._delivered:
            self._schedule_kills()
        return registration

    @property
    def holds_killable(self) -> bool:
        """Whether rung two has something to kill here or below."""
        return bool(self._kills) or any(child.holds_killable for child in self._children)

    def close(self) -> None:
        """Leave the scope: no callback runs and no child starts any more; its reason stays."""
        self._closed = True
        assert self.cancellation is None or self._cell  # pins an inherited reason
        for entry in (self._deadline, self._kill_at):
            if entry is not None:
                self.deadlines.drop(entry)
        self._deadline = self._kill_at = None
        self._callbacks.clear()
        self._kills.clear()
        if self.parent is not None:
            self.parent._children.pop(self, None)
            self.parent = None

    def _register(self, table: dict[Registration, Callback], callback: Callback) -> Registration:
        registration = self._register_quietly(table, callback)
        # Registered before the check: a cancel between the two lines finds the callback.
        if self._delivered and not self._closed:
            call_soon(self._loop, self._run_callbacks)
        return registration

    def _register_quietly(
        self, table: dict[Registration, Callback], callback: Callback
    ) -> Registration:
        registration = Registration(table)
        table[registration] = callback
        return registration

    def _expire(self, by: str) -> None:
        self._deadline = None
        if self.cancellation is None:
            self._cell.setdefault(None, Cancellation("timeout", by))
            self._deliver()

    def _deliver(self) -> None:
        if self._delivered or self._closed:
            return
        assert self.cancellation is not None  # pins an inherited reason
        self._delivered = True
        if self._deadline is not None:
            self.deadlines.drop(self._deadline)
            self._deadline = None
        self._run_callbacks()
        if self._kills:
            self._schedule_kills()
        for child in tuple(self._children):
            child._deliver()

    def _run_callbacks(self) -> None:
        _run_all(self._callbacks, self._loop)

    def _schedule_kills(self) -> None:
        if self._kill_at is None and not self._closed:
            self._kill_at = self.deadlines.add(self.clock.monotonic() + GRACE, self._kill)

    def _kill(self) -> None:
        self._kill_at = None
        _run_all(self._kills, self._loop)


def _run_all(table: dict[Registration, Callback], loop: asyncio.AbstractEventLoop) -> None:
    """Run every callback once; one that fails is reported, and the others still run."""
    while True:
        try:
            # Atomic, because other threads register and remove meanwhile; the last one runs first.
            _, callback = table.popitem()
        except KeyError:
            return
        try:
            callback()
        except Exception as error:  # noqa: BLE001 (foreign code; it is reported, and the others must still run)
            loop.call_exception_handler(
                {"message": "a cancellation callback failed", "exception": error}
            )


def call_soon(
    loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: object
) -> bool:
    """Run the callback on that loop, from any thread. Return False if the loop is closed."""
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        # All that the loop ran has ended with it; nothing is left to wake.
        return False
    return True


def is_loop_thread(loop: asyncio.AbstractEventLoop | None = None) -> bool:
    """Return whether this thread runs the given loop, or any loop."""
    running = asyncio._get_running_loop()  # the public one raises where there is none
    return running is not None and (loop is None or running is loop)


class CancellationToken:
    """A tool's view of its scope: the tool can check and wait, but not cancel."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @property
    def is_cancelled(self) -> bool:
        return self._scope.is_cancelled

    @property
    def reason(self) -> Reason | None:
        return self._scope.reason

    def raise_if_cancelled(self) -> None:
        self._scope.raise_if_cancelled()

    def on_cancel(self, callback: Callback) -> Registration:
        return self._scope.on_cancel(callback)

    async def wait_cancelled(self) -> Reason:
        """Return the reason once cancelled. Works on any loop, not only on the scope's own."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        registration = self._scope.on_cancel(lambda: call_soon(loop, wake))
        try:
            if self._scope.reason is None:
                await woken
        finally:
            registration.remove()
        reason = self._scope.reason
        assert reason is not None
        return reason

    def wait_cancelled_sync(self, timeout: float | None = None) -> bool:
        """Block until cancelled; False at the timeout. WrongThreadError on a loop's thread."""
        if asyncio._get_running_loop() is not None:
            raise WrongThreadError(
                "wait_cancelled_sync would block the event loop of this thread; "
                "await wait_cancelled() instead"
            )
        woken = threading.Event()
        registration = self._scope.on_cancel(woken.set)
        try:
            return self._scope.is_cancelled or woken.wait(timeout)
        finally:
            registration.remove()


_current_token: ContextVar[CancellationToken | None] = ContextVar("keryx_token", default=None)


def get_token() -> CancellationToken | None:
    """Return the token of the call that this code runs in, from any depth; None outside a call."""
    return _current_token.get()


def is_interrupted() -> bool:
    """Return whether the call that this code runs in is cancelled; False outside a call."""
    token = _current_token.get()
    return token is not None and token.is_cancelled


def set_token(token: CancellationToken | None) -> None:
    """Bind the token to the current context. Only the executor calls this, in a call's context."""
    _current_token.set(token)
