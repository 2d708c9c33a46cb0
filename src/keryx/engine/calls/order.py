"""Resolves the paths of calls and sets the order of the calls of one step.

Resolving a path reads the disk, which may hang, so it runs in a thread. Scripts that make thousands
of reads skip it: while no call writes, a nested read conflicts with nothing, whatever its path is.
Such paths are resolved together with those of the first call that writes, so a write is never
compared with an unresolved path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keryx.engine.effects import canonical, names_paths, step_order, writes_paths

if TYPE_CHECKING:
    from keryx.engine.calls.call import (
        Call,  # it imports CallEnvironment, which imports this module
    )
    from keryx.engine.calls.call_environment import CallEnvironment


class Paths:
    """The paths of one session's calls: which calls write, and which paths are unresolved."""

    def __init__(self) -> None:
        self._writers: set[Call] = set()
        self._unresolved: dict[Call, None] = {}

    def enter(self, environment: CallEnvironment, calls: Sequence[Call]) -> bool:
        """Add the calls of one step. True if their paths have to be resolved first."""
        if not any(names_paths(call.effects) for call in calls):
            return False
        self._writers.update(call for call in calls if writes_paths(call.effects))
        if self._writers or environment.left_over or any(call.parent is None for call in calls):
            return True
        self._unresolved.update(dict.fromkeys(calls))
        return False

    async def resolve(self, environment: CallEnvironment, calls: Sequence[Call]) -> None:
        """Resolve the paths of these calls, and of all calls that began without."""
        unresolved = (*calls, *self._unresolved)
        declared = [call.effects for call in unresolved]
        resolved = await environment.bridge.to_thread(canonical, declared, environment.workspace)
        for call, effects in zip(unresolved, resolved, strict=True):
            call.effects = effects
            self._unresolved.pop(call, None)
            environment.holdings.update(call, effects)

    def leave(self, call: Call) -> None:
        """Remove a call that has ended."""
        self._writers.discard(call)
        self._unresolved.pop(call, None)


def set_order(calls: Sequence[Call]) -> None:
    """Set for each call of a step which earlier calls it waits for."""
    for call, earlier in zip(calls, step_order([call.effects for call in calls]), strict=True):
        call.blockers = len(earlier)
        for index in earlier:
            calls[index].dependents.append(call)
