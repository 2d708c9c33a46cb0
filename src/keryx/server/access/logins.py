"""Who is logged in: random ids in cookies, known by their hashes, also after a restart."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from keryx.aio.bridge import Bridge
from keryx.aio.clock import Clock
from keryx.server.access.secret_file import SecretFile
from keryx.server.access.tokens import hashed

FILE: Final = "logins.json"
LASTS: Final = 30 * 24 * 3600
"""Seconds that a login lasts."""
MOST: Final = 1_000
"""Logins at the same time; the oldest make room."""


class _Held(msgspec.Struct, frozen=True):
    expires: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """By the hash of the id: when the login ends, by the wall clock."""


class Logins:
    """The logins of a home. Belongs to one loop, asks the disk in threads."""

    def __init__(self, home: Path, threads: Bridge, clock: Clock) -> None:
        self._cabinet = SecretFile(home / FILE, _Held, _Held)
        self._threads = threads
        self._clock = clock
        self._expires: dict[str, float] = {}

    async def load(self) -> None:
        self._expires = dict((await self._threads.to_thread(self._cabinet.read)).expires)

    async def begin(self) -> str:
        """A new login, durable; the value for the cookie."""
        secret = secrets.token_urlsafe(32)
        name, until = hashed(secret), self._clock.wall() + LASTS
        await self._change(lambda expires: expires | {name: until})
        return secret

    async def end(self, name: str) -> None:
        """That login counts no more."""
        self._expires.pop(name, None)
        await self._change(
            lambda expires: {each: until for each, until in expires.items() if each != name}
        )

    def find(self, secret: str) -> str | None:
        """The name of the login that this cookie stands for, if it still counts."""
        name = hashed(secret)
        return name if self.counts(name) else None

    def counts(self, name: str) -> bool:
        return self._expires.get(name, 0.0) > self._clock.wall()

    async def _change(self, change: Callable[[dict[str, float]], dict[str, float]]) -> None:
        now = self._clock.wall()

        def work(held: _Held) -> _Held:
            left = {name: until for name, until in change(held.expires).items() if until > now}
            newest = sorted(left.items(), key=lambda each: each[1])[-MOST:]
            return _Held(dict(newest))

        held = await self._threads.to_thread(self._cabinet.change, work)
        self._expires = dict(held.expires)
