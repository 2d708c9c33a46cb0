"""The order that effects require: between the calls of one step, and between running calls.

Two accesses conflict if they overlap and one of them writes, unless both have the same peers.
Exclusive effects conflict with everything. Paths are compared in canonical form. A *leaf* is a call
of a tool that calls no other tools.
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
    """Return the effects with every path absolute and without symbolic links. Reads the disk."""
    return [
        replace(
            effects, accesses=tuple(_canonical(access, workspace) for access in effects.accesses)
        )
        for effects in declared
    ]


def _canonical(access: Access, workspace: Path) -> Access:
    if access.kind != "path":
        return access
    return replace(access, name=os.path.realpath(workspace / access.name))


def conflict(first: Effects, second: Effects) -> bool:
    """Return whether two calls with these effects must not run at the same time."""
    if first.exclusive or second.exclusive:
        return True
    return any(
        _accesses_conflict(left, right) for left in first.accesses for right in second.accesses
    )


def _accesses_conflict(first: Access, second: Access) -> bool:
    if first.kind != second.kind or not (first.writes or second.writes):
        return False
    if first.peers is not None and first.peers == second.peers:
        return False
    if first.kind == "resource":
        return first.name == second.name
    return _is_within(first.name, second.name) or _is_within(second.name, first.name)


def _is_within(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree if tree.endswith(os.sep) else tree + os.sep)


def step_order(calls: Sequence[Effects]) -> list[list[int]]:
    """Return, for each call of a step, the indexes of the earlier calls that it waits for.

    An exclusive call waits for all calls before it, so a call that waits for it waits for them too:
    no call needs to look back past the last exclusive one.
    """
    order: list[list[int]] = []
    barrier: int | None = None
    touching: list[int] = []
    for index, effects in enumerate(calls):
        if effects.exclusive:
            order.append(list(range(barrier or 0, index)))
            barrier, touching = index, []
            continue
        blockers = [] if barrier is None else [barrier]
        if effects.accesses:
            blockers += [earlier for earlier in touching if conflict(calls[earlier], effects)]
            touching.append(index)
        order.append(blockers)
    return order


class Holdings:
    """The effects that the running leaves of one session hold, and the calls that wait for some.

    A leaf takes all its effects at once and never waits while it holds some, so there is no
    deadlock. Waiters are served in order; one overtakes another only if they do not conflict.
    """

    def __init__(self) -> None:
        self._without_effects: set[object] = set()
        self._held: dict[object, Effects] = {}
        self._waiting: dict[object, tuple[Effects, asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._without_effects) + len(self._held) + len(self._waiting)

    def take_nowait(self, holder: object, effects: Effects) -> bool:
        """Take all effects now; False if they conflict with a holder or an earlier waiter."""
        if self._is_blocked(effects) or any(
            conflict(waiting, effects) for waiting, _ in self._waiting.values()
        ):
            return False
        self._grant(holder, effects)
        return True

    async def take(self, holder: object, effects: Effects) -> None:
        """Take all effects, once nothing conflicts. If this is cancelled, nothing is held."""
        if self.take_nowait(holder, effects):
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[holder] = (effects, granted)
        try:
            await granted
        except asyncio.CancelledError:
            self.release(holder)
            raise

    def update(self, holder: object, effects: Effects) -> None:
        """Replace the effects of a holder or waiter by resolved ones. Others are ignored."""
        if holder in self._held:
            self._held[holder] = effects
        elif holder in self._waiting:
            self._waiting[holder] = (effects, self._waiting[holder][1])

    def release(self, holder: object) -> None:
        """Release the effects, or stop waiting for them. Others are ignored."""
        if holder in self._without_effects:
            self._without_effects.discard(holder)
        elif self._held.pop(holder, None) is None and self._waiting.pop(holder, None) is None:
            return
        if self._waiting:
            self._grant_waiting()

    def _grant(self, holder: object, effects: Effects) -> None:
        if effects.accesses or effects.exclusive:
            self._held[holder] = effects
        else:
            self._without_effects.add(holder)

    def _is_blocked(self, effects: Effects) -> bool:
        if effects.exclusive:
            return bool(self._without_effects or self._held)
        if not effects.accesses:
            # Only an exclusive holder conflicts, and that is always the only one.
            return len(self._held) == 1 and next(iter(self._held.values())).exclusive
        return any(conflict(held, effects) for held in self._held.values())

    def _grant_waiting(self) -> None:
        skipped: list[Effects] = []
        for holder, (effects, granted) in tuple(self._waiting.items()):
            if self._is_blocked(effects) or any(conflict(earlier, effects) for earlier in skipped):
                if effects.exclusive:
                    return
                skipped.append(effects)
                continue
            del self._waiting[holder]
            self._grant(holder, effects)
            if not granted.done():
                granted.set_result(None)
