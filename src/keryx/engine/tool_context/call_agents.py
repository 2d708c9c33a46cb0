"""Runs a child agent for one call, and logs its usage under the call."""

from __future__ import annotations

from keryx.aio.scope import CancellationToken
from keryx.engine.calls.call import Call
from keryx.errors import DeveloperMustActError
from keryx.ports.agents import ChildResult, ChildTask


async def run_agent(call: Call, task: ChildTask) -> ChildResult:
    """Return how the child's turn ended; the notes of its progress are the call's own."""
    agents, hooks = call.environment.agents, call.environment.hooks
    if agents is None:
        raise DeveloperMustActError("this session has no child agents; open it with them")
    notes = 0

    def progress(note: str) -> None:
        nonlocal notes
        notes += 1
        if call.phase == "running":
            hooks.progress(call, notes, None, note)

    token = CancellationToken(call.scope)
    result = await agents.run(call.call_id, task, token, progress)
    call.environment.log_usage(call.call_id, "agent", result.model, result.usage, result.cost)
    return result
