"""The logins of browsers: random ids in cookies, stored as hashes, valid after a restart too."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
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
"""Logins at the same time; the oldest are dropped."""


class _Content(msgspec.Struct, frozen=True):
    expires: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """When a login ends (wall clock), by the hash of its id."""
    users: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Whose login it is, by the hash of its id; no entry: the owner's."""


class Logins:
    """The logins of a home. Belongs to one loop; uses the disk in threads."""

    def __init__(self, home: Path, threads: Bridge, clock: Clock) -> None:
        self._file = SecretFile(home / FILE, _Content, _Content)
        self._threads = threads
        self._clock = clock
        self._content = _Content()

    async def load(self) -> None:
        self._content = await self._threads.to_thread(self._file.read)

    async def begin(self, user: str = "") -> str:
        """Store a new login and return the value for its cookie."""
        secret = secrets.token_urlsafe(32)
        name, until = hashed(secret), self._clock.wall() + LASTS
        await self._change(lambda expires: expires | {name: until}, {name: user} if user else {})
        return secret

    async def end(self, name: str) -> None:
        """End that login."""
        self._content.expires.pop(name, None)
        await self._change(
            lambda expires: {other: until for other, until in expires.items() if other != name}
        )

    def find(self, secret: str) -> str | None:
        """Return the name of the login with this cookie, if it is still valid."""
        name = hashed(secret)
        return name if self.is_valid(name) else None

    def is_valid(self, name: str) -> bool:
        return self._content.expires.get(name, 0.0) > self._clock.wall()

    def user_of(self, name: str) -> str:
        """Return whose login this is; empty: the owner's."""
        return self._content.users.get(name, "")

    def began_at(self, name: str) -> float:
        return self._content.expires.get(name, 0.0) - LASTS

    async def _change(
        self,
        change: Callable[[dict[str, float]], dict[str, float]],
        new_users: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        now = self._clock.wall()

        def work(content: _Content) -> _Content:
            valid = {name: until for name, until in change(content.expires).items() if until > now}
            newest = dict(sorted(valid.items(), key=lambda login: login[1])[-MOST:])
            users = {**content.users, **new_users}
            return _Content(newest, {login: users[login] for login in newest if login in users})

        self._content = await self._threads.to_thread(self._file.change, work)
