"""The memory for one call: what it remembers is logged with the session's trust, then recalled."""

from __future__ import annotations

from collections.abc import Sequence

from keryx.engine.calls.call import Call
from keryx.engine.calls.call_environment import SessionMemory
from keryx.errors import ToolFailedError
from keryx.ports.memory_access import MemoryNote, Recall

MAX_TEXT = 2_000
"""Characters of one memory."""


class CallMemory:
    """The memory for one call."""

    def __init__(self, call: Call) -> None:
        self._call = call

    @property
    def _memory(self) -> SessionMemory:
        self._call.refuse_if_cancelled()
        memory = self._call.environment.memory
        if memory is None:
            raise ToolFailedError(
                "this host has no memory; a person can turn it on with `[memory]` and "
                '`providers = ["notes"]` in config.toml'
            )
        return memory

    async def remember(self, notes: Sequence[MemoryNote]) -> list[str]:
        memory = self._memory
        for note in notes:
            if not note.text.strip():
                raise ToolFailedError("the text is empty; say what is to be remembered")
            if len(note.text) > MAX_TEXT:
                raise ToolFailedError(
                    f"the text has {len(note.text)} characters and may have {MAX_TEXT}; nothing "
                    "was remembered. Shorten it, or remember it in several parts"
                )
        return await memory.change(self._call.call_id, notes)

    async def remove(self, memory_id: str) -> None:
        await self._memory.remove(self._call.call_id, memory_id)

    async def recall(self, words: str, limit: int) -> Recall:
        return await self._memory.recall(self._call.call_id, words, limit)
