"""Errors of SQLite and of the file system, as errors that tell a person what to do.

It owns the texts. It refuses to know what was being read or written.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import SessionDamagedError, StoreDamagedError, StoreError, StoreTooNewError
from keryx.events import LoggedEvent, decode_logged

_ADVICE: Final = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space and try again",
    sqlite3.SQLITE_READONLY: "it is read-only; make the file and its folder writable",
    sqlite3.SQLITE_BUSY: "another program holds it locked; end that program and try again",
    sqlite3.SQLITE_LOCKED: "another program holds it locked; end that program and try again",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that you may read and write its folder",
    sqlite3.SQLITE_PERM: "access is denied; check the permissions of the file",
    sqlite3.SQLITE_IOERR: "the disk reports an error; check the disk",
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
}
DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# One statement was wrong; the other statements of its transaction are still valid.
STATEMENT_ERRORS: Final = (
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
)


def damaged(path: Path, cause: str) -> StoreDamagedError:
    return StoreDamagedError(
        f"{path} is damaged ({cause}). Nothing of it was changed. Restore a backup, or save what "
        "can be read of it with `keryx sessions repair`, which keeps the damaged file too."
    )


def session_damaged(session_id: str, cause: str) -> SessionDamagedError:
    return SessionDamagedError(
        f"session {session_id} is damaged ({cause}); the other sessions work. "
        "`keryx sessions repair` saves what can be read of it, "
        f"`keryx sessions delete {session_id}` removes it"
    )


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary error code, without the extended code in the upper bits."""
    code: object = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else sqlite3.SQLITE_ERROR


def as_store_error(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    """Return the error as a `StoreError` that names the file and says what to do."""
    if isinstance(error, OSError):
        return StoreError(
            f"{path} cannot be used: {error.strerror}; check the folder's permissions"
        )
    code = primary_code(error)
    if code in DAMAGED:
        return damaged(path, str(error))
    return StoreError(f"{path} cannot be used: {_ADVICE.get(code, str(error))} ({error})")


def read_event(path: Path, session_id: str, seq: int, body: bytes) -> LoggedEvent:
    """Decode a logged event; if that fails, raise an error that names the event."""
    try:
        return decode_logged(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        place = f"event {seq} of session {session_id}"
        if "Invalid value" in str(error) and "$.type" in str(error):
            raise StoreTooNewError(
                f"{path}: {place} is of a kind that this version of Keryx does not know; "
                "update Keryx"
            ) from error
        raise session_damaged(session_id, f"event {seq} cannot be read: {error}") from error
