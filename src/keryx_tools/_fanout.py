"""Many calls of one tool at the same time: in order, and every failure in its place."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from keryx_tools._ways.deadline import Leash
from keryx_tools._ways.sockets import leash_thread

LIMIT = 16
# Calls of tools end at once when they are given up; what else a script's function does, may not.
GIVE_UP = 1.0


if TYPE_CHECKING:
    _Values = list[Any]
else:
    _Values = list  # Python 3.8 has no list[...]


class Outcomes(_Values):
    """One entry per item: what its call returned, or the exception that it raised."""

    @property
    def failures(self) -> dict[int, Exception]:
        """The exceptions, by the place of their item."""
        return {at: one for at, one in enumerate(self) if isinstance(one, Exception)}


def arguments_of(item: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A tuple holds positional arguments, a dict named ones; all else is the only argument."""
    if isinstance(item, tuple):
        return cast("tuple[Any, ...]", item), {}
    if isinstance(item, dict):
        return (), cast("dict[str, Any]", item)
    return (item,), {}


def prepared(tool: Callable[..., Any], items: Iterable[Any], limit: int) -> list[Any]:
    """All calls to make, checked before the first is made."""
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
    rest: Iterator[tuple[int, Any]] = iter(list(enumerate(calls)))
    workers = [_Worker(tool, rest, outcomes) for _ in range(min(limit, len(calls)))]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    except BaseException:
        # Whoever interrupts this (Ctrl+C, an alarm) interrupts all of it.
        for worker in workers:
            worker.leash.pull()
        for worker in workers:
            with contextlib.suppress(RuntimeError):  # it was not started
                worker.join(GIVE_UP)
        raise
    for worker in workers:
        if worker.defect is not None:
            raise worker.defect
    return outcomes


class _Worker(threading.Thread):
    """Takes one item after the other; a list's iterator hands each out once."""

    def __init__(
        self, tool: Callable[..., Any], rest: Iterator[tuple[int, Any]], outcomes: Outcomes
    ) -> None:
        super().__init__(name="keryx-parallel", daemon=True)
        self.leash = Leash()
        self.defect: BaseException | None = None
        self._tool = tool
        self._rest = rest
        self._outcomes = outcomes

    def run(self) -> None:
        leash_thread(self.leash)
        for at, (args, named) in self._rest:
            if self.leash.pulled:
                return
            try:
                self._outcomes[at] = self._tool(*args, **named)
            except Exception as error:  # noqa: BLE001 (it is handed to the caller, in its place)
                self._outcomes[at] = error
            except BaseException as error:  # noqa: BLE001 (as a thread it would be printed and lost)
                self.defect = error
                return
