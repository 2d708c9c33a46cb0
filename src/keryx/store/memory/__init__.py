"""The store in plain tables of one process."""

from keryx.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
