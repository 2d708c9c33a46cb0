"""The host's side of keepers: one per policy that is in use or was a short while ago.

Each session has its own policy, and each keeper is a process: idle keepers are ended once they
are many or have been idle for long. This module knows nothing of what a policy says.
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

# A keeper takes some 10 ms to start and some megabytes of memory.
MOST_IDLE: Final = 16
LONGEST_IDLE: Final = 300.0
UNCONFINED: Final = "null"
"""The key of the keeper without a policy. It is never ended: most hosts need it."""


class Confinement(msgspec.Struct, frozen=True):
    """How far children are confined. Each gap completes the sentence "a child ..."."""

    level: Literal["full", "partial", "none"]
    gaps: tuple[str, ...]
    tmp: str
    """The path of their private temporary folder; for their TMPDIR."""
    uploads: str = ""
    """The path of the files that people attached; empty if there is none."""


class Keeper:
    """The host's side of one keeper, with its processes by the ids of their orders."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        key: str,
        on_idle: Callable[[Keeper], None],
        on_end: Callable[[Keeper], None],
    ) -> None:
        self.key: Final = key
        self.link: Final = Link(loop, sock, self._handle_report, self._end)
        self.processes: Final[dict[int, Process]] = {}
        # Errors travel as values: a future that nobody awaits must not complain.
        self.confinement: Final[asyncio.Future[Confinement | SpawnError]] = loop.create_future()
        self.idle_since = 0.0
        self.is_orphaned = False  # its warden died before it
        self._on_idle = on_idle
        self._on_end = on_end
        self._end_cause = "the process that it ran under has died; it is unknown how far it came"
        if key == UNCONFINED:
            self._set_confinement(Confinement("none", ("can do all that the user can",), "/tmp"))  # noqa: S108 (not ours; what children see)

    @property
    def refused(self) -> SpawnError | None:
        """Why this keeper will never serve; None if it may."""
        done = self.confinement.done()
        confinement = self.confinement.result() if done else None
        return confinement if isinstance(confinement, SpawnError) else None

    def _set_confinement(self, confinement: Confinement | SpawnError) -> None:
        if not self.confinement.done():
            self.confinement.set_result(confinement)

    def _handle_report(self, report: Report) -> None:
        match report.op:
            case "started":
                self.processes[report.id].started(report.pid)
            case "refused":
                self._drop(report.id).refused(SpawnError(report.error))
            case "exit":
                self._drop(report.id).finish(Exit(report.code, report.signal, report.cause))
            case "confined":
                self._set_confinement(
                    Confinement(report.level, report.gaps, report.tmp, report.uploads)
                )
            case "unopened":
                self._set_confinement(SpawnError(report.error))
                self.link.end()
            case "orphaned":
                self.is_orphaned = True
            case "broken":
                self._end_cause = f"the process that it ran under has failed: {report.error}"
            case _:
                assert_never(report.op)

    def _drop(self, order_id: int) -> Process:
        process = self.processes.pop(order_id)
        if not self.processes:
            self._on_idle(self)
        return process

    def _end(self) -> None:
        refused = self.refused
        while self.processes:
            process = self.processes.popitem()[1]
            if refused is None:
                process.finish(WardenLostError(self._end_cause))
            else:
                process.refused(SpawnError(*refused.args))
        self._set_confinement(SpawnError(self._end_cause))
        self._on_end(self)


class Keepers:
    """The keepers of one warden by policy, least recently used first."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._open: dict[str, Keeper] = {}
        self._deadline: Deadline | None = None

    def use(self, key: str) -> Keeper | None:
        """Return the keeper for a policy; None if none serves."""
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
        """Forget all keepers; those of a dead warden kill their children and exit by themselves."""
        self._open.clear()
        if self._deadline is not None:
            self._scope.deadlines.drop(self._deadline)
            self._deadline = None

    def mark_idle(self, keeper: Keeper) -> None:
        """Note that a keeper is idle; end the longest idle ones if there are too many."""
        keeper.idle_since = self._scope.clock.monotonic()
        self._end_all(self._idle()[:-MOST_IDLE])
        self._arm()

    def _idle(self) -> list[Keeper]:
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
        idle = self._idle()
        if self._deadline is None and idle:
            first = min(keeper.idle_since for keeper in idle)
            self._deadline = self._scope.deadlines.add(first + LONGEST_IDLE, self._expire)

    def _expire(self) -> None:
        self._deadline = None
        until = self._scope.clock.monotonic() - LONGEST_IDLE
        self._end_all([keeper for keeper in self._idle() if keeper.idle_since <= until])
        self._arm()
