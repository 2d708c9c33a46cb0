"""What to do with a turn that a crash, or a graceful stop, left in the middle. Pure: log → plan.

Finished calls are never run again. A started call is run again only if its tool says that this is
safe. A turn that was resumed twice with no new fact in between is parked: it kills its process.
"""

from __future__ import annotations

import msgspec

from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Replied
from keryx.messages import ToolCall

MOST_RESUMES = 2


class Plan(msgspec.Struct, frozen=True):
    """Facts to state first, then calls to run."""

    attempt: int
    open_step: str | None
    lost: tuple[ToolCall, ...]
    """Started, and nobody can tell how far they came."""
    to_run: tuple[ToolCall, ...]
    """Never started, or safe to run again."""
    cancelled: bool
    """The turn was being cancelled: nothing of it is revived."""
    parked: bool
    doubtful: bool
    """It was resumed before and logged nothing since: perhaps it is what kills its host."""
    rested: str | None
    """The text of the last reply, if the model had said its last word already."""


def plan(fold: Fold) -> Plan:
    """How the open turn of this log goes on."""
    turn = fold.turn
    assert turn is not None
    last = fold.history[-1] if fold.history else None
    open_calls = unfinished(fold)
    cancelled = turn.cancelling is not None
    harmless = turn.suspended or _waits_for_a_person(fold, open_calls)
    parked = not cancelled and not harmless and turn.resumes >= MOST_RESUMES
    lost: list[ToolCall] = []
    to_run: list[ToolCall] = []
    for call in open_calls:
        started = turn.started.get(call.call_id)
        if started is not None and (started.replay == "never" or cancelled or parked):
            lost.append(call)
        else:
            to_run.append(call)
    return Plan(
        attempt=turn.resumes + 1,
        open_step=None if turn.step is None else turn.step.step_id,
        lost=tuple(lost),
        to_run=tuple(to_run),
        cancelled=cancelled,
        parked=parked,
        doubtful=not (cancelled or parked or harmless) and turn.resumes > 0,
        rested=_rested(fold, last),
    )


def unfinished(fold: Fold) -> list[ToolCall]:
    """The calls of the open turn that have no outcome."""
    last = fold.history[-1] if fold.history else None
    if fold.turn is None or not isinstance(last, Replied) or last.turn_id != fold.turn.turn_id:
        return []
    return last.unfinished


def _waits_for_a_person(fold: Fold, unfinished: list[ToolCall]) -> bool:
    """Whether all that it does is wait for consent: that kills no host, however often it dies."""
    asked = {each.call_id for each in fold.approvals.values()}
    return bool(unfinished) and all(call.call_id in asked for call in unfinished)


def _rested(fold: Fold, last: object) -> str | None:
    turn = fold.turn
    if (
        turn is not None
        and isinstance(last, Replied)
        and last.turn_id == turn.turn_id
        and not last.reply.calls
        and not last.reply.cut
        and not fold.steers
        and turn.step is None
    ):
        return last.reply.text
    return None
