"""Taking back changes of files that the session made, as a command of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.desk import Desk
from keryx.engine.log.once import Once, row_of
from keryx.errors import UnsupportedError, UserMustActError
from keryx.ports.dispatch import Done
from keryx.ports.files import FileChange
from keryx.ports.store import Store


async def logged_changes(
    store: Store, session_id: str, wanted: Callable[[ev.FilesChanged], bool] = lambda _: True
) -> list[FileChange]:
    """The session's own changes that are wanted, in order, each with what was before."""
    found: list[FileChange] = []
    inherited = 0
    for event in await store.events(session_id):
        if isinstance(event, ev.SessionOpened) and event.fork is not None:
            inherited = event.fork.up_to
        if isinstance(event, ev.FilesChanged) and event.seq > inherited and wanted(event):
            kept = event.kept and event.before is not None
            before = await store.blob(event.before) if kept and event.before else None
            found.append(
                FileChange(
                    path=Path(event.path),
                    before_hash=event.before,
                    after_hash=event.after,
                    before=before,
                )
            )
    return found


class Reverts:
    """Takes back changes of one session."""

    def __init__(self, desk: Desk, once: Once) -> None:
        self._desk = desk
        self._once = once

    async def run(self, command: cm.RevertFiles) -> Done:
        """All of them, or none; refused where someone edited since."""
        row = row_of(command)
        if await self._once.was_taken(row):
            return Done(True)
        numbers = frozenset(command.changes)
        changes = await self._changes(lambda event: event.seq in numbers)
        if len(changes) != len(numbers):
            raise UserMustActError(
                "some of these numbers are no changes of files; `keryx sessions diff` shows them"
            )
        self._once.take(row)
        await self._revert(changes)
        await self._desk.ledger.durable()
        return Done(True)

    async def undo(self, command: cm.UndoTurn) -> Done:
        """A turn that is over leaves nothing in what the model reads, nor on the disk.

        The command waits in the store until both are done, so a crash in between loses nothing:
        taking back what was taken back does nothing.
        """
        fold, row = self._desk.fold, row_of(command)
        if command.turn_id in fold.undone or await self._once.was_taken(row):
            return Done(True)
        if command.turn_id not in fold.over:
            raise UserMustActError("only a turn that is over can be undone; stop it first")
        await self._once.leave_pending(row)
        if command.files:
            changes = await self._changes(lambda event: event.turn_id == command.turn_id)
            try:
                if changes:
                    await self._revert(changes)
            except UserMustActError:
                self._once.done_with(row)
                await self._desk.ledger.durable()
                raise
        if command.turn_id not in fold.undone:
            self._desk.ledger.record(ev.TurnUndone, turn_id=command.turn_id, by=command.by)
        self._once.take(row)
        await self._desk.ledger.durable()
        return Done(True)

    async def _changes(self, wanted: Callable[[ev.FilesChanged], bool]) -> list[FileChange]:
        return await logged_changes(self._desk.around.store, self._desk.fold.session_id, wanted)

    async def _revert(self, changes: list[FileChange]) -> None:
        desk = self._desk
        if desk.around.files is None or desk.around.revert is None:
            raise UnsupportedError("this session has no files to revert")
        workspace = desk.fold.settings.workspace
        await desk.around.revert(partial(desk.open_files, workspace), changes)
