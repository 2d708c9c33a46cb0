"""Many calls of one tool at the same time; outcomes and failures keep the order of the items."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from keryx_tools._transports.deadline import CallStopper
from keryx_tools._transports.sockets import set_thread_stopper

LIMIT = 16
# Tool calls end at once when they are stopped; other code of a script's function may not.
GIVE_UP = 1.0


if TYPE_CHECKING:
    _Values = list[Any]
else:
    _Values = list  # Python 3.8 has no list[...]


class Outcomes(_Values):
    """One entry per item: what its call returned, or the exception that it raised."""

    @property
    def failures(self) -> dict[int, Exception]:
        """The exceptions, by the index of their item."""
        return {at: error for at, error in enumerate(self) if isinstance(error, Exception)}


def arguments_of(item: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and named arguments: of a tuple, of a dict, or the item as the only one."""
    if isinstance(item, tuple):
        return cast("tuple[Any, ...]", item), {}
    if isinstance(item, dict):
        return (), cast("dict[str, Any]", item)
    return (item,), {}


def prepared(tool: Callable[..., Any], items: Iterable[Any], limit: int) -> list[Any]:
    """Return the arguments of all calls, checked before the first call is made."""
    if limit < 1:
        raise ValueError(f"limit is {limit}; at least one call at a time must be allowed")
    calls = [arguments_of(item) for item in items]
    grant = getattr(tool, "__grant__", None)
    if grant is not None:
        for args, named in calls:
            grant.bind(args, dict(named))
    return calls


def parallel(tool: Callable[..., Any], items: Iterable[Any], limit: int = LIMIT) -> Outcomes:
    """Call the tool once per item, at most `limit` at a time, and return all outcomes in order.

    A tuple is taken as positional arguments, a dict as named ones, anything else as the only one.
    A call that fails leaves its exception in its place and the others alone; see `.failures`.

        results = parallel(terminal, [f"check --region {region}" for region in regions])
    """
    calls = prepared(tool, items, limit)
    outcomes = Outcomes([None] * len(calls))
    remaining: Iterator[tuple[int, Any]] = iter(list(enumerate(calls)))
    workers = [_Worker(tool, remaining, outcomes) for _ in range(min(limit, len(calls)))]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    except BaseException:
        # An interrupt of this thread (Ctrl+C, an alarm) stops all calls.
        for worker in workers:
            worker.stopper.stop()
        for worker in workers:
            with contextlib.suppress(RuntimeError):  # it was not started
                worker.join(GIVE_UP)
        raise
    for worker in workers:
        if worker.defect is not None:
            raise worker.defect
    return outcomes


class _Worker(threading.Thread):
    """Calls the tool for one item after the other; the shared iterator yields each item once."""

    def __init__(
        self, tool: Callable[..., Any], remaining: Iterator[tuple[int, Any]], outcomes: Outcomes
    ) -> None:
        super().__init__(name="keryx-parallel", daemon=True)
        self.stopper = CallStopper()
        self.defect: BaseException | None = None
        self._tool = tool
        self._remaining = remaining
        self._outcomes = outcomes

    def run(self) -> None:
        set_thread_stopper(self.stopper)
        for at, (args, named) in self._remaining:
            if self.stopper.is_stopped:
                return
            try:
                self._outcomes[at] = self._tool(*args, **named)
            except Exception as error:  # noqa: BLE001 (the caller finds it among the outcomes)
                self._outcomes[at] = error
            except BaseException as error:  # noqa: BLE001 (a thread would print it and lose it)
                self.defect = error
                return
