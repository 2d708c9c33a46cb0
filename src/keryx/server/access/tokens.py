"""Bearer tokens for programs: made, listed and revoked on the command line, stored as hashes.

A token is long and random, so a plain hash is enough. Everything here uses the disk.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import UserMustActError
from keryx.server.access.secret_file import SecretFile, Stamp

FILE: Final = "tokens.json"
PREFIX: Final = "kx_"
"""The beginning of every token, so that people and secret scanners recognise one."""
_NAME: Final = re.compile(r"[\w][\w .@-]{0,63}")


class Token(msgspec.Struct, frozen=True):
    """One token, without its secret."""

    name: str
    hash: str
    made: str
    """The day it was made on."""
    used: str | None = None
    """The last day it was used on."""
    user: str = ""
    """The named user whose sessions it reaches; empty: the owner's."""


class _Content(msgspec.Struct, frozen=True):
    tokens: tuple[Token, ...] = ()


def hashed(secret: str) -> str:
    """Return the hash under which a random secret is stored."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


def today() -> str:
    return time.strftime("%Y-%m-%d")


class Tokens:
    """The tokens of a home."""

    def __init__(self, home: Path) -> None:
        self._file = SecretFile(home / FILE, _Content, _Content)

    def make(self, name: str, user: str = "") -> str:
        """Make a token and return its secret, which is not stored."""
        if not _NAME.fullmatch(name):
            raise UserMustActError(
                "a token's name may have at most 64 letters, digits, spaces and . @ - _, "
                "and must begin with a letter or digit; choose another name"
            )
        secret = PREFIX + secrets.token_urlsafe(32)

        def add(content: _Content) -> _Content:
            if any(token.name == name for token in content.tokens):
                raise UserMustActError(
                    f"there is a token {name!r} already; choose another name, or revoke it first"
                )
            return _Content((*content.tokens, Token(name, hashed(secret), today(), user=user)))

        self._file.change(add)
        return secret

    def all(self) -> tuple[Token, ...]:
        return self._file.read().tokens

    def revoke(self, name: str) -> bool:
        """Remove the token; return False if there was none."""
        removed: list[Token] = []

        def remove(content: _Content) -> _Content:
            removed.extend(token for token in content.tokens if token.name == name)
            return _Content(tuple(token for token in content.tokens if token.name != name))

        self._file.change(remove)
        return bool(removed)

    def note_used(self, hash_: str, day: str) -> None:
        """Store the day of the last use; `keryx tokens list` shows it."""

        def note(content: _Content) -> _Content:
            return _Content(
                tuple(
                    msgspec.structs.replace(token, used=day) if token.hash == hash_ else token
                    for token in content.tokens
                )
            )

        self._file.change(note)

    def stamp(self) -> Stamp | None:
        """Return a value that differs after each change."""
        return self._file.stamp()
