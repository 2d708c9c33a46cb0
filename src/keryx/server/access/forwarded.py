"""How a request looks from outside: who sent it, and at which address, also through a proxy.

A proxy tells this in headers that anybody can write. So they are believed only if they come from
an address that the configuration trusts. It refuses to know what is done with the answer.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from keryx.errors import UserMustActError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LONGEST_PREFIX: Final = 200
MOST_HOPS: Final = 20
"""Addresses that are read of a list that a client may have begun."""
RESERVED: Final = "/api"
_PREFIX: Final = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_log: Final = logging.getLogger("keryx.server")


class Forwarded(msgspec.Struct, frozen=True):
    """What a proxy says of a request, as it stands in the headers."""

    client: str | None = None
    scheme: str | None = None
    host: str | None = None
    prefix: str | None = None


class Outside(msgspec.Struct, frozen=True):
    """A request as its sender sees it."""

    client: str
    """The address that it comes from."""
    host: str
    scheme: str
    prefix: str
    """The path that all addresses of this server begin with: nothing, or such as `/keryx`."""

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"


class PublicUrl(msgspec.Struct, frozen=True):
    """The address that people use, if the configuration names one."""

    scheme: str
    host: str
    prefix: str

    @classmethod
    def read(cls, text: str) -> PublicUrl:
        """`UserMustActError` says what is wrong with it."""
        try:
            parts = urlsplit(text)
            name, _ = parts.hostname, parts.port
        except ValueError as error:
            raise _bad_url(text, str(error)) from error
        prefix = parts.path.rstrip("/")
        if parts.scheme not in ("http", "https") or not name:
            raise _bad_url(text, "it begins with http:// or https:// and a host name")
        if parts.username or parts.query or parts.fragment:
            raise _bad_url(text, "it has no user, query or fragment")
        if prefix and not is_prefix(prefix):
            raise _bad_url(text, f"its path holds plain names only, and is not {RESERVED}")
        return cls(parts.scheme, parts.netloc.lower(), prefix)

    @property
    def name(self) -> str:
        """The host without its port."""
        return re.sub(r":[0-9]*$", "", self.host)

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}"

    def __str__(self) -> str:
        return f"{self.origin}{self.prefix}/"


def is_prefix(text: str) -> bool:
    """Whether all addresses of a server can begin so; it stands in the path of the cookie."""
    if len(text) > LONGEST_PREFIX or _PREFIX.fullmatch(text) is None:
        return False
    is_reserved = text == RESERVED or text.startswith(f"{RESERVED}/")
    return not is_reserved and not {".", ".."} & set(text.split("/"))


class Proxies:
    """Knows whom to believe. Belongs to one loop."""

    def __init__(self, trusted: Iterable[str] = (), url: PublicUrl | None = None) -> None:
        self.url = url
        self._trusted = tuple(map(_network, trusted))
        self.are_expected: Final = bool(self._trusted or url)
        """Whether requests may look different from outside; else there is nothing to look at."""
        self._warned = False

    def look(self, peer: str, host: str, forwarded: Forwarded) -> Outside:
        """The request as it looks from outside; `peer` and `host` are what it says itself."""
        if not self._trusts(_address(peer)):
            if forwarded.client is not None and not self._warned:
                self._warned = True
                _log.warning(
                    "a proxy at %s forwards requests and is not trusted: its clients count as one; "
                    "name it with --trusted-proxy, or in server.trusted_proxies of config.toml",
                    peer,
                )
            return Outside(peer, host, "http", "")
        host = _last(forwarded.host) or host
        is_public = self.url is not None and host.lower() == self.url.host
        usual = self.url if is_public else None
        scheme = (_last(forwarded.scheme) or (usual.scheme if usual else "http")).lower()
        prefix = (forwarded.prefix or (self.url.prefix if self.url else "")).rstrip("/")
        return Outside(
            self._client(peer, forwarded.client),
            host,
            "https" if scheme == "https" else "http",
            prefix if is_prefix(prefix) else "",
        )

    def inner_path(self, path: str, outside: Outside) -> str:
        """The path without what all addresses begin with, if the proxy has left that there."""
        for prefix in (outside.prefix, self.url.prefix if self.url else ""):
            if prefix and path.startswith(f"{prefix}/"):
                return path[len(prefix) :]
        return path

    def _client(self, peer: str, hops: str | None) -> str:
        """The nearest address that is no proxy of ours: what stands before it anybody can write."""
        client = peer
        for text in reversed((hops or "").split(",")[-MOST_HOPS:]):
            address = _address(text)
            if address is None:
                break
            client = str(address)
            if not self._trusts(address):
                break
        return client

    def _trusts(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self._trusted)


def _last(header: str | None) -> str | None:
    """What the nearest proxy said, should there be several."""
    return None if header is None else header.rpartition(",")[2].strip() or None


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError as error:
        raise UserMustActError(
            f"{text!r} is no address of a proxy: {error}; name addresses such as 127.0.0.1, or "
            "networks such as 10.0.0.0/8, with --trusted-proxy or in server.trusted_proxies"
        ) from error


def _address(text: str) -> Address | None:
    """An address as proxies write it: maybe with a port, maybe in brackets."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    # One and the same machine, as a socket for both protocols names it.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _bad_url(text: str, why: str) -> UserMustActError:
    return UserMustActError(
        f"{text!r} is no address that people could use: {why}; "
        "write such as https://example.com/keryx with --url, or in server.url of config.toml"
    )
