"""Bearer tokens for programs: made, listed and revoked from the command line, stored hashed.

A token is random and long, so a plain hash of it tells nothing. Everything here asks the disk.
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
"""What every token begins with, so that people and scanners of secrets know one by sight."""
_NAME: Final = re.compile(r"[\w][\w .@-]{0,63}")


class Token(msgspec.Struct, frozen=True):
    """One token, without its secret."""

    name: str
    hash: str
    made: str
    """The day it was made on."""
    used: str | None = None
    """The last day it was used on."""


class _Held(msgspec.Struct, frozen=True):
    tokens: tuple[Token, ...] = ()


def hashed(secret: str) -> str:
    """How a secret is stored that nobody can guess."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


def today() -> str:
    return time.strftime("%Y-%m-%d")


class Tokens:
    """The tokens of a home."""

    def __init__(self, home: Path) -> None:
        self._cabinet = SecretFile(home / FILE, _Held, _Held)

    def make(self, name: str) -> str:
        """A new token; its secret is told once and kept nowhere."""
        if not _NAME.fullmatch(name):
            raise UserMustActError(
                "a token's name has at most 64 letters, digits, spaces and . @ - _, "
                "and begins with a letter or digit"
            )
        secret = PREFIX + secrets.token_urlsafe(32)

        def add(held: _Held) -> _Held:
            if any(token.name == name for token in held.tokens):
                raise UserMustActError(
                    f"there is a token {name!r} already; choose another name, or revoke it first"
                )
            return _Held((*held.tokens, Token(name, hashed(secret), today())))

        self._cabinet.change(add)
        return secret

    def all(self) -> tuple[Token, ...]:
        return self._cabinet.read().tokens

    def revoke(self, name: str) -> bool:
        """Nobody gets in with it any more. False: there was none."""
        found: list[Token] = []

        def remove(held: _Held) -> _Held:
            found.extend(token for token in held.tokens if token.name == name)
            return _Held(tuple(token for token in held.tokens if token.name != name))

        self._cabinet.change(remove)
        return bool(found)

    def note_used(self, hash_: str, day: str) -> None:
        """Remember the day, for people who wonder which tokens they still need."""

        def note(held: _Held) -> _Held:
            return _Held(
                tuple(
                    msgspec.structs.replace(token, used=day) if token.hash == hash_ else token
                    for token in held.tokens
                )
            )

        self._cabinet.change(note)

    def stamp(self) -> Stamp | None:
        """Another one after each change."""
        return self._cabinet.stamp()
