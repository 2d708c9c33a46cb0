"""The memory of a host as its sessions use it: what is broken in it stops no session and no host.

While the file of the memories cannot be used, what sessions remember waits in the outbox of the
store, and each turn says so. The memory goes on as soon as the file can be used again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from keryx.app.memory_hosting.provider_creation import Providers
from keryx.decoding import json_decoder
from keryx.errors import StoreError
from keryx.memory import intake_rows
from keryx.memory.intake import apply_rows
from keryx.memory.providers.left_out import take_over
from keryx.memory.service import MemoryService
from keryx.ports.memory import Memory, MemoryScope, TurnMatch
from keryx.ports.memory_access import Recall
from keryx.ports.store import OutboxRow, Store

_DELETED: Final = "memory/deleted/"
"""The records of sessions that were deleted before the memory could forget what they taught."""
_KEPT: Final = "memory/kept/"
"""The rows of sessions that were deleted before the memory could take them in."""
_ALL: Final = 1_000_000
"""Rows of the outbox that are looked through."""
_MEMORY: Final = "memory"
"""Named instead of the providers that did not answer, if none was asked."""
_encode: Final = msgspec.json.encode
_decode: Final = json_decoder(list[OutboxRow]).decode


class GuardedMemory:
    """Passes everything on to the memory, if it works. Belongs to the host's loop."""

    def __init__(self, service: MemoryService, providers: Providers, store: Store) -> None:
        self.service: Final = service
        self._providers = providers
        self._store = store
        self._must_start = self._is_starting = False
        self.turn_row, self.changed_row = service.turn_row, service.changed_row
        self.undone_row, self.restored_row = service.undone_row, service.restored_row
        self.wake, self.session_closed = service.wake, service.session_closed
        self.rescan, self.redact_with = service.rescan, service.redact_with

    async def start(self) -> None:
        """Deliver what earlier processes left; if that cannot be, each turn tries it again.

        Only the owner of a home calls this.
        """
        self._must_start = True
        await self._start()

    async def _start(self) -> None:
        if self._is_starting:
            return
        self._is_starting = True
        try:
            for name, alias in self._providers.aliases.items():
                await self.service.file.write(partial(take_over, provider=name, alias=alias))
            # Before the start, which drops the marks of rows that were applied.
            await self._take_in_kept()
            await self.service.start()
            await self._forget_deleted()
            self._must_start = False
        except StoreError:
            if self.service.fault is None:  # it is the store of the sessions that failed
                raise
        finally:
            self._is_starting = False

    async def fault(self) -> str | None:
        """Return why the memory does not work now, and what to do; None: it works."""
        if self._must_start or self.service.fault is not None:
            with suppress(TimeoutError, StoreError):
                async with asyncio.timeout(self.service.budget):
                    await self._try_again()
        error = self.service.fault or await self.service.file.check()
        return None if error is None else str(error)

    async def _try_again(self) -> None:
        """Do what could not be done; the file notes whether it can be done now."""
        if await self.service.file.check() is None:
            await (self._start() if self._must_start else self.service.take_in())

    # -- for sessions

    async def context(self, session_id: str, scope: MemoryScope, words: str) -> Recall:
        """Return what the model should be given, and what does not work."""
        recall, faults = Recall(late=(_MEMORY,)), self._provider_faults()
        if await self.fault() is None:
            with suppress(StoreError):  # it is noted
                recall = await self.service.context(session_id, scope, words)
        if (fault := self.service.fault) is not None:
            text = f"{fault}; the turn runs without the memory, which takes in later what it misses"
            faults = (text, *faults)
        return msgspec.structs.replace(recall, faults=faults)

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Recall:
        return await self.service.recall(scope, words, limit)

    async def search_turns(self, scope: MemoryScope, words: str, limit: int) -> list[TurnMatch]:
        return await self.service.search_turns(scope, words, limit)

    async def get(self, memory_id: str) -> Memory | None:
        return await self.service.get(memory_id)

    def _provider_faults(self) -> tuple[str, ...]:
        """Return what people should know of the providers."""
        left_out = [
            f"{provider.reason}; this turn runs without it, and what it misses waits for it"
            for provider in self._providers.left_out
        ]
        failing = [
            f"the memory provider {name!r} fails ({error}); this turn runs without it, and what it "
            "misses waits for it: `keryx memory lag` shows how much"
            for name, error in self.service.failing().items()
        ]
        return (*left_out, *failing)

    # -- sessions that are deleted

    async def forget_session(self, session_id: str, *, keep: bool) -> None:
        """Erase what only this session taught, or `keep` it; if it cannot be now, then later."""
        try:
            await self.service.take_in()
            if not keep:
                await self.service.forget_session(session_id)
        except StoreError:
            self._must_start = True
            if keep:
                await self._keep_rows(session_id)
            else:
                await self._store.keep_record(_DELETED + session_id, b"")

    async def _keep_rows(self, session_id: str) -> None:
        """Keep the session's rows of the outbox, which are gone with the session."""
        rows = await self._store.outbox(intake_rows.TOPIC, limit=_ALL)
        of_session = [row for row in rows if intake_rows.session_of(row) == session_id]
        if of_session:
            await self._store.keep_record(_KEPT + session_id, _encode(of_session))

    async def _take_in_kept(self) -> None:
        for key, value in (await self._store.records(_KEPT)).items():
            rows, names = _decode(value), self._providers.names
            await self.service.file.write(partial(apply_rows, rows=rows, providers=names))
            await self._store.drop_record(key)

    async def _forget_deleted(self) -> None:
        for key in await self._store.records(_DELETED):
            session_id = key.removeprefix(_DELETED)
            if await self._store.session(session_id) is None:
                await self.service.forget_session(session_id)
            await self._store.drop_record(key)

    async def close(self, drain: float) -> None:
        """Deliver what is left for `drain` seconds; what cannot be taken in waits in the store."""
        with suppress(StoreError):
            await self.service.close(drain)
