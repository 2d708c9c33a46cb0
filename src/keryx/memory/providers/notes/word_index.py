"""Searches the memories of some files by their words, ranked as everywhere in Keryx. Blocking."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing

from keryx.memory import memories
from keryx.memory.memory_file import create_tables
from keryx.ports.memory import Memory

Query = Callable[[sqlite3.Connection], list[Memory]]


def search(entries: Iterable[Memory], query: Query) -> list[Memory]:
    """Run a query of `keryx.memory.memories` over these memories."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create_tables(connection)
        connection.execute("BEGIN")
        for memory in entries:
            memories.add(connection, memory, operation=memory.id)
        return query(connection)
