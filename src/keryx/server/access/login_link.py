"""The link that a server prints: it lets one browser in.

The answer to a login may get lost, together with the page that waited for it. So the browser that
used the link may use it again for a short while, by a secret that it made itself and told with its
first try. Once its login is seen to have arrived, the link is over. It refuses to know what a
login is.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from keryx.aio.clock import Clock
from keryx.server.access.tokens import hashed

AGAIN: Final = 120.0
"""Seconds in which a lost answer can be asked for again: time to notice and to load a page anew."""


LINKED: Final = "#token="


def token_in(text: str | None) -> str | None:
    """The token, also if somebody pastes the whole link."""
    return None if text is None else (text.partition(LINKED)[2] or text).strip()


class Link:
    """One server's link, by its token."""

    def __init__(self, clock: Clock) -> None:
        self.token: Final = secrets.token_urlsafe(24)
        self._clock = clock
        self._is_used = False
        self._holder: str | None = None
        """The hash of the secret of who used it, until their login has arrived."""
        self._until = 0.0
        self._begun: set[str] = set()

    def is_meant(self, token: str | None) -> bool:
        """Whether somebody shows this link, used up or not."""
        return token is not None and hmac.compare_digest(token.encode(), self.token.encode())

    def opens(self, token: str | None, browser: str | None) -> bool:
        """Whether who shows this is let in; the first who does uses it up for all others."""
        if not self.is_meant(token):
            return False
        if self._is_used:
            return self._is_holder(browser)
        self._is_used = True
        if browser is not None:
            self._holder = hashed(browser)
            self._until = self._clock.monotonic() + AGAIN
        return True

    def began(self, login: str) -> None:
        """That login was made for who used it."""
        if self._holder is not None:
            self._begun.add(login)

    def saw(self, login: str) -> None:
        """Somebody came with that login, so it is with who asked for it."""
        if login in self._begun:
            self._holder = None
            self._begun.clear()

    def _is_holder(self, browser: str | None) -> bool:
        if browser is None or self._holder is None or self._clock.monotonic() >= self._until:
            return False
        return hmac.compare_digest(hashed(browser), self._holder)
