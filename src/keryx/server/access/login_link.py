"""The link that `keryx serve` prints: it logs one browser in.

The answer to a login may get lost, together with the page that waited for it. So the browser that
used the link may use it again for a short time, if it sends the same secret of its own as the first
time. The link ends when a request arrives with the new login. This module does not know logins.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from keryx.aio.clock import Clock
from keryx.server.access.tokens import hashed

AGAIN: Final = 120.0
"""Seconds in which the same browser may use the link again: time to notice and reload the page."""


LINKED: Final = "#token="


def token_in(text: str | None) -> str | None:
    """Return the token, also if the text is the whole link."""
    return None if text is None else (text.partition(LINKED)[2] or text).strip()


class Link:
    """One server's link, by its token."""

    def __init__(self, clock: Clock) -> None:
        self.token: Final = secrets.token_urlsafe(24)
        self._clock = clock
        self._is_used = False
        self._holder: str | None = None
        """The hash of the secret of the browser that used the link, until its login is used."""
        self._until = 0.0
        self._logins: set[str] = set()

    def matches(self, token: str | None) -> bool:
        """Return whether this is the link's token, used or not."""
        return token is not None and hmac.compare_digest(token.encode(), self.token.encode())

    def opens(self, token: str | None, browser: str | None) -> bool:
        """Return whether this token signs in; the first browser uses it up for all others."""
        if not self.matches(token):
            return False
        if self._is_used:
            return self._is_holder(browser)
        self._is_used = True
        if browser is not None:
            self._holder = hashed(browser)
            self._until = self._clock.monotonic() + AGAIN
        return True

    def login_made(self, login: str) -> None:
        """Note a login that was made for the browser that used the link."""
        if self._holder is not None:
            self._logins.add(login)

    def login_used(self, login: str) -> None:
        """Note a request with that login: the browser has received it, so the link ends."""
        if login in self._logins:
            self._holder = None
            self._logins.clear()

    def _is_holder(self, browser: str | None) -> bool:
        if browser is None or self._holder is None or self._clock.monotonic() >= self._until:
            return False
        return hmac.compare_digest(hashed(browser), self._holder)
