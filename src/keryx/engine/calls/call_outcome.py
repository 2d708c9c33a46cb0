"""How a call ends: from what its tool returned or raised to one honest outcome."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from keryx.engine.calls.call import Call
from keryx.engine.calls.truncation import bounded
from keryx.errors import KeryxError, ToolCancelledError, WardenLostError
from keryx.messages import CallOutcome, Outcome, Part, Text
from keryx.ports.workers import SELF_CANCELLED, Returned, described


class Ending(msgspec.Struct, frozen=True):
    """What is known when a call's work is over, before it is logged as its outcome."""

    outcome: Outcome
    reason: str | None = None
    content: tuple[Part, ...] = ()
    exact: bool = False
    """Whether a script gets the content with the values of secrets that are in it."""


BROKEN: Final = Ending("unknown", "internal error")
"""The executor itself failed over it; how far the call came, nobody can tell."""


class DeniedError(KeryxError):
    """Inside the executor: the call may not run."""


def of_return(call: Call, returned: Returned) -> Ending:
    """A tool that returns after a cancel gave what it had, unless it says that it was done."""
    cancellation = call.scope.cancellation
    if cancellation is None or returned.complete:
        return Ending("completed", None, returned.content, returned.exact)
    return Ending("cancelled", cancellation.reason, returned.content or partial_of(call))


def of_error(call: Call, error: BaseException) -> Ending:
    """The outcome of a call whose tool raised, or that was stopped before it started."""
    if isinstance(error, DeniedError):
        return Ending("denied", str(error))
    if isinstance(error, WardenLostError):
        return Ending("unknown", "warden lost", (*partial_of(call), Text(str(error))))
    cancellation = call.scope.cancellation
    if cancellation is not None:
        expected = isinstance(error, asyncio.CancelledError | ToolCancelledError)
        note = () if expected else (Text(described(error)),)
        return Ending("cancelled", cancellation.reason, (*partial_of(call), *note))
    if isinstance(error, asyncio.CancelledError):
        if call.task is not None and call.task.cancelling():
            return Ending("cancelled", "shutdown", partial_of(call))
        return Ending("failed", None, (*partial_of(call), Text(SELF_CANCELLED)))
    return Ending("failed", None, (*partial_of(call), Text(described(error))))


def of_left_over(call: Call) -> Ending:
    """Nobody knows how it will end; what it emitted so far is kept."""
    return Ending("unknown", call.scope.reason, partial_of(call))


def partial_of(call: Call) -> tuple[Part, ...]:
    """The output so far."""
    text = call.output.text()
    return (Text(text),) if text else ()


def outcome_of(call: Call, ending: Ending, *, left_over: bool) -> CallOutcome:
    """The one outcome of the call, as it is logged and shown."""
    names = (*((call.call_id,) if left_over else ()), *call.nested_left_over)
    outcome = ending.outcome
    if outcome == "cancelled" and names:
        # Something below it may still run, so it cannot claim that nothing does.
        outcome = "unknown"
    content = ending.content
    if call.parent is None or not ending.exact:
        content = call.environment.redactor.content(content)
    if call.parent is None:
        # For a model. A program that made the call reads `overlaps`, and the content as it is.
        content = bounded(content)
        if call.overlaps:
            content = (*content, Text(_overlap_note(call.overlaps)))
    started_at = call.started_at
    return CallOutcome(
        call_id=call.call_id,
        tool=call.tool.name,
        outcome=outcome,
        reason=ending.reason,
        started=started_at is not None,
        content=content,
        duration=0.0 if started_at is None else call.scope.clock.monotonic() - started_at,
        left_over=names,
        overlaps=call.overlaps,
    )


def broken(call: Call) -> CallOutcome:
    """The outcome of a call whose real one could not be made."""
    return CallOutcome(
        call_id=call.call_id,
        tool=call.tool.name,
        outcome=BROKEN.outcome,
        reason=BROKEN.reason,
        started=call.started_at is not None,
    )


def failed(call_id: str, tool: str, text: str) -> CallOutcome:
    """A call that could not even be accepted."""
    return CallOutcome(call_id=call_id, tool=tool, outcome="failed", content=(Text(text),))


def _overlap_note(call_ids: tuple[str, ...]) -> str:
    return (
        f"[note: {', '.join(call_ids)} may still be running and touches the same things; "
        "check the result]"
    )
