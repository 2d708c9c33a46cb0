"""The host's memory for one session: its scope, its trust, and its log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from keryx import events as ev
from keryx.engine.log.fold import Fold
from keryx.engine.log.log_writer import LogWriter
from keryx.engine.log.state import Settings
from keryx.engine.redaction import Redactor
from keryx.ids import derived_id
from keryx.ports.memory import MemoryScope
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
        self._scope = MemoryScope(settings.profile, workspace)

    async def has(self, memory_id: str) -> bool:
        """Return whether there is such a memory in this scope, and it is active."""
        memory = await self._memory.get(memory_id)
        return (
            memory is not None
            and memory.state == "active"
            and memory.profile == self._scope.profile
            and memory.workspace in ("", self._scope.workspace)
        )

    async def recall(self, words: str, limit: int) -> Recall:
        return await self._memory.recall(self._scope, words, limit)

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
        await self._record(call_id, [{"change": "remove", "target": memory_id}])

    async def _record(self, call_id: str, changes: Sequence[dict[str, Any]]) -> list[str]:
        """Log the changes that this call has not logged yet: it may run again after a crash."""
        turn = self._fold.turn
        ids = [
            derived_id("mem", call_id, str(at), msgspec.json.encode(fields).decode())
            for at, fields in enumerate(changes)
        ]
        for memory_id, fields in zip(ids, changes, strict=True):
            if memory_id not in self._fold.memories.remembered:
                self._log.record(
                    ev.MemoryChanged,
                    memory_id=memory_id,
                    call_id=call_id,
                    turn_id=None if turn is None else turn.turn_id,
                    trust="tool" if turn is None else turn.trust,
                    profile=self._scope.profile,
                    workspace=self._scope.workspace,
                    **fields,
                )
        await self._log.wait_durable()
        return ids
