"""Each command takes effect once: by its key, whoever brings it and however often.

A command enters the store's inbox in the commit of the facts that follow from it. One that others
entered there before is consumed by that commit instead.
"""

from __future__ import annotations

import msgspec

from keryx import commands as cm
from keryx.engine.desk import Desk
from keryx.errors import KeyReusedError
from keryx.ports.store import InboxRow


def row_of(command: cm.Command) -> InboxRow:
    """The command as the inbox holds it: all but the id of this attempt makes it the same."""
    key = command.key if isinstance(command, cm.SendMessage) and command.key else None
    body = cm.encode(msgspec.structs.replace(command, command_id=""))
    return InboxRow(key or command.command_id, body)


class Once:
    """Which commands of one session were taken."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._pending: set[str] = set()
        """Keys of commands that wait in the store."""
        self._taken: dict[str, bytes] = {}
        """Commands that were taken since the session was opened, by key."""

    async def pending(self) -> list[InboxRow]:
        """What others entered, and nobody took yet."""
        rows = await self._desk.around.store.pending(self._desk.fold.session_id)
        fresh = [row for row in rows if row.key not in self._taken | dict.fromkeys(self._pending)]
        self._pending.update(row.key for row in fresh)
        return fresh

    async def leave_pending(self, row: InboxRow) -> None:
        """Let a command wait in the store until it is done with."""
        if row.key not in self._pending:
            self._pending.add(row.key)
            await self._desk.around.store.enter(self._desk.fold.session_id, row)

    def done_with(self, row: InboxRow) -> None:
        """A pending command is over, also if it had no effect."""
        if row.key in self._pending:
            self._pending.discard(row.key)
            self._desk.ledger.consume(row.key)

    def take(self, row: InboxRow) -> None:
        """The facts that are stated now follow from this command."""
        self._taken[row.key] = row.body
        if row.key in self._pending:
            self._pending.discard(row.key)
            self._desk.ledger.consume(row.key)
        else:
            self._desk.ledger.enter(row)

    async def was_taken(self, row: InboxRow) -> bool:
        """Whether the same command was taken before; the same key for another is an error."""
        if row.key in self._pending:
            return False
        stored = await self._desk.around.store.command(self._desk.fold.session_id, row.key)
        body = self._taken.get(row.key, None if stored is None else stored.body)
        if body not in (None, row.body):
            raise KeyReusedError(
                f"the key {row.key!r} was used for another command; choose a new one"
            )
        return body is not None
