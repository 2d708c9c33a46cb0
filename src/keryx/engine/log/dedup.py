"""Each command takes effect once: by its key, whoever brings it and however often.

The store's inbox is the one table of keys: a key stands for one body, for ever. A command enters it
in the commit of the facts that follow from it; one that others entered there before is consumed by
that commit instead, or withdrawn if it is refused. Deliveries of one key never overlap.
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
    """The command as the inbox holds it: all but the id of this attempt makes it the same."""
    key = command.key if isinstance(command, cm.SendMessage) and command.key else None
    body = cm.encode(msgspec.structs.replace(command, command_id=""))
    return InboxRow(key or command.command_id, body)


class Dedup:
    """Which commands of one session were taken."""

    def __init__(self, store: Store, log: LogWriter, session_id: str) -> None:
        self._store = store
        self._log = log
        self._session_id = session_id
        self._pending: set[str] = set()
        """Keys of commands that wait in the store."""
        self._taken: dict[str, bytes] = {}
        """Commands that were taken and may not be in the store yet, by key."""
        self._running: dict[str, tuple[bytes, asyncio.Future[None]]] = {}
        """Commands that are being taken, by key."""

    @property
    def is_quiet(self) -> bool:
        """Whether no command is being taken, and none waits in the store."""
        return not (self._running or self._pending)

    async def run(self, row: InboxRow, take: Callable[[], Awaitable[Answer]]) -> Answer:
        """Take a command, after an earlier delivery of the same one that is still under way."""
        while (running := self._running.get(row.key)) is not None:
            body, over = running
            _check_same(row, body)
            await asyncio.shield(over)
        if self._log.is_settled:
            self._taken.clear()
        over = asyncio.get_running_loop().create_future()
        self._running[row.key] = (row.body, over)
        try:
            return await take()
        finally:
            del self._running[row.key]
            over.set_result(None)

    async def pending(self) -> list[InboxRow]:
        """What others entered, and nobody took yet."""
        rows = await self._store.pending(self._session_id)
        fresh = [row for row in rows if row.key not in self._taken | dict.fromkeys(self._pending)]
        self._pending.update(row.key for row in fresh)
        return fresh

    async def leave_pending(self, row: InboxRow) -> None:
        """Let a command wait in the store until it is done with."""
        if row.key not in self._pending:
            self._pending.add(row.key)
            await self._store.enter(self._session_id, row)

    def done_with(self, row: InboxRow) -> None:
        """A pending command is over, also if it had no effect."""
        if row.key in self._pending:
            self._pending.discard(row.key)
            self._log.consume(row.key)

    async def refuse(self, row: InboxRow) -> None:
        """A pending command was refused: it had no effect, and may come again."""
        if row.key in self._pending:
            self._pending.discard(row.key)
            self._log.withdraw(row.key)
            await self._log.durable()

    def take(self, row: InboxRow) -> None:
        """The facts that are stated now follow from this command."""
        self._taken[row.key] = row.body
        if row.key in self._pending:
            self._pending.discard(row.key)
            self._log.consume(row.key)
        else:
            self._log.enter(row)

    async def was_taken(self, row: InboxRow) -> bool:
        """Whether the same command was taken before; the same key for another is an error."""
        if row.key in self._pending:
            return False
        stored = await self._store.command(self._session_id, row.key)
        body = self._taken.get(row.key, None if stored is None else stored.body)
        if body is None:
            return False
        _check_same(row, body)
        return True


def _check_same(row: InboxRow, body: bytes) -> None:
    if row.body != body:
        raise KeyReusedError(f"the key {row.key!r} was used for another command; choose a new one")
