"""A provider that is configured and cannot be used: it stores and recalls nothing, and says why.

What it misses waits for it, under its name in the configuration: its own name is not known.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final, NoReturn

from keryx.events import RecalledMemory
from keryx.ports.memory import Delivery, MemoryScope, ProviderUnavailableError


class LeftOut:
    """Takes the place of the provider until Keryx is started again."""

    def __init__(self, name: str, reason: str) -> None:
        """`reason` says what happened and what to do."""
        self.name: Final = name
        self.reason: Final = reason

    async def store(self, session_id: str, deliveries: Sequence[Delivery]) -> None:
        del session_id, deliveries
        self._refuse()

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        del scope, words, limit
        self._refuse()

    async def context(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        del scope, words, limit
        self._refuse()

    async def remaining(self, items: Sequence[str]) -> Sequence[str]:
        del items
        self._refuse()

    async def close(self) -> None:
        """Do nothing: it was never opened."""

    def _refuse(self) -> NoReturn:
        raise ProviderUnavailableError(self.reason)


def take_over(connection: sqlite3.Connection, provider: str, alias: str) -> None:
    """Let a provider that was left out get what waits under its name in the configuration.

    What it has got, or waits for, under its own name does not come again.
    """
    connection.execute(
        "UPDATE OR IGNORE deliveries SET provider = ? WHERE provider = ?", (provider, alias)
    )
    connection.execute("DELETE FROM deliveries WHERE provider = ?", (alias,))
    connection.execute("DELETE FROM breakers WHERE provider = ?", (alias,))
