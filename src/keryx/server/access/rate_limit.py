"""How often someone may try to log in: a few failures are free, then each costs a longer wait.

What it remembers is bounded, whoever tries from wherever.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from typing import Final

import msgspec

from keryx.aio.clock import Clock

FREE: Final = 5
"""Failures that cost nothing."""
LONGEST_WAIT: Final = 300.0
FORGET: Final = 3_600.0
"""Seconds after which failures are forgotten."""
MOST: Final = 10_000
"""Addresses that are remembered; those that failed longest ago make room."""
_DOUBLINGS: Final = 10


class _Failures(msgspec.Struct):
    count: int = 0
    last: float = 0.0
    until: float = 0.0


class RateLimit:
    """Counts by address. Belongs to one loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[str, _Failures] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def wait(self, address: str) -> float:
        """Seconds until the next try is looked at; 0: now."""
        found = self._known.get(_network(address))
        return 0.0 if found is None else max(0.0, found.until - self._clock.monotonic())

    def began(self, address: str) -> None:
        """Counted as a failure until it turns out otherwise: many at once are many."""
        network, now = _network(address), self._clock.monotonic()
        found = self._known.pop(network, None)
        if found is None or now - found.last > FORGET:
            found = _Failures()
        found.count += 1
        found.last = now
        if found.count >= FREE:
            doublings = min(found.count - FREE, _DOUBLINGS)
            found.until = now + min(LONGEST_WAIT, 2.0**doublings)
        self._known[network] = found
        while len(self._known) > MOST:
            self._known.popitem(last=False)

    def succeeded(self, address: str) -> None:
        self._known.pop(_network(address), None)


def _network(address: str) -> str:
    """Who has one IPv6 address has a whole network of them."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if found.version == 4:  # noqa: PLR2004 (the version of the protocol)
        return address
    return str(ipaddress.ip_network((found, 64), strict=False).network_address)
