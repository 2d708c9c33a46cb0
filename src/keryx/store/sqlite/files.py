"""Opening the file: what is looked at before it is touched, and how connections are set up.

Blocking code. A file that is damaged, too new or another program's is refused before anything of
it is written. It refuses to know what is in the tables.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, Literal

from keryx.errors import StoreError
from keryx.store.sqlite.faults import as_store_error, damaged, primary_code
from keryx.store.sqlite.migrations import MIGRATIONS, migrate, version_of

Durability = Literal["normal", "full"]
"""normal: survives the death of the process. full: survives the loss of power too."""

# How long a lock of another process is waited for. It holds back all that is written, so not long.
LOCK_PATIENCE: Final = 1.0
# Two processes that both turn a new file into a store are told "locked" at once, without a wait.
_LOCK_PAUSE: Final = 0.01
# Looking through a whole file takes 1 ms per 1.5 MB; larger ones tell of damage when they are read.
LOOK_THROUGH: Final = 32 * 1024 * 1024

# When the write-ahead log is written back, by the commit that fills it. Four times SQLite's own
# choice: pages that change with every commit are then written back a quarter as often.
LOG_PAGES: Final = 4000

_CANNOT_SHARE: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

_Access = Literal["mode=rw", "mode=ro", "mode=ro&immutable=1"]


def open_for_writing(path: Path, durability: Durability) -> sqlite3.Connection:
    """The one connection that writes, to a file that exists and is up to date."""
    until = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            _make_file(path)
            if path.stat().st_size:
                _look_at(path)
            return _connect_writer(path, durability)
        except sqlite3.Error as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise as_store_error(path, error) from error
        except OSError as error:
            raise as_store_error(path, error) from error
        threading.Event().wait(_LOCK_PAUSE)


def check_for_reading(path: Path) -> None:
    """Refuse what cannot be read by this version without changing it."""
    try:
        if not path.is_file():
            raise StoreError(f"there is no store at {path}")
        version = _look_at(path)
    except sqlite3.Error as error:
        raise as_store_error(path, error) from error
    except OSError as error:
        raise as_store_error(path, error) from error
    if version < len(MIGRATIONS):
        raise StoreError(
            f"{path} has version {version} and must be brought to {len(MIGRATIONS)} first: "
            "open it once for writing"
        )


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    connection = _connect(path, "mode=ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except sqlite3.Error as error:
        connection.close()
        if primary_code(error) not in _CANNOT_SHARE or _log_of(path).exists():
            raise
        # In a folder that is not writable SQLite cannot make the files that it shares with writers.
        # There is no writer's log, so there is no writer.
        return _connect(path, "mode=ro&immutable=1")
    return connection


def close_unchanged(path: Path, connection: sqlite3.Connection) -> None:
    """Close without the usual tidying up, for a file that must stay as it is."""
    # Only the last to close tidies up, and a reader cannot.
    with suppress(sqlite3.Error), closing(_connect(path, "mode=ro")) as last:
        with suppress(sqlite3.Error):
            last.execute("SELECT 1 FROM sqlite_schema").fetchone()
        connection.close()
    connection.close()


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _make_file(path: Path) -> None:
    if path.is_dir():
        raise StoreError(f"{path} is a folder; the store needs a file")
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    # Never opened if it is there: closing it would drop the locks that this process holds on it.
    with suppress(FileExistsError):
        path.touch(mode=0o600, exist_ok=False)


def _look_at(path: Path) -> int:
    with closing(open_for_reading(path)) as connection:
        version = version_of(connection, path)
        if path.stat().st_size <= LOOK_THROUGH:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise damaged(path, " ".join(str(found).split()))
        return version


def _connect(path: Path, access: _Access) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{access}",
        uri=True,
        timeout=LOCK_PATIENCE,
        isolation_level=None,
        # Threads change from one use to the next; there is never more than one use at a time.
        check_same_thread=False,
    )


def _connect_writer(path: Path, durability: Durability) -> sqlite3.Connection:
    connection = _connect(path, "mode=rw")
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute(f"PRAGMA synchronous = {durability.upper()}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}").fetchone()
        connection.execute("PRAGMA secure_delete = ON").fetchone()
        migrate(connection, path)
        # SQLite opens what it may not write for reading, and says so only at the first change.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except BaseException:
        connection.close()
        raise
    return connection
