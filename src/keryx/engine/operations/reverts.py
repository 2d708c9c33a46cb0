"""Reverts file changes of the session, and undoes turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.log.rebuild import folded
from keryx.engine.session_context import SessionContext
from keryx.errors import UnsupportedError, UserMustActError
from keryx.ports.dispatch import Done
from keryx.ports.files import FileChange
from keryx.ports.store import InboxRow, Store


class LoggedChange(msgspec.Struct, frozen=True):
    """A file change of this session, and the workspace of that time."""

    workspace: str
    change: FileChange


async def logged_changes(
    store: Store, session_id: str, matches: Callable[[ev.FilesChanged], bool] = lambda _: True
) -> list[LoggedChange]:
    """Return the session's own file changes that match, in order, with the old contents."""
    changes: list[LoggedChange] = []
    inherited, workspaces = 0, _Workspaces()
    for event in await store.events(session_id):
        workspaces.note(event)
        if isinstance(event, ev.SessionOpened) and event.fork is not None:
            inherited = event.fork.up_to
        if isinstance(event, ev.FilesChanged) and event.seq > inherited and matches(event):
            changes.append(LoggedChange(workspaces.of(event), await file_change(store, event)))
    return changes


async def file_change(store: Store, event: ev.FilesChanged) -> FileChange:
    """Return one change with the old content."""
    return FileChange(
        path=Path(event.path),
        before_hash=event.before,
        after_hash=event.after,
        before=await store.blob(event.before) if event.kept and event.before else None,
    )


class _Workspaces:
    """Finds the workspace of a file change. In old logs, only the turn tells it."""

    def __init__(self) -> None:
        self._session = ""
        self._messages: dict[str, str] = {}
        self._turns: dict[str, str] = {}

    def note(self, event: ev.LoggedEvent) -> None:
        match event:
            case ev.SessionOpened():
                self._session = event.workspace
            case ev.SessionChanged():
                self._session = event.workspace or self._session
            case ev.MessageAccepted():
                self._messages[event.message_id] = event.workspace
            case ev.MessageChanged():
                workspace = event.workspace or self._messages.get(event.message_id, "")
                self._messages[event.message_id] = workspace
            case ev.TurnStarted():
                for message_id in event.message_ids:
                    self._turns[event.turn_id] = self._messages.get(message_id, "")
            case _:
                pass

    def of(self, event: ev.FilesChanged) -> str:
        return event.workspace or self._turns.get(event.turn_id or "", "") or self._session


class Reverts:
    """Reverts changes of one session."""

    def __init__(self, context: SessionContext, dedup: Dedup) -> None:
        self._context = context
        self._dedup = dedup

    async def run(self, command: cm.RevertFiles) -> Done:
        """Revert all these changes, or none; refused if somebody edited a file since."""
        row, numbers = row_of(command), frozenset(command.changes)
        if await self._dedup.was_taken(row):
            return Done(True)
        changes = await self._changes(lambda event: event.seq in numbers)
        if len(changes) != len(numbers):
            raise UserMustActError(
                "some of these numbers are not file changes; `keryx sessions diff` lists them"
            )
        await self._revert(row, changes)
        self._dedup.take(row)
        await self._context.log.wait_durable()
        return Done(True)

    async def undo(self, command: cm.UndoTurn) -> Done:
        """Undo a turn that is over: remove it from what the model reads, and revert its files."""
        fold, row = self._context.fold, row_of(command)
        if command.turn_id in fold.undone or await self._dedup.was_taken(row):
            return Done(True)
        if command.turn_id not in fold.turn_outcomes:
            raise UserMustActError("only a turn that has ended can be undone; stop it first")
        if command.files:
            await self.revert_turns(row, [command.turn_id])
        await self.restore_history(command.turn_id)
        if command.turn_id not in fold.undone:
            self._context.log.record(ev.TurnUndone, turn_id=command.turn_id, by=command.by)
        self._dedup.take(row)
        await self._context.log.wait_durable()
        return Done(True)

    async def revert_turns(self, row: InboxRow, turns: Sequence[str]) -> None:
        """Revert the file changes of these turns, all or none."""
        await self._revert(row, await self._changes(lambda event: event.turn_id in turns))

    async def restore_history(self, turn_id: str) -> None:
        """Load what a summary of the turn replaced: the summary becomes invalid."""
        context = self._context
        while turn_id in context.fold.forgotten:
            await context.log.wait_settled()
            log = await context.services.store.events(context.fold.session_id)
            full = await folded(context.fold.session_id, log, {turn_id})
            if full.last_seq == context.fold.last_seq:  # else a fact was added meanwhile
                context.fold.restore_history(full)

    async def _changes(self, matches: Callable[[ev.FilesChanged], bool]) -> list[LoggedChange]:
        return await logged_changes(
            self._context.services.store, self._context.fold.session_id, matches
        )

    async def _revert(self, row: InboxRow, changes: list[LoggedChange]) -> None:
        """Revert the changes. The command waits in the store meanwhile, so a crash loses nothing.

        Reverting twice does nothing. A command that is refused leaves no trace.
        """
        context = self._context
        if not changes:
            return
        if not context.files.can_open or context.services.revert is None:
            raise UnsupportedError("this session has no files to revert")
        await self._dedup.leave_pending(row)
        workspaces = dict.fromkeys(logged.workspace for logged in changes)
        parts = [
            (
                partial(context.files.open, workspace),
                [logged.change for logged in changes if logged.workspace == workspace],
            )
            for workspace in workspaces
        ]
        try:
            await context.services.revert(parts)
        except Exception:
            await self._dedup.refuse(row)
            raise
