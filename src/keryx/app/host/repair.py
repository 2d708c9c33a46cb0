"""A damaged store is replaced by what can be read of it; the damaged one is kept beside it."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from keryx.app.host.home import STORE, Home, HomeTakenError
from keryx.errors import UserMustActError
from keryx.store.sqlite.recovery.health import damage_of
from keryx.store.sqlite.recovery.salvage import Salvaged, salvage

SEARCH = "search.db"
"""The index of what was said; made anew from the store."""
_COMPANIONS = ("", "-wal", "-shm")


class Repaired(msgspec.Struct, frozen=True):
    """What was saved, and where the damaged store is now."""

    salvaged: Salvaged
    kept: Path


def repair(home: Path) -> Repaired | None:
    """Blocking. None: the store is whole, and was left alone.

    `UserMustActError` if a host owns the home, or if there is no store.
    """
    taken = Home.take(home)
    if not isinstance(taken, Home):
        raise HomeTakenError(
            f"another Keryx (process {taken.pid}) owns the home {home}; stop it before a repair"
        )
    if taken.guests:
        taken.release()
        raise HomeTakenError(
            f"a program (process {taken.guests[0].pid}) uses the home {home}; "
            "stop it before a repair"
        )
    try:
        store, made = home / STORE, home / f"{STORE}.repaired"
        if not store.exists():
            raise UserMustActError(f"there is no store in {home}; nothing is to be repaired")
        if damage_of(store) is None:
            return None
        _remove(made)  # of a repair that was cut short
        salvaged = salvage(store, made)
        kept = home / time.strftime(f"{STORE}.damaged-%Y%m%d-%H%M%S")
        for suffix in _COMPANIONS:
            if (found := Path(f"{store}{suffix}")).exists():
                found.rename(f"{kept}{suffix}")
        made.rename(store)
        _remove(home / SEARCH)
        return Repaired(salvaged, kept)
    finally:
        taken.release()


def _remove(path: Path) -> None:
    for suffix in _COMPANIONS:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
