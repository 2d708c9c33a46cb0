"""Creates the memory of a host, with the providers that its configuration names."""

from __future__ import annotations

import asyncio
import importlib
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from keryx.app.runtime import Runtime
from keryx.config import Config, secrets_of
from keryx.engine.redaction import Redactor
from keryx.errors import StoreError
from keryx.ports.memory import Memory
from keryx.ports.memory_access import TellOwner
from keryx.ports.store import Store

if TYPE_CHECKING:
    from keryx.app.memory_hosting.guarded_memory import GuardedMemory
    from keryx.memory.service import MemoryService

FILE: Final = "memory.db"
"""The file of the memories in the home."""


async def open_memory(
    runtime: Runtime,
    store: Store,
    config: Config,
    *,
    tell_owner: TellOwner | None = None,
) -> GuardedMemory | None:
    """Create the memory; None if no provider is configured.

    `tell_owner`: another process owns the home, takes in and delivers (see `MemoryService`).
    """
    if not config.memory.providers:
        return None
    # Imported only here: a host without a memory starts faster. In a thread: another loop may be
    # importing it at the same time.
    load = importlib.import_module
    service: Any = await runtime.bridge.to_thread(load, "keryx.memory.service")
    creation: Any = await runtime.bridge.to_thread(
        load, "keryx.app.memory_hosting.provider_creation"
    )
    file = service.MemoryFile(config.home / FILE, runtime.bridge)
    edits = ServiceEdits()
    report = partial(_report, edits)
    providers = await runtime.bridge.to_thread(
        creation.create_providers, runtime, config, file, edits, report
    )
    memory: MemoryService = service.MemoryService(
        store,
        file,
        runtime.scope,
        providers=(*providers.usable, *providers.left_out),
        report=report,
        budget=config.memory.wait,
        tell_owner=tell_owner,
    )
    memory.redact_with(Redactor(secrets_of(config)).text)
    edits.service = memory
    guarding: Any = await runtime.bridge.to_thread(load, "keryx.app.memory_hosting.guarded_memory")
    return guarding.GuardedMemory(memory, providers, store)


class ServiceEdits:
    """Passes people's edits at a provider on to the service, which is created after it."""

    def __init__(self) -> None:
        self.service: MemoryService | None = None

    async def add(self, memory: Memory) -> None:
        assert self.service is not None, "providers are used by their service only"
        await self.service.curation.add(memory)

    async def remove(self, memory_id: str) -> None:
        assert self.service is not None, "providers are used by their service only"
        await self.service.curation.remove([memory_id])


def _report(edits: ServiceEdits, name: str, error: BaseException) -> None:
    """Report a defect. That the file cannot be used is none: turns and `keryx doctor` say it."""
    is_known = edits.service is not None and edits.service.fault is not None
    if isinstance(error, StoreError) and is_known:
        return
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"the memory failed: {name}", "exception": error}
    )
