"""What a call reads and writes. The engine decides by it which calls wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

Kind = Literal["path", "resource"]


class Access(msgspec.Struct, frozen=True):
    """One path or resource that a call uses.

    `name` is the name of a resource, or a path: relative to the workspace, and including the whole
    tree below it. Two writes with the same `peers` do not conflict with each other, only with all
    other accesses. This is how several terminals run at the same time.
    """

    kind: Kind
    name: str
    writes: bool
    peers: str | None = None


class Effects(msgspec.Struct, frozen=True):
    """Everything that a call uses; `exclusive`: it may use anything."""

    accesses: tuple[Access, ...] = ()
    exclusive: bool = False

    def __or__(self, other: Effects) -> Effects:
        return Effects(self.accesses + other.accesses, self.exclusive or other.exclusive)


EXCLUSIVE = Effects(exclusive=True)
NO_EFFECTS = Effects()

EffectsOf = Callable[[Any], Effects]


def reads(*paths: str) -> Effects:
    """Return the effects of reading these files or trees."""
    return Effects(tuple(Access("path", path, writes=False) for path in paths))


def writes(*paths: str, peers: str | None = None) -> Effects:
    """Return the effects of writing these files or trees."""
    return Effects(tuple(Access("path", path, writes=True, peers=peers) for path in paths))


def uses(resource: str, *, writes: bool = True) -> Effects:
    """Return the effects of using a named resource: a database, a device, an account."""
    return Effects((Access("resource", resource, writes=writes),))
