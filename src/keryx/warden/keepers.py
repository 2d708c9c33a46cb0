"""Keepers, as the host sees them: one per policy that is in use or was a short while ago.

A session has a policy of its own, and a keeper is a process: those that run nothing are ended
once they are many or have rested long. It knows nothing of what a policy says.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Literal, assert_never

import msgspec

from keryx.aio.clock import Deadline
from keryx.aio.scope import Scope
from keryx.errors import SpawnError, WardenLostError
from keryx.warden.link import Link, Report
from keryx.warden.process import Exit, Process

# A keeper takes some 10 ms to start and some megabytes to keep.
MOST_RESTING: Final = 16
LONGEST_REST: Final = 300.0
UNCONFINED: Final = "null"
"""The key of the keeper without a policy. It stays: it has no walls, and most hosts need it."""


class Confinement(msgspec.Struct, frozen=True):
    """How far children are confined. Each gap completes the sentence "a child ..."."""

    level: Literal["full", "partial", "none"]
    gaps: tuple[str, ...]
    tmp: str
    """Where they find their private temporary folder; for their TMPDIR."""
    uploads: str = ""
    """Where they find what people attached; empty: nowhere."""


class Keeper:
    """The host's side of one keeper: the processes that run there, by the ids of their orders."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        key: str,
        on_rest: Callable[[Keeper], None],
        on_end: Callable[[Keeper], None],
    ) -> None:
        self.key: Final = key
        self.link: Final = Link(loop, sock, self._hear, self._end)
        self.processes: Final[dict[int, Process]] = {}
        # Errors travel as values: a future that nobody awaits must not complain.
        self.confinement: Final[asyncio.Future[Confinement | SpawnError]] = loop.create_future()
        self.rested_since = 0.0
        self.is_orphaned = False  # its warden died before it
        self._on_rest = on_rest
        self._on_end = on_end
        self._why = "the process that it ran under has died; nobody knows how far it came"
        if key == UNCONFINED:
            self._know(Confinement("none", ("can do all that the user can",), "/tmp"))  # noqa: S108 (not ours; what children see)

    @property
    def refused(self) -> SpawnError | None:
        """Why it will never serve, if so."""
        done = self.confinement.done()
        found = self.confinement.result() if done else None
        return found if isinstance(found, SpawnError) else None

    def _know(self, found: Confinement | SpawnError) -> None:
        if not self.confinement.done():
            self.confinement.set_result(found)

    def _hear(self, report: Report) -> None:
        match report.op:
            case "started":
                self.processes[report.id].started(report.pid)
            case "refused":
                self._drop(report.id).refused(SpawnError(report.error))
            case "exit":
                self._drop(report.id).finish(Exit(report.code, report.signal, report.cause))
            case "confined":
                self._know(Confinement(report.level, report.gaps, report.tmp, report.uploads))
            case "unopened":
                self._know(SpawnError(report.error))
                self.link.end()
            case "orphaned":
                self.is_orphaned = True
            case "broken":
                self._why = f"the process that it ran under has failed: {report.error}"
            case _:
                assert_never(report.op)

    def _drop(self, order_id: int) -> Process:
        process = self.processes.pop(order_id)
        if not self.processes:
            self._on_rest(self)
        return process

    def _end(self) -> None:
        refused = self.refused
        while self.processes:
            process = self.processes.popitem()[1]
            if refused is None:
                process.finish(WardenLostError(self._why))
            else:
                process.refused(SpawnError(*refused.args))
        self._know(SpawnError(self._why))
        self._on_end(self)


class Keepers:
    """The keepers of one warden by policy, least recently used first."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._open: dict[str, Keeper] = {}
        self._deadline: Deadline | None = None

    def use(self, key: str) -> Keeper | None:
        """The keeper for a policy, if one serves."""
        keeper = self._open.pop(key, None)
        if keeper is None or keeper.refused is not None or not keeper.link.is_alive():
            return None
        self._open[key] = keeper
        return keeper

    def add(self, keeper: Keeper) -> None:
        self._open[keeper.key] = keeper

    def forget(self, keeper: Keeper) -> None:
        if self._open.get(keeper.key) is keeper:
            del self._open[keeper.key]

    def clear(self) -> None:
        """Forget all; those of a warden that died sweep and end on their own."""
        self._open.clear()
        if self._deadline is not None:
            self._scope.deadlines.drop(self._deadline)
            self._deadline = None

    def rest(self, keeper: Keeper) -> None:
        """A keeper runs nothing any more: it stays warm for a while, if there are not too many."""
        keeper.rested_since = self._scope.clock.monotonic()
        self._end_all(self._resting()[:-MOST_RESTING])
        self._arm()

    def _resting(self) -> list[Keeper]:
        return [
            keeper
            for keeper in self._open.values()
            if not keeper.processes and keeper.key != UNCONFINED and keeper.confinement.done()
        ]

    def _end_all(self, keepers: list[Keeper]) -> None:
        for keeper in keepers:
            self.forget(keeper)
            keeper.link.finish()

    def _arm(self) -> None:
        resting = self._resting()
        if self._deadline is None and resting:
            first = min(keeper.rested_since for keeper in resting)
            self._deadline = self._scope.deadlines.add(first + LONGEST_REST, self._expire)

    def _expire(self) -> None:
        self._deadline = None
        until = self._scope.clock.monotonic() - LONGEST_REST
        self._end_all([keeper for keeper in self._resting() if keeper.rested_since <= until])
        self._arm()
