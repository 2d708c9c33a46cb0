"""The draft that a person is typing, saved with the session so that every screen has it.

It is not logged: only the last state counts.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.decoding import json_decoder
from keryx.engine.log.log_writer import LogWriter
from keryx.ports.store import RecordChange, Store
from keryx.ports.view import Typed

_decode: Final = json_decoder(Typed).decode


def record_key(session_id: str) -> str:
    return f"session/{session_id}/draft"


async def read_draft(store: Store, session_id: str) -> Typed:
    """Return the draft of a session that is not open."""
    record = await store.record(record_key(session_id))
    return Typed() if record is None else _decode(record[1])


class Drafts:
    """One session's draft. Belongs to the session's loop."""

    def __init__(self, store: Store, log: LogWriter, session_id: str) -> None:
        self._store = store
        self._log = log
        self._key = record_key(session_id)
        self._current: tuple[int, Typed] | None = None

    async def read(self) -> Typed:
        return (await self._load())[1]

    async def save(self, draft: Typed) -> None:
        """Save the draft; return once it is durable."""
        version, saved = await self._load()
        if draft != saved:
            self._current = (version + 1, draft)
            value = msgspec.json.encode(draft)
            self._log.set_record(RecordChange(self._key, version, value))
        await self._log.wait_durable()

    async def _load(self) -> tuple[int, Typed]:
        if self._current is None:
            record = await self._store.record(self._key)
            # A draft that was saved during the read is newer than what was read.
            if self._current is None:
                self._current = (0, Typed()) if record is None else (record[0], _decode(record[1]))
        return self._current
