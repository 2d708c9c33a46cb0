"""The store in one SQLite file."""

from keryx.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
