"""Taking back changes of files that the session made, as a command of its own."""

from __future__ import annotations

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
    store: Store, session_id: str, wanted: frozenset[int] | None = None
) -> list[FileChange]:
    """The changes that the log tells of, or those with these numbers, with what was before."""
    found: list[FileChange] = []
    for event in await store.events(session_id):
        if isinstance(event, ev.FilesChanged) and (wanted is None or event.seq in wanted):
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
        desk, row = self._desk, row_of(command)
        if await self._once.was_taken(row):
            return Done(True)
        workspace = desk.fold.settings.workspace
        revert = desk.around.revert
        if desk.around.files is None or revert is None:
            raise UnsupportedError("this session has no files to revert")
        numbers = frozenset(command.changes)
        changes = await logged_changes(desk.around.store, desk.fold.session_id, numbers)
        if len(changes) != len(numbers):
            raise UserMustActError(
                "some of these numbers are no changes of files; `keryx sessions diff` shows them"
            )
        self._once.take(row)
        await revert(partial(desk.open_files, workspace), changes)
        await desk.ledger.durable()
        return Done(True)
