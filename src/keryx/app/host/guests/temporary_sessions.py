"""Temporary sessions: deleted when the process that made them ends, such as those of `keryx exec`.

A file lock shows that the process is alive: the kernel releases it when the process ends. The next
owner of the home deletes the sessions whose locks are free. A host that keeps running learns of the
end when the connection closes. This module does not know what the sessions are for.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from keryx.aio.acquire import acquire, release
from keryx.aio.bridge import Bridge
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app.host.homes.home import close_in_forks, close_lock
from keryx.app.host.remote_host import RemoteHost

FOLDER: Final = "temporary"
_NEW: Final = ".new"
"""The suffix of a lock file until its lock is held."""


class Lease:
    """The lock of one session. All methods are blocking: use a thread."""

    def __init__(self, file: Path, lock: int) -> None:
        self._file = file
        self._lock = close_in_forks(lock)

    @classmethod
    def take(cls, home: Path, session_id: str) -> Lease:
        folder = home / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        new = folder / f"{session_id}{_NEW}"
        lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Locked before it gets its name: if the lock is free, the process is dead.
        return cls(new.rename(folder / session_id), lock)

    def end(self) -> None:
        self._file.unlink(missing_ok=True)
        close_lock(self._lock)


class Deletes(Protocol):
    """Deletes sessions."""

    async def delete(self, session_id: str, *, keep_memory: bool) -> bool: ...


class Sessions(Deletes, Protocol):
    """The requests to the host of a home that temporary sessions need."""

    async def delete_on_disconnect(self, session_id: str) -> None: ...


@asynccontextmanager
async def temporary(sessions: Sessions, home: Path, session_id: str) -> AsyncGenerator[None]:
    """Delete the session at the end of the block; the host deletes it if this process dies."""
    scope = Scope("temporary")
    bridge, group = Bridge(scope), Group(scope)
    try:
        lease = await acquire(bridge, partial(Lease.take, home, session_id), Lease.end)
        group.start(sessions.delete_on_disconnect(session_id), name=f"hold {session_id}")
        try:
            yield
        finally:
            # What its calls remembered was accepted: it does not end with the session.
            await sessions.delete(session_id, keep_memory=True)
            await release(bridge, lease.end)
    finally:
        await group.leave()
        await bridge.close()
        scope.close()


async def delete_on_disconnect(host: object, session_id: str) -> None:
    """Ask a host in another process. A host in this process ends with it: nothing is to be done."""
    if isinstance(host, RemoteHost):
        await host.delete_on_disconnect(session_id)


async def abandoned_leases(home: Path, bridge: Bridge) -> dict[str, Path]:
    """Return the sessions of dead processes, with the files to remove once they are deleted.

    Only for a new owner, before it takes connections: a lock file that is new is not locked yet.
    """
    files = await bridge.to_thread(_abandoned, home / FOLDER)
    return {file.name.removesuffix(_NEW): file for file in files}


async def delete_abandoned(host: Deletes, leases: Mapping[str, Path], bridge: Bridge) -> None:
    """Delete the sessions of dead processes; what they remembered stays."""
    for session_id, file in leases.items():
        await host.delete(session_id, keep_memory=True)
        await bridge.to_thread(file.unlink, True)


def _abandoned(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if _is_free(file)]
    except FileNotFoundError:
        return []


def _is_free(file: Path) -> bool:
    with suppress(OSError):
        lock = os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(lock)
        return True
    return False
