"""What a call reads and writes. Only words here; what they mean for the order is the engine's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

Kind = Literal["path", "resource"]


class Access(msgspec.Struct, frozen=True):
    """One thing that a call touches.

    `name` is a path (relative ones count from the workspace; the whole tree below it is
    meant) or the name of a resource. Two writes with the same `peers` get along with each
    other, and with nobody else: that is how terminals run side by side.
    """

    kind: Kind
    name: str
    writes: bool
    peers: str | None = None


class Effects(msgspec.Struct, frozen=True):
    """All that a call touches; `exclusive` stands for "anything"."""

    accesses: tuple[Access, ...] = ()
    exclusive: bool = False

    def __or__(self, other: Effects) -> Effects:
        return Effects(self.accesses + other.accesses, self.exclusive or other.exclusive)


EXCLUSIVE = Effects(exclusive=True)
NO_EFFECTS = Effects()

EffectsOf = Callable[[Any], Effects]


def reads(*paths: str) -> Effects:
    """The call reads these files or trees."""
    return Effects(tuple(Access("path", path, writes=False) for path in paths))


def writes(*paths: str, peers: str | None = None) -> Effects:
    """The call writes these files or trees."""
    return Effects(tuple(Access("path", path, writes=True, peers=peers) for path in paths))


def uses(resource: str, *, writes: bool = True) -> Effects:
    """The call uses a named resource: a database, a device, an account."""
    return Effects((Access("resource", resource, writes=writes),))
