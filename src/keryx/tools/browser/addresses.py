"""Addresses that a model may open: checked, and rebuilt so that Chromium reads the same host.

A person consents to a host by its name. Chromium reads some addresses differently from other
programs (`http://good.example\\@evil.example`), so everything unusual is refused here.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote, unquote, urlsplit

import msgspec

from keryx.errors import ToolFailedError
from keryx.messages import Needs
from keryx.ports.tool import Risk
from keryx.tools.files.file_access import reading_risk

BLANK: Final = "about:blank"
_LONGEST: Final = 8_000
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f\\]")
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER: Final = re.compile(r"\d+|0x[0-9a-f]*")
_WITHOUT_SCHEME: Final = re.compile(r"[\w.-]+(?::\d+)?(?:[/?#].*)?|\[[0-9a-fA-F:.]+\](?::\d+)?.*")
# All printable characters but those that end a part of an address.
_SAFE: Final = "!$%&'()*+,-./:;=?@_~[]{}|^`<>\""


class Address(msgspec.Struct, frozen=True):
    """Something to open."""

    kind: Literal["web", "local", "file", "blank"]
    """local: this machine as the session's own processes see it."""
    url: str
    host: str = ""
    path: str = ""
    """Of a file: as the model wrote it."""


def parse_address(text: str) -> Address:
    """Check an address; `ToolFailedError` says how to write it."""
    text = text.strip()
    if not text or len(text) > _LONGEST or _FORBIDDEN.search(text):
        raise _refused(text, "it is empty, too long, or has spaces, backslashes or control codes")
    if text == BLANK:
        return Address("blank", BLANK)
    if text.startswith("file:"):
        path = unquote(re.sub(r"^file:(?://(?:localhost)?(?=/))?", "", text).split("#")[0])
        if not path or "\0" in path:
            raise _refused(text, "it names no file")
        return Address("file", text, path=path)
    scheme, separator, _ = text.partition("://")
    if not separator and _WITHOUT_SCHEME.fullmatch(text):
        host = _host_of(f"http://{text}")
        scheme = "http" if is_local(host) else "https"
        text = f"{scheme}://{text}"
    elif scheme.lower() not in ("http", "https"):
        raise _refused(text, "only http, https and file can be opened")
    host = _host_of(text)
    parts = urlsplit(text)
    port = "" if parts.port is None else f":{parts.port}"
    query = f"?{quote(parts.query, safe=_SAFE)}" if parts.query else ""
    fragment = f"#{quote(parts.fragment, safe=_SAFE)}" if parts.fragment else ""
    path = quote(parts.path, safe=_SAFE) or "/"
    url = f"{parts.scheme.lower()}://{host}{port}{path}{query}{fragment}"
    return Address("local" if is_local(host) else "web", url, host)


def is_local(host: str) -> bool:
    """Return whether a host is the machine itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip
    return ip.is_loopback or ip.is_unspecified


def address_risk(text: str, workspace: Path, *, network: bool) -> Risk:
    """Judge what opening an address does: the network needs consent, by host.

    `network`: this machine's network is used for localhost too, not the session's own.
    """
    try:
        address = parse_address(text)
    except ToolFailedError:
        return Risk("none", changes=False)  # the call itself refuses it
    if address.kind == "file":
        return reading_risk(_PathArgument(address.path), workspace)
    if address.kind == "blank" or (address.kind == "local" and not network):
        return Risk("none", changes=False)
    why = f"opens {address.host} in the browser, whose pages can then use the network"
    return Risk("low", why, (address.host,), Needs(network=True), changes=False)


class _PathArgument(msgspec.Struct, frozen=True):
    path: str


def _host_of(text: str) -> str:
    """Return the host in the form that Chromium uses."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises for a port that is no number
        host = (parts.hostname or "").rstrip(".")
    except ValueError as error:
        raise _refused(text, f"it is no address ({error})") from error
    if "@" in parts.netloc:
        raise _refused(text, "it holds a name or a password before the host")
    if ":" in host:
        try:
            return f"[{ipaddress.IPv6Address(host).compressed}]"
        except ValueError as error:
            raise _refused(text, f"its host is no IPv6 address ({error})") from error
    try:
        host = host.encode("idna").decode().lower() if not host.isascii() else host
    except UnicodeError as error:
        raise _refused(text, f"its host is no host name ({error})") from error
    labels = host.split(".")
    if not all(map(_LABEL.fullmatch, labels)):
        raise _refused(text, "its host is no host name")
    if _NUMBER.fullmatch(labels[-1]):
        # Chromium reads 2130706433, 0x7f.1 and 127.1 as 127.0.0.1; only the plain form is clear.
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError as error:
            raise _refused(text, "write an IPv4 address as four plain numbers") from error
    return host


def _refused(text: str, reason: str) -> ToolFailedError:
    return ToolFailedError(
        f"{text[:200]!r} cannot be opened: {reason}; write it like https://example.com/page, "
        "http://localhost:8000 or file:page.html (a file of the workspace)"
    )
