"""Checks whether a store is damaged: it reads every page and every event, and changes nothing.

Blocking code; nobody may write to the store meanwhile.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import groupby
from pathlib import Path

from keryx.errors import StoreDamagedError
from keryx.store.sqlite.faults import as_store_error, damaged, read_event
from keryx.store.sqlite.files import open_for_reading
from keryx.store.sqlite.migrations import version_of


def damage_of(path: Path) -> StoreDamagedError | None:
    """Return what is wrong with the store, or None.

    Raise `StoreError` if it cannot be checked: locked, of another program or of a newer version.
    """
    try:
        with closing(open_for_reading(path)) as connection:
            if version_of(connection, path) > 0:
                _check_pages(connection, path)
                _check_events(connection, path)
    except StoreDamagedError as error:
        return error
    except sqlite3.Error as error:
        reason = as_store_error(path, error)
        if isinstance(reason, StoreDamagedError):
            return reason
        raise reason from error
    return None


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    (report,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if report != "ok":
        raise damaged(path, " ".join(str(report).split()))


def _check_events(connection: sqlite3.Connection, path: Path) -> None:
    counts = dict(connection.execute("SELECT session_id, last_seq FROM sessions"))
    rows = connection.execute(
        "SELECT coalesce(session_id, ''), seq, body FROM events LEFT JOIN sessions USING (no)"
        " ORDER BY no, seq"
    )
    for session_id, events in groupby(rows, key=lambda row: str(row[0])):
        last = 0
        for last, (_, seq, body) in enumerate(events, 1):
            if seq != last:
                raise damaged(path, f"event {last} of session {session_id} is missing")
            read_event(path, session_id, seq, body)
        if last != counts.pop(session_id, None):
            raise damaged(path, f"session {session_id} has {last} events, which is not all of them")
    for session_id, last in counts.items():
        if last:
            raise damaged(path, f"session {session_id} has no events")
