"""The one way into a session's log: facts are folded at once, and shown once they are durable.

Facts that are recorded in one turn of the loop go into one commit. A fact that could not be read
back is refused before it counts. A commit that fails breaks the ledger: nothing more is recorded,
and whoever owns the session reloads it from the log. Commits run in a group of their own, so that
no failure elsewhere in the session can end one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from keryx.aio.clock import Clock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.engine.log.fold import Fold
from keryx.errors import ScopeClosedError
from keryx.events import LoggedEvent, as_logged
from keryx.ports.store import Blob, Commit, InboxRow, RecordChange, Store

E = TypeVar("E", bound=LoggedEvent)

LONGEST_HOLD: Final = 0.005
"""Seconds that a fact may wait for the next one, to share its commit."""


class LogWriter:
    """Records facts of one session. Belongs to the session's task and loop."""

    def __init__(
        self,
        store: Store,
        fold: Fold,
        *,
        show: Callable[[Sequence[LoggedEvent], Sequence[bytes]], None],
        epoch: int,
        clock: Clock,
        on_broken: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._fold = fold
        self._show = show
        self._epoch = epoch
        # A tree of its own: a commit ends by itself.
        self._group = Group(Scope(f"commits of {fold.session_id}", clock=clock))
        self._clock = clock
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._events: list[LoggedEvent] = []
        self._bodies: list[bytes] = []
        self._enters: list[InboxRow] = []
        self._consumes: list[str] = []
        self._withdraws: list[str] = []
        self._claims: list[str] = []
        self._blobs: list[Blob] = []
        self._records: list[RecordChange] = []
        # Who waits for what was recorded and not yet taken, and for the commit under way.
        self._next: asyncio.Future[None] = self._loop.create_future()
        self._under_way: asyncio.Future[None] | None = None
        self._flushing = False
        self._hold: asyncio.TimerHandle | None = None
        self.broken: BaseException | None = None

    def raise_if_broken(self) -> None:
        if self.broken is not None:
            raise self.broken

    def record(self, kind: type[E], **fields: Any) -> E:
        """State a fact. It counts at once here, and for everybody else after the commit.

        `InvalidFactError` if it could not be read back; then nothing is stated.
        """
        fact = self._state(kind, fields)
        self._flush_soon()
        return fact

    def record_with_next(self, kind: type[E], **fields: Any) -> E:
        """State a fact that others follow at once: it shares their commit, or soon has its own."""
        fact = self._state(kind, fields)
        if not self._flushing and self._hold is None:
            self._hold = self._loop.call_later(LONGEST_HOLD, self._flush_soon)
        return fact

    def _state(self, kind: type[E], fields: dict[str, Any]) -> E:
        self.raise_if_broken()
        fact, body = as_logged(
            kind(
                session_id=self._fold.session_id,
                seq=self._fold.last_seq + 1,
                at=self._clock.wall(),
                **fields,
            )
        )
        self._fold.apply(fact)
        self._events.append(fact)
        self._bodies.append(body)
        return fact

    def enter(self, row: InboxRow) -> None:
        """The command that the facts of this commit follow from."""
        self._enters.append(row)
        self._flush_soon()

    def consume(self, key: str) -> None:
        """A command that had entered before, which the facts of this commit follow from."""
        self._consumes.append(key)
        self._flush_soon()

    def withdraw(self, key: str) -> None:
        """A command that had entered before was refused: it is as if it had never come."""
        self._withdraws.append(key)
        self._flush_soon()

    def claim(self, name: str) -> None:
        """Only the first commit can take this name."""
        self._claims.append(name)

    def set_record(self, change: RecordChange) -> None:
        """A record that changes with the facts of this commit, or by itself."""
        self._records.append(change)
        self._flush_soon()

    def keep(self, blob: Blob) -> None:
        """A large value that the facts of this commit name."""
        self._blobs.append(blob)

    async def durable(self) -> None:
        """Return once everything recorded so far survives; raises if it never will."""
        self.raise_if_broken()
        if self._waits:
            self._flush_soon()
            waiting = self._next
        elif self._under_way is not None:
            waiting = self._under_way
        else:
            return
        await asyncio.shield(waiting)

    @property
    def is_settled(self) -> bool:
        """Whether all that is folded is durable."""
        return not (self._waits or self._flushing)

    async def settled(self) -> None:
        """Return at an instant when all that is folded is durable."""
        while not self.is_settled:
            await self.durable()

    @property
    def _waits(self) -> bool:
        return bool(
            self._events or self._enters or self._consumes or self._withdraws or self._records
        )

    def _flush_soon(self) -> None:
        if self._hold is not None:
            self._hold.cancel()
            self._hold = None
        if not self._flushing and self.broken is None:
            self._flushing = True
            self._group.start(self._flush(), name=f"commit {self._fold.session_id}")

    async def _flush(self) -> None:
        try:
            while self._waits:
                commit = self._take()
                await self._store.append(commit)
                self._show(commit.events, commit.bodies)
                assert self._under_way is not None
                self._under_way.set_result(None)
                self._under_way = None
            self._flushing = False
        except asyncio.CancelledError:
            self._break(ScopeClosedError("the session was closed in the middle of a commit"))
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is, nothing after it can be true)
            self._break(error)

    def _take(self) -> Commit:
        commit = Commit(
            session_id=self._fold.session_id,
            epoch=self._epoch,
            events=tuple(self._events),
            bodies=tuple(self._bodies),
            enters=tuple(self._enters),
            consumes=tuple(self._consumes),
            withdraws=tuple(self._withdraws),
            claims=tuple(self._claims),
            blobs=tuple(self._blobs),
            records=tuple(self._records),
        )
        self._under_way, self._next = self._next, self._loop.create_future()
        self._events, self._bodies, self._enters, self._consumes = [], [], [], []
        self._withdraws, self._claims, self._blobs, self._records = [], [], [], []
        return commit

    async def close(self) -> None:
        """Nothing more is recorded; what a left-over does later is not this session's any more."""
        self.broken = self.broken or ScopeClosedError("the session was closed; open it again")
        if self._hold is not None:
            self._hold.cancel()
        await self._group.leave()

    def _break(self, error: Exception) -> None:
        self.broken = error
        for waiting in (self._under_way, self._next):
            if waiting is not None and not waiting.done():
                waiting.set_exception(error)
                waiting.exception()  # seen, also if nobody waits
        self._on_broken(error)
