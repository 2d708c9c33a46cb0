"""What order effects demand: between the calls of one step, and between running leaves.

Two accesses conflict if they overlap and one of them writes, unless both belong to the same
peers. Exclusive effects conflict with everything. Paths are compared in canonical form.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from keryx.ports.effects import Access, Effects


def names_paths(effects: Effects) -> bool:
    return any(access.kind == "path" for access in effects.accesses)


def writes_paths(effects: Effects) -> bool:
    return any(access.writes and access.kind == "path" for access in effects.accesses)


def canonical(declared: Sequence[Effects], workspace: Path) -> list[Effects]:
    """The same effects with every path absolute and free of symbolic links. Asks the disk."""
    return [
        replace(effects, accesses=tuple(_canonical(each, workspace) for each in effects.accesses))
        for effects in declared
    ]


def _canonical(access: Access, workspace: Path) -> Access:
    if access.kind != "path":
        return access
    return replace(access, name=os.path.realpath(workspace / access.name))


def conflict(one: Effects, other: Effects) -> bool:
    """Whether two calls with these effects must not run at the same time."""
    if one.exclusive or other.exclusive:
        return True
    return any(_clash(mine, theirs) for mine in one.accesses for theirs in other.accesses)


def _clash(one: Access, other: Access) -> bool:
    if one.kind != other.kind or not (one.writes or other.writes):
        return False
    if one.peers is not None and one.peers == other.peers:
        return False
    if one.kind == "resource":
        return one.name == other.name
    return _is_within(one.name, other.name) or _is_within(other.name, one.name)


def _is_within(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree if tree.endswith(os.sep) else tree + os.sep)


def step_order(calls: Sequence[Effects]) -> list[list[int]]:
    """For each call of a step, the earlier ones that it has to wait for.

    An exclusive call waits for all before it, so whoever waits for it waits for them as well:
    nothing needs to look back past the last exclusive one.
    """
    order: list[list[int]] = []
    barrier: int | None = None
    touching: list[int] = []
    for index, effects in enumerate(calls):
        if effects.exclusive:
            order.append(list(range(barrier or 0, index)))
            barrier, touching = index, []
            continue
        waits = [] if barrier is None else [barrier]
        if effects.accesses:
            waits += [earlier for earlier in touching if conflict(calls[earlier], effects)]
            touching.append(index)
        order.append(waits)
    return order


class Holdings:
    """What the running leaves of one session hold, and who waits to.

    A leaf takes all its effects at once, so nobody waits while holding: there is no deadlock.
    Waiters go in order, and past one another only if they do not conflict.
    """

    def __init__(self) -> None:
        self._free: set[object] = set()
        self._held: dict[object, Effects] = {}
        self._waiting: dict[object, tuple[Effects, asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._free) + len(self._held) + len(self._waiting)

    def take_nowait(self, holder: object, effects: Effects) -> bool:
        """Take all effects now; False if a holder, or an earlier waiter, stands against it."""
        if self._obstructed(effects) or any(
            conflict(waiting, effects) for waiting, _ in self._waiting.values()
        ):
            return False
        self._grant(holder, effects)
        return True

    async def take(self, holder: object, effects: Effects) -> None:
        """Take all effects, waiting for those in the way. Cancelled, it holds nothing."""
        if self.take_nowait(holder, effects):
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[holder] = (effects, granted)
        try:
            await granted
        except asyncio.CancelledError:
            self.release(holder)
            raise

    def correct(self, holder: object, effects: Effects) -> None:
        """The same effects, told better. Harmless if the holder has nothing."""
        if holder in self._held:
            self._held[holder] = effects
        elif holder in self._waiting:
            self._waiting[holder] = (effects, self._waiting[holder][1])

    def release(self, holder: object) -> None:
        """Let go, or stop waiting. Harmless if the holder has nothing."""
        if holder in self._free:
            self._free.discard(holder)
        elif self._held.pop(holder, None) is None and self._waiting.pop(holder, None) is None:
            return
        if self._waiting:
            self._grant_waiting()

    def _grant(self, holder: object, effects: Effects) -> None:
        if effects.accesses or effects.exclusive:
            self._held[holder] = effects
        else:
            self._free.add(holder)

    def _obstructed(self, effects: Effects) -> bool:
        if effects.exclusive:
            return bool(self._free or self._held)
        if not effects.accesses:
            # Only an exclusive holder stands against it, and that one stands alone.
            return len(self._held) == 1 and next(iter(self._held.values())).exclusive
        return any(conflict(held, effects) for held in self._held.values())

    def _grant_waiting(self) -> None:
        passed: list[Effects] = []
        for holder, (effects, granted) in tuple(self._waiting.items()):
            if self._obstructed(effects) or any(conflict(earlier, effects) for earlier in passed):
                if effects.exclusive:
                    return
                passed.append(effects)
                continue
            del self._waiting[holder]
            self._grant(holder, effects)
            if not granted.done():
                granted.set_result(None)
