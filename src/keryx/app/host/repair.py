"""Replaces a damaged store by a new one with all readable data, and keeps the damaged file."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from keryx.app.host.homes.home import STORE, Home, HomeTakenError
from keryx.errors import UserMustActError
from keryx.store.sqlite.recovery.health import damage_of
from keryx.store.sqlite.recovery.salvage import Salvaged, salvage

SEARCH = "search.db"
"""The search index; built again from the store."""
_COMPANIONS = ("", "-wal", "-shm")


class Repaired(msgspec.Struct, frozen=True):
    """What was salvaged, and where the damaged store is now."""

    salvaged: Salvaged
    damaged: Path


def repair(home: Path) -> Repaired | None:
    """Repair the store of a home. Blocking. None: the store is not damaged, and was not touched.

    `UserMustActError` if a host owns the home, or if there is no store.
    """
    owned = Home.take(home)
    if not isinstance(owned, Home):
        raise HomeTakenError(
            f"another Keryx (process {owned.pid}) owns the home {home}; stop it before a repair"
        )
    if owned.guests:
        owned.release()
        raise HomeTakenError(
            f"a program (process {owned.guests[0].pid}) uses the home {home}; "
            "stop it before a repair"
        )
    try:
        store, repaired = home / STORE, home / f"{STORE}.repaired"
        if not store.exists():
            raise UserMustActError(f"there is no store in {home}, so there is nothing to repair")
        if damage_of(store) is None:
            return None
        _remove(repaired)  # left by a repair that was interrupted
        salvaged = salvage(store, repaired)
        damaged = home / time.strftime(f"{STORE}.damaged-%Y%m%d-%H%M%S")
        for suffix in _COMPANIONS:
            if (file := Path(f"{store}{suffix}")).exists():
                file.rename(f"{damaged}{suffix}")
        repaired.rename(store)
        _remove(home / SEARCH)
        return Repaired(salvaged, damaged)
    finally:
        owned.release()


def _remove(path: Path) -> None:
    for suffix in _COMPANIONS:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
