"""What a person is typing: kept with the session, so that any screen can go on with it.

It is no fact and stands in no log: only the last state counts.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.engine.log.log_writer import LogWriter
from keryx.ports.store import RecordChange, Store
from keryx.ports.view import Typed

_decode: Final = msgspec.json.Decoder(Typed).decode


def record_key(session_id: str) -> str:
    return f"session/{session_id}/draft"


async def read_draft(store: Store, session_id: str) -> Typed:
    """What was typed last, for a session that nobody has opened."""
    found = await store.record(record_key(session_id))
    return Typed() if found is None else _decode(found[1])


class Drafts:
    """One session's draft. Belongs to the session's loop."""

    def __init__(self, store: Store, log: LogWriter, session_id: str) -> None:
        self._store = store
        self._log = log
        self._key = record_key(session_id)
        self._known: tuple[int, Typed] | None = None

    async def read(self) -> Typed:
        return (await self._load())[1]

    async def keep(self, draft: Typed) -> None:
        """Returns once it is durable."""
        version, known = await self._load()
        if draft != known:
            self._known = (version + 1, draft)
            value = msgspec.json.encode(draft)
            self._log.set_record(RecordChange(self._key, version, value))
        await self._log.durable()

    async def _load(self) -> tuple[int, Typed]:
        if self._known is None:
            found = await self._store.record(self._key)
            # Set once: what was typed while this was read is newer than what was read.
            if self._known is None:
                self._known = (0, Typed()) if found is None else (found[0], _decode(found[1]))
        return self._known
