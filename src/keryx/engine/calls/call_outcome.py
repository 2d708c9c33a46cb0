"""Turns what a tool returned or raised into the one outcome of its call."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from keryx.engine.calls.call import Call
from keryx.engine.calls.truncation import bounded
from keryx.errors import KeryxError, OutcomeUnknownError, ToolCancelledError, WardenLostError
from keryx.messages import CallOutcome, Outcome, Part, Text
from keryx.ports.workers import SELF_CANCELLED, Returned, described


class Ending(msgspec.Struct, frozen=True):
    """How the work of a call ended. Its `CallOutcome` is made from this."""

    outcome: Outcome
    reason: str | None = None
    content: tuple[Part, ...] = ()
    exact: bool = False
    """Whether a script gets the content unredacted."""


LONGEST_INPUT: Final = 2_000
"""Characters of a changed input that a model is shown."""

BROKEN: Final = Ending("unknown", "internal error")
"""The executor itself failed, so it is unknown how far the call came."""


class DeniedError(KeryxError):
    """The call may not run. Used inside the executor only."""


def of_return(call: Call, returned: Returned) -> Ending:
    """Return how a call ended whose tool returned.

    After a cancel, the returned content is partial, unless the tool marks it as complete.
    """
    cancellation = call.scope.cancellation
    if cancellation is None or returned.complete:
        return Ending("completed", None, returned.content, returned.exact)
    return Ending("cancelled", cancellation.reason, returned.content or partial_output(call))


def of_error(call: Call, error: BaseException) -> Ending:
    """Return how a call ended whose tool raised, or that was stopped before it started."""
    if isinstance(error, DeniedError):
        return Ending("denied", str(error))
    if isinstance(error, WardenLostError | OutcomeUnknownError):
        reason = "warden lost" if isinstance(error, WardenLostError) else call.scope.reason
        return Ending("unknown", reason, (*partial_output(call), Text(str(error))))
    cancellation = call.scope.cancellation
    if cancellation is not None:
        expected = isinstance(error, asyncio.CancelledError | ToolCancelledError)
        note = () if expected else (Text(described(error)),)
        return Ending("cancelled", cancellation.reason, (*partial_output(call), *note))
    if isinstance(error, asyncio.CancelledError):
        if call.task is not None and call.task.cancelling():
            return Ending("cancelled", "shutdown", partial_output(call))
        return Ending("failed", None, (*partial_output(call), Text(SELF_CANCELLED)))
    return Ending("failed", None, (*partial_output(call), Text(described(error))))


def of_left_over(call: Call) -> Ending:
    """Return the ending of a left-over call: unknown, with its output so far."""
    return Ending("unknown", call.scope.reason, partial_output(call))


def partial_output(call: Call) -> tuple[Part, ...]:
    """Return the output of the call so far."""
    text = call.output.text()
    return (Text(text),) if text else ()


def outcome_of(call: Call, ending: Ending, *, left_over: bool) -> CallOutcome:
    """Return the one outcome of the call, as it is logged and shown."""
    left_over_ids = (*((call.call_id,) if left_over else ()), *call.nested_left_over)
    outcome = ending.outcome
    if outcome == "cancelled" and left_over_ids:
        # A nested call may still run, so "cancelled" would not be true.
        outcome = "unknown"
    content = ending.content
    if call.parent is None or not ending.exact:
        content = call.environment.redactor.content(content)
    if call.parent is None:
        # For a model. A script that made the call reads `overlaps`, and the full content.
        content = bounded(content)
        if call.overlaps:
            content = (*content, Text(_overlap_note(call.overlaps)))
        if call.actions:
            content = (*content, *bounded(_hook_notes(call)))
    started_at = call.started_at
    return CallOutcome(
        call_id=call.call_id,
        tool=call.tool.name,
        outcome=outcome,
        reason=ending.reason,
        started=started_at is not None,
        content=content,
        duration=0.0 if started_at is None else call.scope.clock.monotonic() - started_at,
        left_over=left_over_ids,
        overlaps=call.overlaps,
        hooks=tuple(call.actions),
    )


def broken(call: Call) -> CallOutcome:
    """Return the outcome of a call whose real outcome could not be built."""
    return CallOutcome(
        call_id=call.call_id,
        tool=call.tool.name,
        outcome=BROKEN.outcome,
        reason=BROKEN.reason,
        started=call.started_at is not None,
    )


def failed(call_id: str, tool: str, text: str) -> CallOutcome:
    """Return the outcome of a call that could not be accepted."""
    return CallOutcome(call_id=call_id, tool=tool, outcome="failed", content=(Text(text),))


def _hook_notes(call: Call) -> tuple[Text, ...]:
    """Return what hooks did, for a model. The outcome itself says that one refused the call."""
    notes: list[str] = []
    for action in call.actions:
        match action.action:
            case "input":
                shown = call.arguments[:LONGEST_INPUT]
                notes.append(f"the hook {action.hook!r} changed the input to: {shown}")
            case "result":
                notes.append(f"the hook {action.hook!r} replaced the result")
            case "note":
                notes.append(f"note of the hook {action.hook!r}: {action.detail}")
            case "fault" if action.event == "after_call":
                notes.append(f"the hook {action.hook!r} after the call failed: {action.detail}")
            case _:
                pass
    return tuple(Text(f"[{note}]") for note in notes)


def _overlap_note(call_ids: tuple[str, ...]) -> str:
    return (
        f"[note: {', '.join(call_ids)} may still be running and touches the same things; "
        "check the result]"
    )
