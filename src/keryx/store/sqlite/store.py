"""The store in one SQLite file: one connection writes, a few others read.

This module puts the parts together and owns nothing but their order. What is written to the
tables stands in `writes`, what is read from them in `queries`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Self

import msgspec

from keryx.aio.acquire import acquire
from keryx.aio.bridge import Bridge
from keryx.errors import StoreDamagedError, StoreError
from keryx.events import LoggedEvent
from keryx.ports.search import Covered, Found
from keryx.ports.store import Commit, InboxRow, OutboxRow, SessionRow, TranscriptRow
from keryx.ports.tags import TagCount
from keryx.ports.usage import UsageRow
from keryx.ports.view import RestingSession
from keryx.store.sqlite import queries, writes
from keryx.store.sqlite.faults import as_store_error
from keryx.store.sqlite.files import Durability, check_for_reading, open_for_writing
from keryx.store.sqlite.index import Indexer, IndexSearch, IndexUnreadableError
from keryx.store.sqlite.readers import Readers
from keryx.store.sqlite.transaction import drop_record, get_meta, host_number, keep_record
from keryx.store.sqlite.usage.queries import SqliteUsage
from keryx.store.sqlite.writer import Change, T, Writer

# After a delete the host may rewrite the file, at 200 MB a second; a guest waits for that.
GUEST_LOCK_TIMEOUT: Final = 10.0


async def _do_nothing() -> None:
    """Wait for nothing."""


class SqliteStore(SqliteUsage):
    """Stores the logs of all sessions of one host in one file. Belongs to the bridge's loop.

    Give it a bridge of its own: on a bridge that blocking tools share, commits would wait for them.
    """

    def __init__(
        self, path: Path, bridge: Bridge, opened: tuple[sqlite3.Connection, int | None] | None
    ) -> None:
        """Use `open`."""
        self._path = path
        self._bridge = bridge
        self._index_search = IndexSearch(path)
        self._readers = Readers(path, bridge, self._on_damage, self._index_search.close)
        self._writer: Writer | None = None
        self._indexer: Indexer | None = None
        self.catch_up_index: Callable[[], Awaitable[None]] = _do_nothing
        """Waits until the index has the commits so far; set it if another process indexes."""
        if opened is not None:
            self._writer = Writer(*opened, path, bridge, self.changed_elsewhere)
            if opened[1] is not None:
                self._start_index()

    @classmethod
    async def open(
        cls,
        path: Path,
        bridge: Bridge,
        *,
        durability: Durability = "normal",
        read_only: bool = False,
        take_over: bool = False,
        guest: bool = False,
    ) -> Self:
        """Open the file, create it if there is none, and bring it up to date.

        `take_over`: a process that had opened it for writing before can write no more.
        `guest`: another process is the host; it maintains the index and purges. Writes of a guest
        are fenced only by the epochs of sessions.
        Raise `StoreError` if the file cannot be opened; then nothing in it is changed.
        """
        if read_only:
            await bridge.to_thread(check_for_reading, path)
            return cls(path, bridge, None)
        opened = await acquire(
            bridge,
            partial(_open, path, durability, take_over=take_over, guest=guest),
            lambda opened: opened[0].close(),
            name="open the store",
        )
        return cls(path, bridge, opened)

    async def lead(self) -> None:
        """Become the host of the file, after the earlier host has gone."""
        assert self._writer is not None, "a store that was opened for reading cannot lead"
        host = await self._write(lambda transaction: get_meta(transaction.connection, "host"))
        self._writer.lead(host, self.changed_elsewhere)
        self._start_index()

    def changed_elsewhere(self) -> None:
        """Wake the indexer: something was committed, here or by a guest."""
        if self._indexer is not None:
            self._indexer.wake()

    def _start_index(self) -> None:
        self._indexer = self._indexer or Indexer(self._path, self._bridge)
        self.catch_up_index = self._indexer.catch_up
        # An earlier process may have ended before everything was indexed.
        self._indexer.wake()

    # -- writing

    async def claim(self, session_id: str) -> int:
        return await self._write(lambda transaction: writes.claim(transaction, session_id))

    async def create(self, commit: Commit) -> int:
        return await self._write(lambda transaction: writes.create(transaction, commit))

    async def append(self, commit: Commit) -> int:
        return await self._write(partial(writes.append, commit=commit))

    async def enter(self, session_id: str, row: InboxRow) -> bool:
        return await self._write(lambda transaction: writes.enter(transaction, session_id, row))

    async def sent(self, ids: Sequence[str]) -> None:
        await self._write(lambda transaction: writes.sent(transaction, ids))

    async def mark_damaged(self, session_id: str) -> None:
        await self._write(lambda transaction: writes.mark_damaged(transaction, session_id))

    async def keep_record(self, key: str, value: bytes) -> None:
        await self._write(lambda transaction: keep_record(transaction, key, value))

    async def drop_record(self, key: str) -> bool:
        return await self._write(lambda transaction: drop_record(transaction, key))

    async def delete(self, session_id: str) -> bool:
        if self._indexer is None:
            return await self._write(lambda transaction: writes.delete(transaction, session_id))
        try:
            # The indexer's reads would block the purge of the deleted rows.
            await self._indexer.pause()
            is_deleted = await self._write(
                lambda transaction: writes.delete(transaction, session_id)
            )
        finally:
            self._indexer.resume()
        if is_deleted:
            await self._indexer.forget()
        return is_deleted

    # -- reading

    async def pending(self, session_id: str) -> list[InboxRow]:
        return await self._readers.submit(partial(queries.pending, session_id=session_id))

    async def command(self, session_id: str, key: str) -> InboxRow | None:
        return await self._readers.submit(partial(queries.command, session_id=session_id, key=key))

    async def events(
        self, session_id: str, *, after: int = 0, limit: int | None = None, size: int | None = None
    ) -> list[LoggedEvent]:
        page = {"session_id": session_id, "after": after, "limit": limit, "size": size}
        return await self._readers.submit(partial(queries.events, path=self._path, **page))

    async def sessions(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        after: int | None = None,
        archived: bool | None = False,
        parent: str | None = "",
        tag: str | None = None,
        person: str | None = None,
    ) -> list[SessionRow]:
        filters = {"archived": archived, "parent": parent, "tag": tag, "person": person}
        return await self._readers.submit(
            partial(queries.sessions, limit=limit, before=before, after=after, **filters)
        )

    async def tags(self) -> list[TagCount]:
        return await self._readers.submit(queries.tags)

    async def session(self, session_id: str) -> SessionRow | None:
        return await self._readers.submit(partial(queries.session, session_id=session_id))

    async def resting(self, session_id: str) -> RestingSession | None:
        return await self._readers.submit(
            partial(queries.resting, path=self._path, session_id=session_id)
        )

    async def unfinished(self) -> list[str]:
        return await self._readers.submit(queries.unfinished)

    async def transcript(
        self,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
    ) -> list[TranscriptRow]:
        return await self._readers.submit(
            partial(
                queries.transcript,
                path=self._path,
                session_id=session_id,
                before=before,
                after=after,
                limit=limit,
            )
        )

    async def account(self, session_id: str) -> tuple[SessionRow, list[UsageRow]] | None:
        return await self._readers.submit(partial(queries.account, session_id=session_id))

    async def blob(self, hash_: str) -> bytes | None:
        return await self._readers.submit(partial(queries.blob, hash_=hash_))

    async def names_blob(self, session_id: str, hash_: str) -> bool:
        return await self._readers.submit(
            partial(queries.names_blob, session_id=session_id, hash_=hash_)
        )

    async def search(
        self, words: str, *, limit: int = 20, person: str | None = None
    ) -> list[Found]:
        search = partial(self._index_search.search, words=words, limit=limit, person=person)
        await self.catch_up_index()
        try:
            return await self._readers.submit(search)
        except IndexUnreadableError:
            if self._indexer is None:
                raise
            self._indexer.rebuild()
            await self._indexer.catch_up()
            return await self._readers.submit(search)

    async def covered(self) -> Covered:
        await self.catch_up_index()
        covered = await self._readers.submit(self._index_search.covered)
        problem = None if self._indexer is None else self._indexer.problem
        return msgspec.structs.replace(covered, problem=problem)

    async def outbox(self, topic: str, *, limit: int = 100) -> list[OutboxRow]:
        return await self._readers.submit(partial(queries.outbox, topic=topic, limit=limit))

    async def record(self, key: str) -> tuple[int, bytes] | None:
        return await self._readers.submit(partial(queries.record, key=key))

    async def records(self, prefix: str) -> dict[str, bytes]:
        return await self._readers.submit(partial(queries.records, prefix=prefix))

    # -- the end

    async def close(self) -> None:
        """Write all accepted changes, then close the file. A second call does nothing."""
        # The last connection that closes does the checkpoint, which a reader cannot do.
        await self._readers.close()
        if self._indexer is not None:
            await self._indexer.close()
        if self._writer is not None:
            await self._writer.close()

    async def _write(self, change: Change[T]) -> T:
        if self._writer is None:
            raise StoreError(f"{self._path} was opened for reading only; nothing was written")
        return await self._writer.submit(change)

    def _on_damage(self, damage: StoreDamagedError) -> None:
        if self._writer is not None:
            self._writer.stop_writing(damage)


def _open(
    path: Path, durability: Durability, *, take_over: bool, guest: bool
) -> tuple[sqlite3.Connection, int | None]:
    """Return the connection that writes, and the number of its host. Blocking."""
    connection = open_for_writing(path, durability)
    try:
        if guest:
            connection.execute(f"PRAGMA busy_timeout = {GUEST_LOCK_TIMEOUT * 1000:.0f}")
            return connection, None
        return connection, host_number(connection, take_over=take_over)
    except sqlite3.Error as error:
        connection.close()
        raise as_store_error(path, error) from error
