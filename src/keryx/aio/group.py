"""Tasks that live and end together. Only this module creates tasks in Keryx.

Unlike `asyncio.TaskGroup`, leaving a `Group` takes a bounded time: a task that swallows its
cancellation is named in `left_over` after the grace, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from keryx.aio.clock import Deadline
from keryx.aio.scope import GRACE, Scope
from keryx.errors import ScopeClosedError

T = TypeVar("T")

# A loop keeps only weak references to its tasks. Tasks that outlive their group stay here until
# they end, so that the garbage collector does not destroy them while they run.
_outliving: Final[set[asyncio.Task[Any]]] = set()


def keep_until_ended(task: asyncio.Task[Any]) -> None:
    """Hold a reference to a task that nobody waits for, until it ends."""
    _outliving.add(task)
    task.add_done_callback(_outliving.discard)


class Group:
    """Holds tasks under a scope: cancelling the scope cancels them, once each.

    The first task that fails cancels the others, and its error is raised on leaving. With
    `on_error` the others go on: each error is passed to that callback and raised nowhere.
    """

    def __init__(
        self,
        scope: Scope,
        *,
        grace: float = GRACE,
        on_error: Callable[[str, BaseException], None] | None = None,
    ) -> None:
        """`on_error` gets the name of the task and its error, on the loop."""
        self.scope = scope
        self._on_error = on_error
        self.error: BaseException | None = None
        self._grace = grace
        self._tasks: set[asyncio.Task[Any]] = set()
        self._left_over: tuple[str, ...] = ()
        self._changed: asyncio.Future[None] | None = None
        self._out_of_patience = False
        self._closed = False
        self._patience: Deadline | None = None
        self._registration = scope.on_cancel(self._cancel_all)

    def start(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Start the work as a task. Raise if the group was left or its scope is cancelled."""
        if self._closed or self.scope.is_cancelled:
            work.close()
            self.scope.raise_if_cancelled()
            raise ScopeClosedError(f"the group of {self.scope.name!r} is left; {name!r} is refused")
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def left_over(self) -> tuple[str, ...]:
        """The names of the tasks that had not ended when the group was left."""
        return self._left_over

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.scope.cancel("parent", by="the body of the group ended early")
        await self._wait_ended()
        if error is None and self.error is not None:
            raise self.error

    async def leave(self) -> None:
        """Cancel all tasks, wait for them at most for the grace, and name those that still run."""
        self.scope.cancel("parent", by="the group was left")
        await self._wait_ended()

    async def _wait_ended(self) -> None:
        interrupted: asyncio.CancelledError | None = None
        while self._tasks and not self._out_of_patience:
            self._changed = asyncio.get_running_loop().create_future()
            try:
                await self._changed
            except asyncio.CancelledError as cancelled:
                # The owner is cancelled while it leaves: wait on, but now only for the grace.
                interrupted = cancelled
                self.scope.cancel("parent", by="the group's owner was cancelled")
        self._close()
        if interrupted is not None:
            raise interrupted

    def _close(self) -> None:
        self._closed = True
        self._registration.remove()
        if self._patience is not None:
            self.scope.deadlines.drop(self._patience)
        for task in self._tasks:
            keep_until_ended(task)
        self._left_over = tuple(sorted(task.get_name() for task in self._tasks))

    def _cancel_all(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        until = self.scope.clock.monotonic() + self._grace
        self._patience = self.scope.deadlines.add(until, self._give_up)

    def _give_up(self) -> None:
        self._out_of_patience = True
        self._wake()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            error = task.exception()
            if error is not None and self._on_error is not None:
                self._on_error(task.get_name(), error)
            elif error is not None and self.error is None:
                self.error = error
                self.scope.cancel("parent", by=f"{task.get_name()} failed")
        if not self._tasks:
            self._wake()

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
