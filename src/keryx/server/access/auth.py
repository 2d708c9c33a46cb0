"""Who a request comes from: a program with a token, or a person who logged in.

Secrets are random, known by their hashes and compared in constant time.
"""

from __future__ import annotations

import hmac
import math
from typing import Final, Literal

import msgspec

from keryx.aio.bridge import Bridge
from keryx.aio.clock import Clock
from keryx.config import Config
from keryx.errors import UserMustActError
from keryx.server.access.login_link import Link
from keryx.server.access.logins import Logins
from keryx.server.access.password import Password
from keryx.server.access.rate_limit import RateLimit
from keryx.server.access.tokens import Token, Tokens, hashed, today
from keryx.server.problems import ProblemError

COOKIE: Final = "keryx_login"
BEARER: Final = "bearer "
# How long a token that was revoked may still get in: the file is looked at this often.
LOOK_AGAIN: Final = 1.0
# Passwords that are tried at the same time: each takes a thread, 32 MB and a tenth of a second.
MOST_AT_ONCE: Final = 4


class Caller(msgspec.Struct, frozen=True):
    """Who asks."""

    name: str
    """What commands say they come from."""
    kind: Literal["person", "program"]
    hash: str
    """Of the token or login that let it in."""

    @property
    def where(self) -> str:
        return "web" if self.kind == "person" else "api"


class Access:
    """Lets people and programs in. Belongs to one loop; `load` it first."""

    def __init__(self, config: Config, threads: Bridge, clock: Clock) -> None:
        self._threads = threads
        self._clock = clock
        self._logins = Logins(config.home, threads, clock)
        self._password = Password(config.home)
        self._given = config.environment.get("KERYX_PASSWORD") or None
        self._tokens = Tokens(config.home)
        self._known: dict[str, Token] = {}
        self._stamp: object = None
        self._looked_at = -math.inf
        self._link = Link(clock)
        self._attempts = RateLimit(clock)
        self._trying = 0

    async def load(self, password: str | None = None) -> None:
        await self._logins.load()
        await self._threads.to_thread(self._password.load, password or self._given)
        await self._look()

    @property
    def has_password(self) -> bool:
        return self._password.is_set

    @property
    def once(self) -> str:
        """The token that lets one browser in."""
        return self._link.token

    # -- requests

    async def caller(self, authorization: str | None, cookies: str | None) -> Caller | None:
        """Who sent these headers. A token counts before a cookie, also a wrong one."""
        if authorization is not None:
            return await self._program(authorization)
        secret = _cookie(cookies or "")
        found = None if secret is None else self._logins.find(secret)
        if found is None:
            return None
        self._link.saw(found)
        return Caller("person", "person", found)

    def still_counts(self, caller: Caller) -> bool:
        """Whether it would be let in again; for connections that stay open."""
        if caller.kind == "person":
            return self._logins.counts(caller.hash)
        return caller.hash in self._known

    async def refresh(self) -> None:
        """Learn which tokens were revoked."""
        if self._clock.monotonic() - self._looked_at >= LOOK_AGAIN:
            await self._look()

    async def _program(self, authorization: str) -> Caller | None:
        if not authorization.lower().startswith(BEARER):
            return None
        await self.refresh()
        hash_ = hashed(authorization[len(BEARER) :].strip())
        if hash_ not in self._known:
            await self._look()  # it may have been made just now
        token = self._known.get(hash_)
        if token is None or not hmac.compare_digest(token.hash, hash_):
            return None
        if token.used != (day := today()):
            self._known[hash_] = msgspec.structs.replace(token, used=day)
            await self._threads.to_thread(self._tokens.note_used, hash_, day)
        return Caller(token.name, "program", hash_)

    async def _look(self) -> None:
        self._looked_at = self._clock.monotonic()
        stamp = await self._threads.to_thread(self._tokens.stamp)
        if stamp != self._stamp:
            try:
                found = await self._threads.to_thread(self._tokens.all)
            except UserMustActError:
                found = ()  # a file that cannot be read lets nobody in
            self._known = {token.hash: token for token in found}
            self._stamp = stamp

    # -- logging in and out

    async def log_in(
        self,
        address: str,
        *,
        token: str | None,
        password: str | None,
        browser: str | None = None,
        cookies: str | None = None,
    ) -> str:
        """The value for a new cookie; `ProblemError` if the secret is wrong, or came too often.

        `browser` is its own secret: with it, the token works again should the cookie get lost.
        """
        known = _cookie(cookies or "")
        if known is not None and self._link.is_meant(token) and self._logins.find(known):
            return known  # a page that was loaded anew says what it said before
        wait = self._attempts.wait(address)
        if wait > 0 or self._trying >= MOST_AT_ONCE:
            seconds = math.ceil(max(wait, 1.0))
            raise ProblemError(
                429,
                "too_many_attempts",
                "there were too many attempts to log in",
                f"wait {seconds} s and try again",
                headers={"retry-after": str(seconds)},
            )
        self._attempts.began(address)
        by_link = self._link.opens(token, browser)
        if not (by_link or await self._fits(password)):
            raise ProblemError(
                401,
                "wrong_login",
                "that does not log in",
                "a link from `keryx serve` works once; start it anew for another, "
                "or use the password if one is set",
            )
        self._attempts.succeeded(address)
        secret = await self._logins.begin()
        if by_link:
            self._link.began(hashed(secret))
        return secret

    async def log_out(self, caller: Caller) -> None:
        if caller.kind == "person":
            await self._logins.end(caller.hash)

    async def _fits(self, password: str | None) -> bool:
        if password is None or not self._password.is_set:
            return False
        self._trying += 1
        try:
            return await self._threads.to_thread(self._password.fits, password)
        finally:
            self._trying -= 1


def _cookie(header: str) -> str | None:
    for each in header.split(";"):
        name, _, value = each.strip().partition("=")
        if name == COOKIE and value:
            return value.strip('"')
    return None
