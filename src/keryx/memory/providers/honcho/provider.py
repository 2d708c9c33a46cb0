"""The provider: each item goes to the part of Honcho that takes it, in the order of its session."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from keryx.aio.bridge import Bridge
from keryx.aio.clock import Clock, RealClock
from keryx.events import RecalledMemory
from keryx.memory.memory_file import MemoryFile
from keryx.memory.providers.honcho.conclusions import Conclusions, Target
from keryx.memory.providers.honcho.connection import (
    HonchoSettings,
    connections,
    require_package,
)
from keryx.memory.providers.honcho.failures import RequestRefusedError
from keryx.memory.providers.honcho.messages import Messages
from keryx.memory.providers.honcho.names import workspace_name
from keryx.memory.providers.honcho.remembering import NAME, Remembering
from keryx.memory.providers.honcho.remote_items import RemoteItems
from keryx.memory.providers.honcho.settling import Settling
from keryx.ports.memory import (
    Delivery,
    Memory,
    MemoryItem,
    MemoryScope,
    ProviderUnavailableError,
    TurnMemory,
    Withdrawal,
)

# Seconds. A batch is embedded by a model at Honcho before it is stored.
TIMEOUT: Final = 10.0
# Seconds. Honcho goes on with a request whose client is gone; embedding it takes a few at most.
SETTLE: Final = 5.0


class HonchoProvider:
    """Memories as conclusions, turns as messages. Used on one loop; opened at its first use."""

    def __init__(
        self,
        file: MemoryFile,
        bridge: Bridge,
        *,
        url: str,
        api_key: str | None,
        workspace: str,
        clock: Clock | None = None,
        timeout: float = TIMEOUT,
        settle: float = SETTLE,
    ) -> None:
        """Raise `UnsupportedError` if Honcho's client is not installed."""
        require_package()
        settings = HonchoSettings(
            url=url.rstrip("/"),
            api_key=api_key,
            workspace=workspace,
            timeout=timeout,
            settle=settle,
        )
        self.name: Final = NAME
        self._configured = workspace
        self._connections = connections(bridge, settings)
        self._remote_items = RemoteItems(file)
        settling = Settling(clock or RealClock(), settings.settle)
        self._conclusions = Conclusions(self._connections, self._remote_items, settling)
        self._messages = Messages(self._connections, self._remote_items, settling)
        self._remembering = Remembering(self._connections, self._remote_items, workspace)

    async def store(self, session_id: str, deliveries: Sequence[Delivery]) -> None:
        """Store these items; those that may be stored already are looked for first."""
        try:
            for _, run in groupby(deliveries, key=lambda delivery: self._place(delivery.item)):
                await self._store(session_id, list(run))
        except RequestRefusedError as error:
            raise ProviderUnavailableError(str(error)) from error

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        try:
            return await self._remembering.recall(scope, words, limit)
        except RequestRefusedError as error:
            raise ProviderUnavailableError(str(error)) from error

    async def context(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        try:
            return await self._remembering.context(scope, words, limit)
        except RequestRefusedError as error:
            raise ProviderUnavailableError(str(error)) from error

    async def remaining(self, items: Sequence[str]) -> Sequence[str]:
        """Return the items that Honcho still has: turns stay until their session is deleted."""
        entries = await self._remote_items.of_items(items)
        sessions = {entry.session_id: entry for entry in entries.values() if entry.is_turn}
        for entry in await self._remote_items.of_keryx_sessions(items):
            sessions[entry.session_id] = entry
        gone = {
            session_id
            for session_id, entry in sessions.items()
            if not await self._messages.is_there(entry)
        }
        return [
            item
            for item in items
            if (item in sessions and item not in gone)
            or (item in entries and entries[item].session_id not in gone)
        ]

    async def close(self) -> None:
        """Close the connection of this loop. The file belongs to the service."""
        await self._connections.close()

    def _place(self, item: MemoryItem) -> tuple[str, ...]:
        """Return what items must have in common to be sent together."""
        match item:
            case Memory():
                return "memory", workspace_name(self._configured, item.profile), item.workspace
            case TurnMemory():
                return "turn", workspace_name(self._configured, item.profile)
            case Withdrawal():
                return "withdrawal", item.id

    async def _store(self, session_id: str, run: Sequence[Delivery]) -> None:
        kind, *place = self._place(run[0].item)
        if kind == "memory":
            target = Target(place[0], session_id, place[1])
            await self._conclusions.remove_doubles(target)
            await self._conclusions.store(target, run)
        elif kind == "turn":
            await self._messages.store(place[0], run)
        else:
            for delivery in run:
                if isinstance(delivery.item, Withdrawal):
                    await self._withdraw(delivery.item)

    async def _withdraw(self, withdrawal: Withdrawal) -> None:
        entries = await self._remote_items.of_items(withdrawal.items)
        turns = [item for item, entry in entries.items() if entry.is_turn]
        if turns:
            await self._remote_items.end(turns)
        for item, entry in entries.items():
            if item not in turns:
                await self._conclusions.delete(entry)
        if withdrawal.erase:
            await self._erase_sessions(withdrawal.items)

    async def _erase_sessions(self, ids: Sequence[str]) -> None:
        """Delete sessions that a person deleted, unless a memory of somebody else is in them."""
        entries = await self._remote_items.of_keryx_sessions(ids)
        in_use = {entry.session_id for entry in entries if not entry.is_turn}
        sessions = {entry.session_id: entry for entry in entries if entry.is_turn}
        await self._remote_items.end([entry.item for entry in entries if entry.is_turn])
        for session_id, entry in sessions.items():
            if session_id not in in_use:
                await self._messages.delete_session(entry)
