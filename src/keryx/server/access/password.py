"""The password of a home, stored as a salted hash that is slow to compute."""

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
# 32 MB and about a tenth of a second per check.
_COST: Final = 2**15
_BLOCK: Final = 8
_MEMORY: Final = 64 * 1024 * 1024


class _Content(msgspec.Struct, frozen=True):
    salt: str = ""
    hash: str = ""
    cost: int = _COST


class Password:
    """The password of a home. It uses the disk and is slow: call it in a thread."""

    def __init__(self, home: Path) -> None:
        self._file = SecretFile(home / FILE, _Content, _Content)
        self._content = _Content()

    def load(self, password: str | None) -> bool:
        """Set this password, or read the stored one; return whether there is one."""
        if password is None:
            self._content = self._file.read()
        else:
            check_length(password)
            salt = secrets.token_bytes(16)
            content = _Content(salt.hex(), derived(password, salt, _COST).hex())
            self._content = self._file.change(lambda _: content)
        return bool(self._content.hash)

    @property
    def is_set(self) -> bool:
        return bool(self._content.hash)

    def matches(self, password: str) -> bool:
        content = self._content
        if not content.hash or len(password) > LONGEST:
            return False
        result = derived(password, bytes.fromhex(content.salt), content.cost)
        return hmac.compare_digest(result, bytes.fromhex(content.hash))


def check_length(password: str) -> None:
    """Raise `UserMustActError` if the password is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise UserMustActError(
            f"a password must have {SHORTEST} to {LONGEST} characters; choose another one"
        )


def derived(text: str, salt: bytes, cost: int) -> bytes:
    """Return the slow hash of a password."""
    return hashlib.scrypt(text.encode(), salt=salt, n=cost, r=_BLOCK, p=1, maxmem=_MEMORY)
