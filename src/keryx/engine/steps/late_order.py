"""Orders the calls of a step whose hooks may change their effects.

A call can be placed as soon as its own hooks and those of all earlier calls have ended: only then
is it known whether they conflict. Later calls delay nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from keryx.engine.calls.call import Call
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.effects import conflict


async def order_after_hooks(environment: CallEnvironment, calls: Sequence[Call]) -> None:
    """Set the order of these calls, one after the other, as their hooks end."""
    for index, call in enumerate(calls):
        if call.reviewed is not None:
            await asyncio.shield(call.reviewed)
        assert call.ordered is not None
        if _has_ended(call):
            call.ordered.set_result(None)
            continue
        try:
            if environment.paths.enter(environment, (call,)):
                await environment.paths.resolve(environment, (call,))
        except Exception as error:  # noqa: BLE001 (whatever goes wrong with a path concerns only this call)
            call.ordered.set_exception(error)
            call.ordered.exception()  # marks it as retrieved, also if the call has ended
            continue
        if _has_ended(call):
            environment.paths.leave(call)
        else:
            _place(call, calls[:index])
        call.ordered.set_result(None)


def _has_ended(call: Call) -> bool:
    return call.phase == "ended"


def _place(call: Call, earlier: Sequence[Call]) -> None:
    """Let the call wait for the earlier calls that it conflicts with.

    A call that was cancelled while it waited for others keeps its place in the order.
    """
    for other in earlier:
        is_over = _has_ended(other) and other.blockers == 0
        if not is_over and conflict(other.effects, call.effects):
            call.blockers += 1
            other.dependents.append(call)
