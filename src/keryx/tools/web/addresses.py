"""Which addresses on the network are public. It looks nothing up and opens nothing.

The lists are written out, because the ones of `ipaddress` differ between versions of Python.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NOT_PUBLIC_V4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by the customers of a provider (CGNAT)
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # the services of a machine at Azure
            "169.254.0.0/16",  # link-local, metadata of cloud machines
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
_GLOBAL_UNICAST_V6: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_V6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments, among them Teredo and ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4: holds an IPv4 address
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def is_public(text: str) -> bool:
    """Return whether this IP address is one that anybody on the internet can reach.

    IPv6 forms that hold an IPv4 address are not public. The exception is the well-known prefix of
    NAT64: networks without IPv4 reach every IPv4 site through it, so its inner address decides.
    """
    address = parse(text)
    if address is None:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    if address in _NAT64:
        return is_public(str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)))
    return address in _GLOBAL_UNICAST_V6 and not any(
        address in network for network in _NOT_PUBLIC_V6
    )


def parse(text: str) -> Address | None:
    """Return the IP address; None if it is not one, or if it names a zone (`fe80::1%eth0`)."""
    if "%" in text:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def literal(host: str) -> Address | None:
    """Return the address that a host in a URL stands for without a lookup; None for a name.

    The system's own functions also read `2130706433`, `0x7f.1` and `127.1` as addresses.
    """
    host = host.strip("[]").removesuffix(".")
    address = parse(host)
    if address is not None or not host.isascii() or not host:
        return address
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):  # the latter for a NUL
        return None


def is_numeric(host: str) -> bool:
    """Return whether the host can only be an address, so that no resolver is asked for it."""
    return ":" in host or host.replace(".", "").isdigit()


class Exceptions:
    """Hosts that may be reached although their addresses are not public.

    Each is written `host` (all ports) or `host:port`; an IPv6 address with a port in brackets.
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._entries = frozenset(map(_normal_entry, hosts))

    def cover(self, host: str, port: int) -> bool:
        """Return whether this host of a URL is one of them."""
        name = _normal_host(host)
        return (name, None) in self._entries or (name, port) in self._entries


def check_exception(entry: str) -> None:
    """Raise `ValueError` with an example if this is not `host` or `host:port`."""
    host, port = _normal_entry(entry)
    if not host or "/" in host or " " in host or (port is not None and not 0 < port < 1 << 16):
        raise ValueError(f'{entry!r} is not a host; write "intranet.example" or "127.0.0.1:8080"')


def _normal_entry(entry: str) -> tuple[str, int | None]:
    if parse(entry.strip("[]")) is not None:
        return _normal_host(entry), None
    host, colon, port = entry.rpartition(":")
    if colon and port.isascii() and port.isdigit():
        return _normal_host(host), int(port)
    return _normal_host(entry), None


def _normal_host(host: str) -> str:
    host = host.strip().lower().strip("[]").removesuffix(".")
    address = parse(host)
    return host if address is None else str(address)
