"""A provider whose place is a file, and which a test can let fail, hang and lie.

It keeps to the contract by reading the file before it writes what may be there already.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import SupportsIndex

import msgspec

from keryx.events import RecalledMemory
from keryx.memory.own_words import recalled
from keryx.ports.memory import (
    Delivery,
    ItemRefusedError,
    Memory,
    MemoryItem,
    MemoryScope,
    TurnMemory,
    Withdrawal,
)
from tests.server.served_host import in_thread

_decode = msgspec.json.Decoder(MemoryItem).decode
Misbehave = Callable[[Sequence[Delivery]], Exception | None]


class Shelf:
    """Stores items as lines of a file."""

    def __init__(self, path: Path, name: str = "shelf") -> None:
        self.name = name
        self._path = path
        self._lock = threading.Lock()
        self._read = 0
        self._items: dict[str, MemoryItem] = {}
        self.gate: asyncio.Event | None = None
        """If it is set, every request waits for it."""
        self.before: list[Misbehave] = []
        """Each is asked once before a request is stored; an error is raised."""
        self.after: list[Misbehave] = []
        """The same, after it is stored: then the caller does not know that it is."""
        self.running = 0
        self._stored = asyncio.Event()
        self._begun = asyncio.Event()
        self.requests = 0
        self.answers = 0

    def lines(self) -> list[MemoryItem]:
        if not self._path.exists():
            return []
        return [_decode(line) for line in self._path.read_bytes().splitlines()]

    def ids(self) -> list[str]:
        return [item.id for item in self.lines()]

    async def store(self, session_id: str, deliveries: Sequence[Delivery]) -> None:
        self.requests += 1
        self.running += 1
        self._begun.set()
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.before and (error := self.before.pop(0)(deliveries)) is not None:
                raise error
            for delivery in deliveries:
                await in_thread(self._write, delivery)
            self._stored.set()
            if self.after and (error := self.after.pop(0)(deliveries)) is not None:
                raise error
        finally:
            self.running -= 1

    async def wait_begun(self, is_enough: Callable[[], bool]) -> None:
        """Wait for requests until there are enough of them."""
        while not is_enough():
            self._begun.clear()
            await self._begun.wait()

    async def wait_stored(self) -> None:
        """Wait until something more is stored."""
        self._stored.clear()
        with suppress(TimeoutError):  # it may have been stored before the event was cleared
            await asyncio.wait_for(self._stored.wait(), 0.1)

    def _write(self, delivery: Delivery) -> None:
        with self._lock:
            self._store(delivery)

    def _store(self, delivery: Delivery) -> None:
        item = delivery.item
        erased = item.items if isinstance(item, Withdrawal) and item.erase else ()
        if erased:
            rest = [other for other in self.lines() if other.id not in erased]
            self._path.write_bytes(b"".join(msgspec.json.encode(o) + b"\n" for o in rest))
            self._read, self._items = 0, {}
        active = self._read_new()
        if delivery.attempts and (item.id in active or isinstance(item, Withdrawal)):
            return
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, msgspec.json.encode(item) + b"\n")  # at once: a killed process tears nothing
        os.close(file)

    def active(self) -> dict[str, MemoryItem]:
        """Return what is stored and not withdrawn."""
        with self._lock:
            return dict(self._read_new())

    def _read_new(self) -> dict[str, MemoryItem]:
        """Return what is stored and not withdrawn; reads only what is new in the file."""
        if not self._path.exists():
            return {}
        with self._path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        self._read += len(new)
        for line in new.splitlines():
            item = _decode(line)
            if isinstance(item, Withdrawal):
                for ended in item.items:
                    self._items.pop(ended, None)
            else:
                self._items[item.id] = item
        return self._items

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> list[RecalledMemory]:
        if self.gate is not None:
            await self.gate.wait()
        terms = words.casefold().split()
        items = await in_thread(self.active)
        self.answers += 1
        self._begun.set()
        return [
            recalled(item, self.name)
            for item in items.values()
            if isinstance(item, Memory)
            and item.profile == scope.profile != ""
            and item.workspace in ("", scope.workspace)
            and any(term in item.text.casefold() for term in terms)
        ][:limit]

    async def context(self, scope: MemoryScope, words: str, limit: int) -> list[RecalledMemory]:
        return await self.recall(scope, words, limit)

    async def remaining(self, items: Sequence[str]) -> list[str]:
        active = await in_thread(self.active)
        return [item for item in items if item in active]

    async def close(self) -> None:
        """Do nothing: the file is closed after each write."""

    def turns(self) -> list[TurnMemory]:
        return [item for item in self.lines() if isinstance(item, TurnMemory)]


class _Refusing(list[Misbehave]):
    """Refuses every item with this word, again and again."""

    def __init__(self, word: str) -> None:
        super().__init__([self._refuse])
        self._word = word

    def pop(self, index: SupportsIndex = -1, /) -> Misbehave:
        return self[index]

    def _refuse(self, deliveries: Sequence[Delivery]) -> Exception | None:
        for delivery in deliveries:
            item = delivery.item
            if isinstance(item, Memory) and self._word in item.text:
                return ItemRefusedError(item.id, f"it is about {self._word}")
        return None


OPENED: list[Shelf] = []
"""The shelves that hosts of this process opened; the last one is open."""


def open_shelf(settings: dict[str, str]) -> Shelf:
    """Open the provider as a package's entry point does."""
    shelf = Shelf(Path(settings["path"]))
    if refused := settings.get("refuses"):
        shelf.before = _Refusing(refused)
    OPENED.append(shelf)
    return shelf
