"""Replaces a turn by another answer to the same message, and switches between such answers.

A turn that is replaced is undone together with all turns after it, but each of these facts names
the branch, so that the branch can be restored. Nothing of it is deleted: the log has all answers,
and the facts say which of them the session continues from.
"""

from __future__ import annotations

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.log.fold import Fold
from keryx.engine.log.log_writer import LogWriter
from keryx.engine.operations.reverts import Reverts
from keryx.errors import UserMustActError
from keryx.ports.dispatch import Done
from keryx.ports.store import InboxRow


class Variants:
    """Replaces and restores turns of one session."""

    def __init__(self, fold: Fold, log: LogWriter, dedup: Dedup, reverts: Reverts) -> None:
        self._fold = fold
        self._log = log
        self._dedup = dedup
        self._reverts = reverts

    def check(self, turn_id: str) -> None:
        """Raise `UserMustActError` if this turn cannot be replaced now."""
        fold = self._fold
        self._check_idle()
        if turn_id not in fold.turn_outcomes or turn_id in fold.undone:
            raise UserMustActError(
                "only a turn that has ended and is in the transcript can be replaced; "
                "read the transcript again"
            )

    async def prepare(self, command: cm.SendMessage, row: InboxRow) -> None:
        """Do what takes time before the turn is replaced: revert files, load the history."""
        assert command.replaces is not None
        turns = self._from(command.replaces)
        if command.revert:
            await self._reverts.revert_turns(row, turns)
        for turn_id in turns:
            await self._reverts.restore_history(turn_id)

    def put_aside(self, turn_id: str, by: str) -> tuple[str, ...]:
        """Undo the turn and those after it; return all turns that the next one replaces."""
        for later in reversed(self._from(turn_id)):
            self._log.record(ev.TurnUndone, turn_id=later, by=by, branch=turn_id)
        return self._fold.branches.variants(turn_id)

    async def restore(self, command: cm.RestoreTurn) -> Done:
        """Make this answer the one that the session continues from."""
        fold, row = self._fold, row_of(command)
        if await self._dedup.was_taken(row):
            return Done(True)
        self._check_idle()
        if command.turn_id in fold.undone:
            current = self._current(command.turn_id)
            for turn_id in (*self._from(current), *fold.branches.restorable(command.turn_id)):
                await self._reverts.restore_history(turn_id)
            self._check_idle()
            self._switch(self._current(command.turn_id), command)
        elif command.turn_id not in fold.turn_outcomes:
            raise UserMustActError("the session has no such turn; read the transcript again")
        self._dedup.take(row)
        await self._log.wait_durable()
        return Done(True)

    def _switch(self, current: str, command: cm.RestoreTurn) -> None:
        fold, record = self._fold, self._log.record
        if current == command.turn_id:  # somebody else was faster
            return
        self.put_aside(current, command.by)
        branch = set(fold.branches.restorable(command.turn_id))
        for turn_id in [turn for turn in fold.turn_outcomes if turn in branch]:
            is_variant = turn_id == command.turn_id
            variants = fold.branches.variants(turn_id) if is_variant else ()
            record(ev.TurnRestored, turn_id=turn_id, by=command.by, variants=variants)

    def _current(self, turn_id: str) -> str:
        """Return the answer that is in the transcript in place of this one."""
        fold = self._fold
        for variant in fold.branches.variants(turn_id):
            if variant in fold.turn_outcomes and variant not in fold.undone:
                return variant
        raise UserMustActError(
            "this turn was undone, not replaced, so it cannot come back; send its message again"
        )

    def _from(self, turn_id: str) -> list[str]:
        """Return this turn and those after it, as far as they are in the transcript."""
        fold = self._fold
        turns = list(fold.turn_outcomes)
        return [turn for turn in turns[turns.index(turn_id) :] if turn not in fold.undone]

    def _check_idle(self) -> None:
        if self._fold.turn is not None:
            raise UserMustActError("a turn is running; stop it, or wait until it has ended")
