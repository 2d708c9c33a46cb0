"""Opening the file: the checks before anything is written, and the settings of connections.

Blocking code. A file that is damaged, too new or another program's is refused before anything is
written to it. It refuses to know what is in the tables.
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
"""normal: commits survive the death of the process. full: they survive a loss of power too."""

# How long to wait for a lock of another process. All writes wait meanwhile, so not long.
LOCK_TIMEOUT: Final = 1.0
# If two processes set up a new file, SQLite reports "locked" at once and does not wait by itself.
_LOCK_PAUSE: Final = 0.01
# To check a whole file takes 1 ms per 1.5 MB; damage in larger files is noticed when they are read.
FULL_CHECK_SIZE: Final = 32 * 1024 * 1024

# The size at which a commit writes the write-ahead log back. Four times SQLite's default: pages
# that change with every commit are written back a quarter as often.
LOG_PAGES: Final = 4000

# An eighth of SQLite's default, in kilobytes: the system has the file in memory anyway, and a host
# must not grow with what has passed through it.
SMALL_CACHE: Final = "PRAGMA cache_size = -256"

_CANNOT_SHARE: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

_Access = Literal["mode=rw", "mode=ro", "mode=ro&immutable=1"]


def open_for_writing(path: Path, durability: Durability) -> sqlite3.Connection:
    """Return the one connection that writes; create or migrate the file if needed."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            _create_file(path)
            if path.stat().st_size:
                _check_file(path)
            return _connect_writer(path, durability)
        except sqlite3.Error as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise as_store_error(path, error) from error
        except OSError as error:
            raise as_store_error(path, error) from error
        threading.Event().wait(_LOCK_PAUSE)


def check_for_reading(path: Path) -> None:
    """Raise `StoreError` if this version cannot read the file without changing it."""
    try:
        if not path.is_file():
            raise StoreError(f"there is no store at {path}")
        version = _check_file(path)
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
    """Return a connection that cannot write."""
    connection = _connect(path, "mode=ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
        connection.execute(SMALL_CACHE)
    except sqlite3.Error as error:
        connection.close()
        if primary_code(error) not in _CANNOT_SHARE or _log_of(path).exists():
            raise
        # In a read-only folder SQLite cannot create the files that it shares with writers.
        # There is no write-ahead log, so there is no writer.
        return _connect(path, "mode=ro&immutable=1")
    return connection


def close_unchanged(path: Path, connection: sqlite3.Connection) -> None:
    """Close the connection and leave the file as it is, without the usual checkpoint."""
    # Only the last connection that closes does a checkpoint, and a reader cannot do one.
    with suppress(sqlite3.Error), closing(_connect(path, "mode=ro")) as reader:
        with suppress(sqlite3.Error):
            reader.execute("SELECT 1 FROM sqlite_schema").fetchone()
        connection.close()
    connection.close()


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _create_file(path: Path) -> None:
    if path.is_dir():
        raise StoreError(f"{path} is a folder; the store needs a file")
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    # An existing file is never opened here: to close it would drop the locks of this process on it.
    with suppress(FileExistsError):
        path.touch(mode=0o600, exist_ok=False)


def _check_file(path: Path) -> int:
    with closing(open_for_reading(path)) as connection:
        version = version_of(connection, path)
        if path.stat().st_size <= FULL_CHECK_SIZE:
            (report,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if report != "ok":
                raise damaged(path, " ".join(str(report).split()))
        return version


def _connect(path: Path, access: _Access) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{access}",
        uri=True,
        timeout=LOCK_TIMEOUT,
        isolation_level=None,
        # Different threads use it, but never two at the same time.
        check_same_thread=False,
    )


def _connect_writer(path: Path, durability: Durability) -> sqlite3.Connection:
    connection = _connect(path, "mode=rw")
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute(f"PRAGMA synchronous = {durability.upper()}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}").fetchone()
        connection.execute("PRAGMA secure_delete = ON").fetchone()
        connection.execute(SMALL_CACHE)
        migrate(connection, path)
        # SQLite opens a read-only file without an error and reports it only at the first change.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except BaseException:
        connection.close()
        raise
    return connection
