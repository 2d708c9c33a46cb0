"""Plans how a turn goes on that a crash, or a graceful stop, interrupted. Pure: log → plan.

Finished calls are never run again. A started call is run again only if its tool says that this is
safe. A turn that was resumed twice without a new fact is parked: it seems to kill its process.
"""

from __future__ import annotations

import msgspec

from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Replied
from keryx.messages import ToolCall

MOST_RESUMES = 2


class Plan(msgspec.Struct, frozen=True):
    """What to log first, and which calls to run then."""

    attempt: int
    open_step: str | None
    lost: tuple[ToolCall, ...]
    """Started calls; it is unknown how far they came."""
    to_run: tuple[ToolCall, ...]
    """Calls that never started, or are safe to run again."""
    cancelled: bool
    """The turn was being cancelled: nothing of it is run again."""
    parked: bool
    doubtful: bool
    """It was resumed before and logged nothing since: it may be what kills its host."""
    final_text: str | None
    """The text of the last reply, if the model had finished; else None."""


def plan(fold: Fold) -> Plan:
    """Return how the open turn of this log goes on."""
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
        final_text=_final_text(fold, last),
    )


def unfinished(fold: Fold) -> list[ToolCall]:
    """Return the calls of the open turn that have no outcome."""
    last = fold.history[-1] if fold.history else None
    if fold.turn is None or not isinstance(last, Replied) or last.turn_id != fold.turn.turn_id:
        return []
    return last.unfinished


def goes_on_later(fold: Fold, call_id: str) -> bool:
    """Return whether a call that a graceful stop ends is run at the next start.

    It has not begun, takes up its work again, or waits for an answer and may be repeated.
    """
    started = None if fold.turn is None else fold.turn.started.get(call_id)
    if started is None or started.replay == "keyed":
        return True
    is_asking = any(question.call_id == call_id for question in fold.questions.values())
    return started.replay == "safe" and is_asking


def _waits_for_a_person(fold: Fold, unfinished: list[ToolCall]) -> bool:
    """Return whether the turn only waits for answers: that cannot be what kills the host."""
    waiting = {request.call_id for request in fold.approvals.values()}
    if fold.turn is not None:
        waiting |= fold.turn.waiting_client_calls()
    return bool(unfinished) and all(call.call_id in waiting for call in unfinished)


def _final_text(fold: Fold, last: object) -> str | None:
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
