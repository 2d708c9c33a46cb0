"""What must be known before a call may start: its canonical paths, and its place in its step.

Finding a canonical path asks the disk, and a disk may hang, so it takes a thread. A script that
reads by the thousand is spared it: a nested read that meets nothing but reads conflicts with
nobody, whatever its path turns out to be. Its path is found with that of the first call that
writes, so no write is ever compared with a path that was not resolved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keryx.engine.effects import canonical, names_paths, step_order, writes_paths

if TYPE_CHECKING:
    from keryx.engine.calls.call import Call  # which knows its lane, and that its paths
    from keryx.engine.calls.call_environment import CallEnvironment


class Paths:
    """The paths of one session's calls: who writes, and whose are not resolved yet."""

    def __init__(self) -> None:
        self._writers: set[Call] = set()
        self._unresolved: dict[Call, None] = {}

    def enter(self, environment: CallEnvironment, calls: Sequence[Call]) -> bool:
        """The calls of one step begin. True if their paths have to be resolved first."""
        if not any(names_paths(call.effects) for call in calls):
            return False
        self._writers.update(call for call in calls if writes_paths(call.effects))
        if self._writers or environment.left_over or any(call.parent is None for call in calls):
            return True
        self._unresolved.update(dict.fromkeys(calls))
        return False

    async def resolve(self, environment: CallEnvironment, calls: Sequence[Call]) -> None:
        """Find the paths of these calls, and of all that began without."""
        late = (*calls, *self._unresolved)
        declared = [call.effects for call in late]
        found = await environment.bridge.to_thread(canonical, declared, environment.workspace)
        for call, effects in zip(late, found, strict=True):
            call.effects = effects
            self._unresolved.pop(call, None)
            environment.holdings.correct(call, effects)

    def leave(self, call: Call) -> None:
        """A call has ended."""
        self._writers.discard(call)
        self._unresolved.pop(call, None)


def set_order(calls: Sequence[Call]) -> None:
    """Tell each call of a step how many earlier ones it has to wait for."""
    for call, earlier in zip(calls, step_order([call.effects for call in calls]), strict=True):
        call.blockers = len(earlier)
        for index in earlier:
            calls[index].dependents.append(call)
