"""The password of a home: stored so that its file does not tell it, and slow to try."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import UserMustActError
from keryx.server.access.secret_file import SecretFile

FILE: Final = "password.json"
SHORTEST: Final = 8
LONGEST: Final = 1_000
# 32 MB and about a tenth of a second for each try.
_COST: Final = 2**15
_BLOCK: Final = 8
_MEMORY: Final = 64 * 1024 * 1024


class _Held(msgspec.Struct, frozen=True):
    salt: str = ""
    hash: str = ""
    cost: int = _COST


class Password:
    """Asks the disk, and takes its time: use a thread."""

    def __init__(self, home: Path) -> None:
        self._cabinet = SecretFile(home / FILE, _Held, _Held)
        self._held = _Held()

    def load(self, given: str | None) -> bool:
        """Take the one that is given now, or was before; False: there is none."""
        if given is None:
            self._held = self._cabinet.read()
        else:
            if not SHORTEST <= len(given) <= LONGEST:
                raise UserMustActError(
                    f"a password has {SHORTEST} to {LONGEST} characters; choose another one"
                )
            salt = secrets.token_bytes(16)
            made = _Held(salt.hex(), _derived(given, salt, _COST).hex())
            self._held = self._cabinet.change(lambda _: made)
        return bool(self._held.hash)

    @property
    def is_set(self) -> bool:
        return bool(self._held.hash)

    def fits(self, given: str) -> bool:
        held = self._held
        if not held.hash or len(given) > LONGEST:
            return False
        derived = _derived(given, bytes.fromhex(held.salt), held.cost)
        return hmac.compare_digest(derived, bytes.fromhex(held.hash))


def _derived(text: str, salt: bytes, cost: int) -> bytes:
    return hashlib.scrypt(text.encode(), salt=salt, n=cost, r=_BLOCK, p=1, maxmem=_MEMORY)
