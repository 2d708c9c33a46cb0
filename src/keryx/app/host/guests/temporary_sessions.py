"""Sessions that live no longer than the process that made them, such as those of `keryx exec`.

A lock of the kernel is the process's sign of life: it is gone with it, however it ended. Whoever
takes the home next deletes the sessions whose locks nobody holds. A host that goes on learns of the
end from the connection. It refuses to know what the sessions are for.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from keryx.aio.bridge import Bridge
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app.host.home import keep_from_forks, let_go_of
from keryx.app.host.remote_host import RemoteHost
from keryx.ports.store import Store

FOLDER: Final = "temporary"
_NEW: Final = ".new"
"""How the name of a lock ends that nobody holds yet."""


class Lease:
    """The lock of one session. All of it is for threads."""

    def __init__(self, file: Path, lock: int) -> None:
        self._file = file
        self._lock = keep_from_forks(lock)

    @classmethod
    def take(cls, home: Path, session_id: str) -> Lease:
        folder = home / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        new = folder / f"{session_id}{_NEW}"
        lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Locked before it has its name: whoever finds it unlocked finds its process dead.
        return cls(new.rename(folder / session_id), lock)

    def end(self) -> None:
        self._file.unlink(missing_ok=True)
        let_go_of(self._lock)


class Sessions(Protocol):
    """The way to the sessions of a home."""

    async def hold(self, session_id: str) -> None: ...

    async def delete(self, session_id: str) -> bool: ...


@asynccontextmanager
async def temporary(sessions: Sessions, home: Path, session_id: str) -> AsyncGenerator[None]:
    """Delete the session at the end, or have it deleted if this process does not come so far."""
    scope = Scope("temporary")
    bridge, group = Bridge(scope), Group(scope)
    try:
        lease = await bridge.to_thread(Lease.take, home, session_id)
        group.start(sessions.hold(session_id), name=f"hold {session_id}")
        try:
            yield
        finally:
            await sessions.delete(session_id)
            await bridge.to_thread(lease.end)
    finally:
        await group.leave()
        await bridge.close()
        scope.close()


async def hold(host: object, session_id: str) -> None:
    """A host in this process ends with it, and needs no word."""
    if isinstance(host, RemoteHost):
        await host.hold(session_id)


async def sweep(home: Path, store: Store, bridge: Bridge) -> None:
    """Delete what processes left that are gone. Only the owner of the home may, before it leads."""
    for file in await bridge.to_thread(_abandoned, home / FOLDER):
        await store.delete(file.name.removesuffix(_NEW))
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
