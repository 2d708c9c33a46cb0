"""Deduplicates commands: each key takes effect once, however often it is delivered.

The store's inbox is the only table of keys: a key belongs to one body, for ever. A command is
entered in the commit of the facts that follow from it. A command that another process entered
before is consumed by that commit instead, or withdrawn if it is refused. Two deliveries of one key
never run at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from keryx import commands as cm
from keryx.engine.log.log_writer import LogWriter
from keryx.errors import KeyReusedError
from keryx.ports.dispatch import Answer
from keryx.ports.store import InboxRow, Store


def row_of(command: cm.Command) -> InboxRow:
    """Return the command as an inbox row. Its body leaves out the id of this attempt."""
    key = command.key if isinstance(command, cm.SendMessage) and command.key else None
    body = cm.encode(msgspec.structs.replace(command, command_id=""))
    return InboxRow(key or command.command_id, body)


class Dedup:
    """Knows which commands of one session were taken."""

    def __init__(self, store: Store, log: LogWriter, session_id: str) -> None:
        self._store = store
        self._log = log
        self._session_id = session_id
        self._pending: set[str] = set()
        """The keys of commands that wait in the store."""
        self._taken_bodies: dict[str, bytes] = {}
        """The bodies of commands that were taken and may not be in the store yet, by key."""
        self._running: dict[str, tuple[bytes, asyncio.Future[None]]] = {}
        """The bodies of commands that are being taken, by key."""

    @property
    def is_quiet(self) -> bool:
        """Whether no command is being taken, and none waits in the store."""
        return not (self._running or self._pending)

    async def run(self, row: InboxRow, take: Callable[[], Awaitable[Answer]]) -> Answer:
        """Take a command. If an earlier delivery of it is still running, wait for that first."""
        while (running := self._running.get(row.key)) is not None:
            body, ended = running
            _check_same(row, body)
            await asyncio.shield(ended)
        if self._log.is_settled:
            self._taken_bodies.clear()
        ended = asyncio.get_running_loop().create_future()
        self._running[row.key] = (row.body, ended)
        try:
            return await take()
        finally:
            del self._running[row.key]
            ended.set_result(None)

    async def pending(self) -> list[InboxRow]:
        """Return the commands that others entered and nobody has taken yet."""
        rows = await self._store.pending(self._session_id)
        fresh = [
            row for row in rows if row.key not in self._taken_bodies | dict.fromkeys(self._pending)
        ]
        self._pending.update(row.key for row in fresh)
        return fresh

    async def leave_pending(self, row: InboxRow) -> None:
        """Keep a command in the store until it is done."""
        if row.key not in self._pending:
            self._pending.add(row.key)
            await self._store.enter(self._session_id, row)

    def done_with(self, row: InboxRow) -> None:
        """Consume a pending command that is done, also if it had no effect."""
        if row.key in self._pending:
            self._pending.discard(row.key)
            self._log.consume(row.key)

    async def refuse(self, row: InboxRow) -> None:
        """Withdraw a pending command that was refused: it had no effect, and may come again."""
        if row.key in self._pending:
            self._pending.discard(row.key)
            self._log.withdraw(row.key)
            await self._log.wait_durable()

    def take(self, row: InboxRow) -> None:
        """Mark a command as taken, in the commit of the facts that are recorded now."""
        self._taken_bodies[row.key] = row.body
        if row.key in self._pending:
            self._pending.discard(row.key)
            self._log.consume(row.key)
        else:
            self._log.enter(row)

    async def was_taken(self, row: InboxRow) -> bool:
        """Return whether the command was taken. `KeyReusedError` if the key had another body."""
        if row.key in self._pending:
            return False
        stored = await self._store.command(self._session_id, row.key)
        body = self._taken_bodies.get(row.key, None if stored is None else stored.body)
        if body is None:
            return False
        _check_same(row, body)
        return True


def _check_same(row: InboxRow, body: bytes) -> None:
    if row.body != body:
        raise KeyReusedError(f"the key {row.key!r} was used for another command; choose a new one")
