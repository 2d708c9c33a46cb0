"""Limits attempts to sign in: a few failures are free, then each one doubles the wait.

Its memory is bounded, however many addresses try.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from typing import Final

import msgspec

from keryx.aio.clock import Clock

FREE: Final = 5
"""Failures without a wait."""
LONGEST_WAIT: Final = 300.0
FORGET: Final = 3_600.0
"""Seconds after which failures are forgotten."""
MOST: Final = 10_000
"""Addresses that are remembered; those that failed longest ago are dropped."""
_DOUBLINGS: Final = 10


class _Failures(msgspec.Struct):
    count: int = 0
    last: float = 0.0
    until: float = 0.0


class RateLimit:
    """Counts by address. Belongs to one loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def wait(self, address: str) -> float:
        """Return the seconds until the next attempt is allowed; 0: now."""
        failures = self._failures.get(_network(address))
        return 0.0 if failures is None else max(0.0, failures.until - self._clock.monotonic())

    def began(self, address: str) -> None:
        """Count an attempt as a failure until it succeeds, so that parallel attempts count too."""
        network, now = _network(address), self._clock.monotonic()
        failures = self._failures.pop(network, None)
        if failures is None or now - failures.last > FORGET:
            failures = _Failures()
        failures.count += 1
        failures.last = now
        if failures.count >= FREE:
            doublings = min(failures.count - FREE, _DOUBLINGS)
            failures.until = now + min(LONGEST_WAIT, 2.0**doublings)
        self._failures[network] = failures
        while len(self._failures) > MOST:
            self._failures.popitem(last=False)

    def succeeded(self, address: str) -> None:
        self._failures.pop(_network(address), None)


def _network(address: str) -> str:
    """Return the /64 network of an IPv6 address: its owner can use all addresses in it."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if ip.version == 4:  # noqa: PLR2004 (the version of the protocol)
        return address
    return str(ipaddress.ip_network((ip, 64), strict=False).network_address)
