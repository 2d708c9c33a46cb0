"""Taking back changes of files that the session made, as a command of its own."""

from __future__ import annotations

from collections.abc import Callable
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
    """A change of a file by this session, and the workspace that it worked in."""

    workspace: str
    change: FileChange


async def logged_changes(
    store: Store, session_id: str, is_wanted: Callable[[ev.FilesChanged], bool] = lambda _: True
) -> list[LoggedChange]:
    """The session's own changes that are wanted, in order, each with what was before."""
    changes: list[LoggedChange] = []
    inherited, workspaces = 0, _Workspaces()
    for event in await store.events(session_id):
        workspaces.note(event)
        if isinstance(event, ev.SessionOpened) and event.fork is not None:
            inherited = event.fork.up_to
        if isinstance(event, ev.FilesChanged) and event.seq > inherited and is_wanted(event):
            before = await store.blob(event.before) if event.kept and event.before else None
            change = FileChange(
                path=Path(event.path),
                before_hash=event.before,
                after_hash=event.after,
                before=before,
            )
            changes.append(LoggedChange(workspaces.of(event), change))
    return changes


class _Workspaces:
    """Which workspace a change was made in; logs from before it was logged tell by the turn."""

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
    """Takes back changes of one session."""

    def __init__(self, context: SessionContext, dedup: Dedup) -> None:
        self._context = context
        self._dedup = dedup

    async def run(self, command: cm.RevertFiles) -> Done:
        """All of them, or none; refused where someone edited since."""
        row, numbers = row_of(command), frozenset(command.changes)
        if await self._dedup.was_taken(row):
            return Done(True)
        changes = await self._changes(lambda event: event.seq in numbers)
        if len(changes) != len(numbers):
            raise UserMustActError(
                "some of these numbers are no changes of files; `keryx sessions diff` shows them"
            )
        await self._revert(row, changes)
        self._dedup.take(row)
        await self._context.log.durable()
        return Done(True)

    async def undo(self, command: cm.UndoTurn) -> Done:
        """A turn that is over leaves nothing in what the model reads, nor on the disk."""
        fold, row = self._context.fold, row_of(command)
        if command.turn_id in fold.undone or await self._dedup.was_taken(row):
            return Done(True)
        if command.turn_id not in fold.over:
            raise UserMustActError("only a turn that is over can be undone; stop it first")
        if command.files:
            await self._revert(
                row, await self._changes(lambda event: event.turn_id == command.turn_id)
            )
        await self._remember(command.turn_id)
        if command.turn_id not in fold.undone:
            self._context.log.record(ev.TurnUndone, turn_id=command.turn_id, by=command.by)
        self._dedup.take(row)
        await self._context.log.durable()
        return Done(True)

    async def _remember(self, turn_id: str) -> None:
        """A summary that tells of the turn will not hold any more: read what it stands for."""
        context = self._context
        while turn_id in context.fold.forgotten:
            await context.log.settled()
            log = await context.services.store.events(context.fold.session_id)
            whole = await folded(context.fold.session_id, log, {turn_id})
            if whole.last_seq == context.fold.last_seq:  # else something was said meanwhile
                context.fold.remember(whole)

    async def _changes(self, is_wanted: Callable[[ev.FilesChanged], bool]) -> list[LoggedChange]:
        return await logged_changes(
            self._context.services.store, self._context.fold.session_id, is_wanted
        )

    async def _revert(self, row: InboxRow, changes: list[LoggedChange]) -> None:
        """Take them back. Meanwhile the command waits in the store, so a crash loses nothing.

        Taking back what was taken back does nothing. A command that is refused leaves no trace.
        """
        context = self._context
        if not changes:
            return
        if context.services.files is None or context.services.revert is None:
            raise UnsupportedError("this session has no files to revert")
        await self._dedup.leave_pending(row)
        places = dict.fromkeys(logged.workspace for logged in changes)
        parts = [
            (
                partial(context.open_files, workspace),
                [logged.change for logged in changes if logged.workspace == workspace],
            )
            for workspace in places
        ]
        try:
            await context.services.revert(parts)
        except Exception:
            await self._dedup.refuse(row)
            raise
