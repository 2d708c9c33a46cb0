"""The memory in a process beside the owner of the home: it reads and writes, and never delivers.

The file of the memories is shared. The owner is told after each change, and delivers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from keryx.app.host.guests.guest_host import GuestHost
from keryx.app.host.local_host import LocalHost
from keryx.app.runtime import Runtime
from keryx.app.services.host_memory import open_memory
from keryx.config import Config, secrets_of
from keryx.engine.redaction import Redactor
from keryx.errors import UserMustActError
from keryx.ports.memory_access import TellOwner
from keryx.ports.store import Store

if TYPE_CHECKING:
    from keryx.memory.service import MemoryService

OFF: Final = (
    "memory is off, because no provider is configured; write `[memory]` and "
    '`providers = ["notes"]` into config.toml, then start Keryx again'
)


class MemoryOffError(UserMustActError):
    """No provider is configured; the text says how to turn the memory on."""


class AttachedMemory:
    """Opens the memory when it is first used. Belongs to one loop."""

    def __init__(
        self,
        runtime: Runtime,
        tell_owner: TellOwner,
        read_config: Callable[[], Awaitable[Config]],
    ) -> None:
        self._runtime = runtime
        self._tell_owner = tell_owner
        self._read_config = read_config
        self._service: MemoryService | None = None

    async def beside(self, host: object, store: Store) -> MemoryService:
        """Return the memory of a host of this process, or one beside the owner of the home.

        `UserMustActError` if no provider is configured.
        """
        config = await self._read_config()
        if isinstance(host, LocalHost | GuestHost):
            service = None if host.memory is None else host.memory.service
        else:
            service = await self._open(store, config)
        if service is None:
            raise MemoryOffError(OFF)
        # Secrets that were added since must not reach a provider.
        service.redact_with(Redactor(secrets_of(config)).text)
        return service

    async def _open(self, store: Store, config: Config) -> MemoryService | None:
        if self._service is None:
            memory = await open_memory(self._runtime, store, config, tell_owner=self._tell_owner)
            service = None if memory is None else memory.service
            if self._service is None:
                self._service = service
            elif service is not None:  # two callers were first
                await service.close()
        return self._service

    async def close(self) -> None:
        if self._service is not None:
            await self._service.close()
