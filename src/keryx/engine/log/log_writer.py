"""The only writer of a session's log: facts are folded at once, and shown when they are durable.

Facts that are recorded in one iteration of the loop go into one commit. A fact that could not be
read back is refused before it counts. A commit that fails breaks the writer: nothing more is
recorded, and the owner of the session reloads it from the log. Commits run in a group of their
own, so that no failure elsewhere in the session can end one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, TypeVar

from keryx.aio.clock import Clock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.engine.log.fold import Fold
from keryx.errors import ScopeClosedError
from keryx.events import LoggedEvent, as_logged
from keryx.ports.store import Blob, Commit, InboxRow, OutboxRow, RecordChange, Store, blob_hash

E = TypeVar("E", bound=LoggedEvent)

OutboxRowOf = Callable[[LoggedEvent, Fold], OutboxRow | None]
"""Returns the row of the outbox for a fact, before the fact is applied to the fold."""

LONG_ARGUMENTS: Final = 8_192
"""Longer arguments are stored in a blob."""
LONGEST_HOLD: Final = 0.005
"""Seconds that a fact may wait for the next one, to share a commit."""


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
        outbox_row: OutboxRowOf | None = None,
        on_outbox: Callable[[], None] | None = None,
        on_fact: Callable[[Fold, LoggedEvent], None] | None = None,
        noted: Collection[type[LoggedEvent]] = (),
    ) -> None:
        """`outbox_row` returns what follows from a fact elsewhere; `on_outbox` is called after
        such rows were committed. `on_fact` gets each fact of a `noted` kind once the fold has it.
        """
        self._store = store
        self._fold = fold
        self._show = show
        self._epoch = epoch
        # A scope tree of its own: a commit is never cancelled with the session.
        self._group = Group(Scope(f"commits of {fold.session_id}", clock=clock))
        self._clock = clock
        self._on_broken = on_broken
        self._outbox_row = outbox_row
        self._on_outbox = on_outbox
        self._on_fact = on_fact
        self._noted = noted
        self._loop = asyncio.get_running_loop()
        self._events: list[LoggedEvent] = []
        self._bodies: list[bytes] = []
        self._enters: list[InboxRow] = []
        self._consumes: list[str] = []
        self._withdraws: list[str] = []
        self._claims: list[str] = []
        self._blobs: list[Blob] = []
        self._records: list[RecordChange] = []
        self._outbox: list[OutboxRow] = []
        # Who waits for the next commit, and for the commit that is being written. Each has a future
        # of its own, which it may cancel without the others.
        self._next: list[asyncio.Future[None]] = []
        self._committing: list[asyncio.Future[None]] | None = None
        self._flushing = False
        self._hold: asyncio.TimerHandle | None = None
        self.broken: BaseException | None = None

    def raise_if_broken(self) -> None:
        if self.broken is not None:
            raise self.broken

    def record(self, kind: type[E], /, **fields: Any) -> E:
        """Record a fact. It counts at once in the fold, and for all others after the commit.

        `InvalidFactError` if it could not be read back; then nothing is recorded.
        """
        fact = self._add_fact(kind, fields)
        self._flush_soon()
        return fact

    def record_with_next(self, kind: type[E], /, **fields: Any) -> E:
        """Record a fact that others follow at once, to share their commit."""
        fact = self._add_fact(kind, fields)
        if not self._flushing and self._hold is None:
            self._hold = self._loop.call_later(LONGEST_HOLD, self._flush_soon)
        return fact

    def _add_fact(self, kind: type[E], fields: dict[str, Any]) -> E:
        self.raise_if_broken()
        fact, body = as_logged(
            kind(
                session_id=self._fold.session_id,
                seq=self._fold.last_seq + 1,
                at=self._clock.wall(),
                **fields,
            )
        )
        if self._outbox_row is not None:
            row = self._outbox_row(fact, self._fold)
            self._outbox += () if row is None else (row,)
        self._fold.apply(fact)
        self._events.append(fact)
        self._bodies.append(body)
        if self._on_fact is not None and kind in self._noted:
            self._on_fact(self._fold, fact)
        return fact

    def enter(self, row: InboxRow) -> None:
        """Enter the command that the facts of this commit follow from."""
        self._enters.append(row)
        self._flush_soon()

    def consume(self, key: str) -> None:
        """Consume a command, entered before, that the facts of this commit follow from."""
        self._consumes.append(key)
        self._flush_soon()

    def withdraw(self, key: str) -> None:
        """Remove a command that was entered before and was refused."""
        self._withdraws.append(key)
        self._flush_soon()

    def claim(self, name: str) -> None:
        """Make the commit fail if another commit has claimed this name."""
        self._claims.append(name)

    def set_record(self, change: RecordChange) -> None:
        """Change a record, in the same commit as the facts of this moment."""
        self._records.append(change)
        self._flush_soon()

    def shortened(self, arguments: str) -> tuple[str, str | None]:
        """Shorten long arguments: every reader gets the event, and few need a whole file.

        Also return the hash of the blob that has all of them; None: nothing was cut.
        """
        if len(arguments) <= LONG_ARGUMENTS:
            return arguments, None
        data = arguments.encode(errors="backslashreplace")
        blob = Blob(blob_hash(data), data)
        self.keep(blob)
        return arguments[:LONG_ARGUMENTS], blob.hash

    def keep(self, blob: Blob) -> None:
        """Store a large value that the facts of this commit name."""
        self._blobs.append(blob)

    async def wait_durable(self) -> None:
        """Return once everything recorded so far is durable; raise if the commit failed."""
        self.raise_if_broken()
        if self._has_pending:
            self._flush_soon()
            waiters = self._next
        elif self._committing is not None:
            waiters = self._committing
        else:
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        waiters.append(waiter)
        await waiter

    @property
    def is_settled(self) -> bool:
        """Whether everything in the fold is durable."""
        return not (self._has_pending or self._flushing)

    async def wait_settled(self) -> None:
        """Return at a moment when everything in the fold is durable."""
        while not self.is_settled:
            await self.wait_durable()

    @property
    def _has_pending(self) -> bool:
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
            while self._has_pending:
                commit = self._next_commit()
                await self._store.append(commit)
                self._show(commit.events, commit.bodies)
                self._wake_waiters()
                if commit.outbox and self._on_outbox is not None:
                    self._on_outbox()
            self._flushing = False
        except asyncio.CancelledError:
            self._break(ScopeClosedError("the session was closed in the middle of a commit"))
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is, no later fact would be valid)
            self._break(error)

    def _wake_waiters(self) -> None:
        waiters, self._committing = self._committing, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    def _next_commit(self) -> Commit:
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
            outbox=tuple(self._outbox),
        )
        self._committing, self._next = self._next, []
        self._events, self._bodies, self._enters, self._consumes = [], [], [], []
        self._withdraws, self._claims, self._blobs, self._records = [], [], [], []
        self._outbox = []
        return commit

    async def close(self) -> None:
        """Stop recording; what a left-over call does later is not logged any more."""
        self.broken = self.broken or ScopeClosedError("the session was closed; open it again")
        if self._hold is not None:
            self._hold.cancel()
        await self._group.leave()

    def _break(self, error: Exception) -> None:
        self.broken = error
        for waiter in (*(self._committing or ()), *self._next):
            if not waiter.done():
                waiter.set_exception(error)
        self._on_broken(error)
