"""Authenticates requests: a program by its token, a person by the cookie of a login.

Secrets are random, stored as hashes and compared in constant time.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from keryx.aio.bridge import Bridge
from keryx.aio.clock import Clock
from keryx.config import Config
from keryx.config.users import UserRecord
from keryx.errors import UserMustActError
from keryx.server.access.login_link import Link
from keryx.server.access.logins import Logins
from keryx.server.access.password import Password
from keryx.server.access.rate_limit import RateLimit
from keryx.server.access.tokens import Token, Tokens, hashed, today
from keryx.server.access.users import Users
from keryx.server.problems import ProblemError

COOKIE: Final = "keryx_login"
BEARER: Final = "bearer "
# Seconds for which a revoked token may still work: the file is checked this often.
CHECK_INTERVAL: Final = 1.0
# Password checks at the same time: each takes a thread, 32 MB and a tenth of a second.
MOST_AT_ONCE: Final = 4


class Caller(msgspec.Struct, frozen=True):
    """The sender of a request."""

    name: str
    """The `by` of its commands."""
    kind: Literal["person", "program"]
    hash: str
    """The hash of its token or login."""
    user: str = ""
    """The named user; empty: the owner of the home, who administers it."""

    @property
    def where(self) -> str:
        return "web" if self.kind == "person" else "api"


class Access:
    """Authenticates people and programs. Belongs to one loop; call `load` first."""

    def __init__(self, config: Config, threads: Bridge, clock: Clock) -> None:
        self._threads = threads
        self._clock = clock
        self._logins = Logins(config.home, threads, clock)
        self._password = Password(config.home)
        self._env_password = config.environment.get("KERYX_PASSWORD") or None
        self._tokens = Tokens(config.home)
        self._tokens_by_hash: dict[str, Token] = {}
        self._users = Users(config.settings_home)
        self._users_by_name: dict[str, UserRecord] = {}
        self._stamps: tuple[object, object] = (None, None)
        self._checked_at = -math.inf
        self._link = Link(clock)
        self._attempts = RateLimit(clock)
        self.share_attempts = RateLimit(clock)
        """Attempts to open links to shared sessions."""
        self._trying = 0

    async def load(self, password: str | None = None) -> None:
        await self._logins.load()
        await self._threads.to_thread(self._password.load, password or self._env_password)
        await self._read_files()

    async def reload(self) -> None:
        """Read the tokens and users again, because this process changed them."""
        await self._read_files()

    def wall(self) -> float:
        return self._clock.wall()

    @property
    def users(self) -> Mapping[str, UserRecord]:
        """The named users, as of the last check."""
        return self._users_by_name

    @property
    def has_password(self) -> bool:
        return self._password.is_set

    @property
    def once(self) -> str:
        """Return the token that logs one browser in."""
        return self._link.token

    # -- requests

    async def caller(self, authorization: str | None, cookies: str | None) -> Caller | None:
        """Return the sender of these headers, if any. A token, even a wrong one, beats a cookie."""
        if authorization is not None:
            return await self._program(authorization)
        secret = _cookie(cookies or "")
        login = None if secret is None else self._logins.find(secret)
        if login is None:
            return None
        self._link.login_used(login)
        user = self._logins.user_of(login)
        caller = Caller(user or "person", "person", login, user)
        if user:
            await self.refresh()
        return caller if self.is_valid(caller) else None

    def is_valid(self, caller: Caller) -> bool:
        """Return whether its token or login still counts; for connections that stay open."""
        if caller.kind == "person":
            is_valid = self._logins.is_valid(caller.hash)
        else:
            is_valid = caller.hash in self._tokens_by_hash
        return is_valid and (not caller.user or self._may_use(caller))

    def _may_use(self, caller: Caller) -> bool:
        """Return whether this named user exists, is not disabled, and was not signed out."""
        user = self._users_by_name.get(caller.user)
        if user is None or user.disabled:
            return False
        return caller.kind == "program" or self._logins.began_at(caller.hash) >= user.signed_out_at

    async def refresh(self) -> None:
        """Read the tokens and users again if the last check is too old."""
        if self._clock.monotonic() - self._checked_at >= CHECK_INTERVAL:
            await self._read_files()

    async def _program(self, authorization: str) -> Caller | None:
        if not authorization.lower().startswith(BEARER):
            return None
        await self.refresh()
        hash_ = hashed(authorization[len(BEARER) :].strip())
        if hash_ not in self._tokens_by_hash:
            await self._read_files()  # it may be new
        token = self._tokens_by_hash.get(hash_)
        if token is None or not hmac.compare_digest(token.hash, hash_):
            return None
        if token.used != (day := today()):
            self._tokens_by_hash[hash_] = msgspec.structs.replace(token, used=day)
            await self._threads.to_thread(self._tokens.note_used, hash_, day)
        caller = Caller(token.name, "program", hash_, token.user)
        return caller if self.is_valid(caller) else None

    async def _read_files(self) -> None:
        """Read the tokens and the users again, if their files changed."""
        self._checked_at = self._clock.monotonic()
        stamps = await self._threads.to_thread(lambda: (self._tokens.stamp(), self._users.stamp()))
        if stamps != self._stamps:
            tokens, users = await self._threads.to_thread(self._read_all)
            self._tokens_by_hash = {token.hash: token for token in tokens}
            self._users_by_name = {user.name: user for user in users}
            self._stamps = stamps

    def _read_all(self) -> tuple[tuple[Token, ...], tuple[UserRecord, ...]]:
        try:
            tokens = self._tokens.all()
        except UserMustActError:
            tokens = ()  # no token is valid while the file cannot be read
        return tokens, self._users.all()

    # -- signing in and out

    async def log_in(
        self,
        address: str,
        *,
        token: str | None,
        password: str | None,
        name: str | None = None,
        browser: str | None = None,
        cookies: str | None = None,
    ) -> str:
        """Return the value for a new cookie; `ProblemError` for a wrong secret or too many tries.

        The password is that of the user with this `name`, or of the owner without one. `browser`
        is a secret of the browser: with it the token works again if the cookie got lost.
        """
        cookie = _cookie(cookies or "")
        if cookie is not None and self._link.matches(token) and self._logins.find(cookie):
            return cookie  # a page that was reloaded sends the same link again
        wait = self._attempts.wait(address)
        if wait > 0 or self._trying >= MOST_AT_ONCE:
            seconds = math.ceil(max(wait, 1.0))
            raise ProblemError(
                429,
                "too_many_attempts",
                "There were too many attempts to sign in",
                f"wait {seconds} s and try again",
                headers={"retry-after": str(seconds)},
            )
        self._attempts.began(address)
        by_link = self._link.opens(token, browser)
        if not (by_link or await self._is_password(name, password)):
            raise ProblemError(
                401,
                "wrong_login",
                "This link, name or password doesn't work",
                "a link from `keryx serve` works once: start `keryx serve` again for a new one, "
                "or use the password if one is set",
            )
        self._attempts.succeeded(address)
        secret = await self._logins.begin("" if by_link else name or "")
        if by_link:
            self._link.login_made(hashed(secret))
        return secret

    async def log_out(self, caller: Caller) -> None:
        if caller.kind == "person":
            await self._logins.end(caller.hash)

    async def _is_password(self, name: str | None, password: str | None) -> bool:
        if password is None or not (name or self._password.is_set):
            return False
        self._trying += 1
        try:
            if not name:
                return await self._threads.to_thread(self._password.matches, password)
            await self._read_files()
            user = self._users_by_name.get(name)
            matches = await self._threads.to_thread(self._users.matches, name, password)
            return matches and user is not None and not user.disabled
        finally:
            self._trying -= 1


def _cookie(header: str) -> str | None:
    for pair in header.split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE and value:
            return value.strip('"')
    return None
