"""The host's memory for one session: its scope, its trust, and its log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from keryx import events as ev
from keryx.engine.log.fold import Fold
from keryx.engine.log.log_writer import LogWriter
from keryx.engine.log.state import Settings
from keryx.engine.memory.session_memories import least
from keryx.engine.redaction import Redactor
from keryx.errors import StoreError, ToolFailedError
from keryx.ids import derived_id
from keryx.ports.memory import Memory, MemoryScope
from keryx.ports.memory_access import HostMemory, MemoryNote, Recall


class CallsMemory:
    """Logs what the calls of a session remember, and recalls in the session's scope."""

    def __init__(
        self,
        memory: HostMemory,
        fold: Fold,
        log: LogWriter,
        redactor: Redactor,
        settings: Settings,
        workspace: str,
    ) -> None:
        self._memory = memory
        self._fold = fold
        self._log = log
        self._redactor = redactor
        self._scope = MemoryScope(settings.memory_profile, workspace)

    async def recall(self, call_id: str, words: str, limit: int) -> Recall:
        """Recall for a call. What it finds is a source of all that the turn remembers later."""
        try:
            recall = await self._memory.recall(self._scope, words, limit)
        except StoreError as error:
            raise ToolFailedError(
                f"the memory does not work, so nothing is recalled: {error}"
            ) from error
        turn, trust = self._fold.turn, self._fold.memories.trust
        lower = tuple(m for m in recall.memories if least((m.trust, trust)) != trust)
        if turn is not None and lower:
            self._log.record(
                ev.MemoryRecalled, turn_id=turn.turn_id, memories=lower, call_id=call_id
            )
        return recall

    async def change(self, call_id: str, notes: Sequence[MemoryNote]) -> list[str]:
        """Log the notes; return their ids once they are durable."""
        return await self._record(
            call_id,
            [
                {
                    "change": "add" if note.target is None else "replace",
                    "text": self._redactor.text(note.text.strip()),
                    "kind": note.kind,
                    "about": note.about,
                    "target": note.target,
                }
                for note in notes
            ],
        )

    async def remove(self, call_id: str, memory_id: str) -> None:
        await self._record(call_id, [{"change": "remove", "about": None, "target": memory_id}])

    async def _record(self, call_id: str, changes: Sequence[dict[str, Any]]) -> list[str]:
        """Log the changes that this call has not logged yet: it may run again after a crash.

        `ToolFailedError` if the memory does not work; what is in the log then is taken in later.
        """
        ids = [
            derived_id("mem", call_id, str(at), msgspec.json.encode(fields).decode())
            for at, fields in enumerate(changes)
        ]
        new = {
            memory_id: fields
            for memory_id, fields in zip(ids, changes, strict=True)
            if memory_id not in self._fold.memories.remembered
        }
        target_ids = [fields["target"] for fields in new.values()]
        targets = {target: await self._get(target) for target in target_ids if target is not None}
        for target, memory in targets.items():
            # What is in the log counts before the memory knows it.
            if not self._is_active(memory) or target in self._fold.memories.ended:
                raise ToolFailedError(
                    f"there is no memory {target!r} here, or it was replaced or removed before; "
                    "search for it, and use the id of the result"
                )
        for memory_id, fields in new.items():
            memory = targets.get(fields["target"])
            self._log_change(call_id, memory_id, fields, "user" if memory is None else memory.about)
        await self._log.wait_durable()
        if (fault := await self._memory.fault()) is not None:
            raise ToolFailedError(
                "the memory does not work now: this is written down and remembered as soon as it "
                f"works again, so do not repeat it. {fault}"
            )
        return ids

    async def _get(self, memory_id: str) -> Memory | None:
        try:
            return await self._memory.get(memory_id)
        except StoreError as error:
            raise ToolFailedError(
                f"the memory does not work, so nothing was changed: {error}"
            ) from error

    def _is_active(self, memory: Memory | None) -> bool:
        """Return whether there is such a memory in this scope, and it is active."""
        return (
            memory is not None
            and memory.state == "active"
            and memory.profile == self._scope.profile
            and memory.workspace in ("", self._scope.workspace)
        )

    def _log_change(
        self, call_id: str, memory_id: str, fields: dict[str, Any], about: ev.MemoryAbout
    ) -> None:
        """Log one change; `about` counts if the fields do not say it."""
        turn = self._fold.turn
        self._log.record(
            ev.MemoryChanged,
            memory_id=memory_id,
            call_id=call_id,
            turn_id=None if turn is None else turn.turn_id,
            trust="tool" if turn is None else self._fold.memories.trust,
            profile=self._scope.profile,
            workspace=self._scope.workspace,
            **fields | {"about": fields["about"] or about},
        )
