"""Checks the Host and Origin of every request, and defines the security headers of answers.

A page of another site can make a browser send requests here, also under a host name of its own
that resolves to this address (DNS rebinding). So the Host must be one of ours, and a browser's
request must come from our own page. Every request passes here, so the checks are cheap.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, MutableMapping
from typing import Any, Final

import msgspec

from keryx.server.access.forwarded import Forwarded, PublicUrl
from keryx.server.problems import ProblemError

Scope = MutableMapping[str, Any]
Headers = list[tuple[bytes, bytes]]

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
WILDCARDS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 (to recognise them)
FORBIDDEN: Final = 403

ALWAYS: Final[Headers] = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(self), payment=(), usb=()"),
]


def page_headers(script_hashes: Iterable[str] = ()) -> Headers:
    """Return the headers of a file of the page.

    `script_hashes` name the scripts inside the document, as a policy writes them. No other may run.
    """
    scripts = " ".join(["'self'", *(f"'{script_hash}'" for script_hash in script_hashes)])
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'self'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; frame-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return [*ALWAYS, (b"content-security-policy", policy.encode())]


PAGE_HEADERS: Final = page_headers()
# The frame of the page that draws diagrams: it may write styles into them, and reach nothing.
_FRAME_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
FRAME_HEADERS: Final[Headers] = [
    *((name, b"SAMEORIGIN" if name == b"x-frame-options" else value) for name, value in ALWAYS),
    (b"content-security-policy", _FRAME_POLICY),
]
API_HEADERS: Final[Headers] = [
    *ALWAYS,
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"cache-control", b"no-store"),
]


class Head(msgspec.Struct, frozen=True):
    """The headers that the checks need; a repeated header gets a value that matches nothing."""

    host: str | None = None
    origin: str | None = None
    site: str | None = None
    cookie: str | None = None
    authorization: str | None = None
    last_event_id: str | None = None
    encodings: str = ""
    forwarded_for: str | None = None
    forwarded_proto: str | None = None
    forwarded_host: str | None = None
    forwarded_prefix: str | None = None

    @property
    def forwarded(self) -> Forwarded:
        return Forwarded(
            self.forwarded_for, self.forwarded_proto, self.forwarded_host, self.forwarded_prefix
        )


_NAMES: Final = {
    b"host": "host",
    b"origin": "origin",
    b"sec-fetch-site": "site",
    b"cookie": "cookie",
    b"authorization": "authorization",
    b"last-event-id": "last_event_id",
    b"accept-encoding": "encodings",
    b"x-forwarded-for": "forwarded_for",
    b"x-forwarded-proto": "forwarded_proto",
    b"x-forwarded-host": "forwarded_host",
    b"x-forwarded-prefix": "forwarded_prefix",
}


def head_of(scope: Scope) -> Head:
    """Return the headers of the request that the checks need."""
    values: dict[str, str] = {}
    for name, value in scope["headers"]:
        field = _NAMES.get(name)
        if field is not None:
            text = value.decode("latin-1")
            # X-Forwarded-For is a list; any other repeated header must match nothing.
            separator = ", " if field == "forwarded_for" else "; "
            values[field] = f"{values[field]}{separator}{text}" if field in values else text
    return Head(**values)


class Guard:
    """Checks requests against the host names and the origin of this server."""

    def __init__(
        self, port: int, *, host: str, allowed: Iterable[str] = (), url: PublicUrl | None = None
    ) -> None:
        self._names = {f"{name}:{port}" for name in (*LOOPBACK, _bracketed(host))}
        for name in allowed:
            self._names |= {name.lower(), f"{name.lower()}:{port}"}
        if port == 80:  # noqa: PLR2004 (browsers leave out the default port)
            self._names |= {name.rpartition(":")[0] for name in self._names}
        if url is not None:
            self._names |= {url.host, url.name}
        self._origin = None if url is None else url.origin
        # An IP address is safe; a host name could be another site's that resolves to it.
        self._any_address = host in WILDCARDS
        self._port = port

    def check(self, scope: Scope, head: Head, host: str) -> None:
        """Raise `ProblemError` if the host name is not ours, or another site sent the request.

        `host` is the host name that the sender used.
        """
        host = host.lower()
        if host not in self._names and not (self._any_address and self._is_address(host)):
            raise ProblemError(
                FORBIDDEN,
                "wrong_host",
                "This server does not use the host name of the request",
                "use the address that `keryx serve` prints, or start it with --url or --allow-host",
            )
        if head.authorization is None and scope["path"].startswith("/api/"):
            self._check_origin(scope["method"], host, head)

    def _check_origin(self, method: str, host: str, head: Head) -> None:
        """Refuse a browser's request from another site; programs use a token instead."""
        origin = (head.origin or "").lower()
        # A proxy may leave out the port in the Host header.
        ours = origin.partition("://")[2] == host or origin == self._origin
        if method in SAFE:
            foreign = head.site in ("cross-site", "same-site")
        elif head.origin is not None:
            foreign = not ours
        else:
            # Without a cookie nothing can be misused, and a program can sign in.
            foreign = head.site != "same-origin" and (
                head.cookie is not None or head.site is not None
            )
        if foreign:
            raise ProblemError(
                FORBIDDEN,
                "wrong_origin",
                "The request comes from another site",
                "use the page of this server, or a token from `keryx tokens make`",
            )

    def _is_address(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return port == str(self._port)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host.lower()
