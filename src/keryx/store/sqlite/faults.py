"""What SQLite and the file system refuse, said so that a person knows what to do.

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
# These say that one statement was wrong, so the others of its transaction are none the worse.
OF_ONE_STATEMENT: Final = (
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
)


def damaged(path: Path, why: str) -> StoreDamagedError:
    return StoreDamagedError(
        f"{path} is damaged ({why}). Nothing of it was changed. Restore a backup, or save what "
        "can be read of it with `keryx sessions repair`, which keeps the damaged file too."
    )


def session_damaged(session_id: str, why: str) -> SessionDamagedError:
    return SessionDamagedError(
        f"session {session_id} is damaged ({why}); the other sessions work. "
        "`keryx sessions repair` saves what can be read of it, "
        f"`keryx sessions delete {session_id}` removes it"
    )


def primary_code(error: sqlite3.Error) -> int:
    """Which of SQLite's errors it is; the codes of its own are in the upper bits."""
    code: object = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else sqlite3.SQLITE_ERROR


def as_store_error(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    """The same, as an error that names the file and says what to do."""
    if isinstance(error, OSError):
        return StoreError(
            f"{path} cannot be used: {error.strerror}; check the folder's permissions"
        )
    code = primary_code(error)
    if code in DAMAGED:
        return damaged(path, str(error))
    return StoreError(f"{path} cannot be used: {_ADVICE.get(code, str(error))} ({error})")


def read_event(path: Path, session_id: str, seq: int, body: bytes) -> LoggedEvent:
    """Decode a fact that was logged; what cannot be read is named."""
    try:
        return decode_logged(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        where = f"event {seq} of session {session_id}"
        if "Invalid value" in str(error) and "$.type" in str(error):
            raise StoreTooNewError(
                f"{path}: {where} is of a kind that this version of Keryx does not know; "
                "update Keryx"
            ) from error
        raise session_damaged(session_id, f"event {seq} cannot be read: {error}") from error
