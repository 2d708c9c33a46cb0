"""Forks a session: a new session starts with the facts of another, up to the end of a turn.

The facts are copied with their numbers, so the two sessions are independent: either can be deleted.
What was queued or running at that point is closed in the copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.log.fold import Fold
from keryx.engine.log.log_writer import LogWriter
from keryx.engine.log.state import Replied
from keryx.engine.session_context import HostServices
from keryx.errors import UserMustActError
from keryx.ports.dispatch import Done
from keryx.ports.store import Commit

BY: Final = "keryx"
"""The author of the facts that close what was running."""
_ENVELOPE: Final = ("session_id", "seq", "at", "v")
_Fact = tuple[type[ev.LoggedEvent], dict[str, Any]]
"""A fact to be recorded: its kind, and its fields without the envelope."""


async def fork(
    services: HostServices, log: LogWriter, dedup: Dedup, command: cm.ForkSession
) -> Done:
    """Create the new session. It exists, and is idle, once this returns."""
    row, store = row_of(command), services.store
    if await dedup.was_taken(row):
        return Done(True)
    new = command.new_session_id
    if await store.session(new) is None:
        events = await store.events(command.session_id)
        at = services.clock.wall()
        facts = forked(events, new, command.turn_id, at=at, title=command.title or None)
        epoch = await store.claim(new)
        await store.append(Commit(session_id=new, epoch=epoch, events=facts))
        services.changed(new)
    dedup.take(row)
    await log.wait_durable()
    return Done(True)


def forked(
    log: Sequence[ev.LoggedEvent],
    session_id: str,
    turn_id: str | None,
    *,
    at: float,
    title: str | None = None,
) -> tuple[ev.LoggedEvent, ...]:
    """Return the facts of the new session; without a `title`, its title says what it is. Pure."""
    opened = log[0]
    assert isinstance(opened, ev.SessionOpened), "a log begins with its opening"
    up_to = _last_shared(log, turn_id)
    first = msgspec.structs.replace(
        opened,
        session_id=session_id,
        parent=None,
        fork=ev.ForkPoint(session_id=opened.session_id, up_to=up_to),
    )
    facts: list[ev.LoggedEvent] = [
        first,
        *(msgspec.structs.replace(fact, session_id=session_id) for fact in log[1:up_to]),
    ]
    fold = Fold(session_id)
    for fact in facts:
        fold.apply(fact)

    def append(new_facts: Iterable[_Fact]) -> None:
        for kind, fields in new_facts:
            seq = fold.last_seq + 1
            facts.append(kind(session_id=session_id, seq=seq, at=at, **fields))
            fold.apply(facts[-1])

    append(_later_facts(log, up_to))
    append(_closing_facts(fold))
    if title is None and fold.settings.title:
        title = f"{fold.settings.title} (fork)"
    if title is not None:
        append([(ev.SessionChanged, {"by": BY, "title": title})])
    return tuple(facts)


def closing_facts(
    log: Sequence[ev.LoggedEvent], session_id: str, *, at: float
) -> tuple[ev.LoggedEvent, ...]:
    """Return the facts that close what is open at the end of a log that is copied. Pure.

    A turn that was running is being cancelled: who opens the session ends it, and runs nothing.
    """
    fold = Fold(session_id)
    for fact in log:
        fold.apply(fact)
    _check_results(fold)
    facts: list[ev.LoggedEvent] = []
    turn, new = fold.turn, [] if fold.turn is None else _cancelling(fold)
    for kind, fields in [*new, *_closing_facts(fold, in_turn=turn is not None)]:
        seq = fold.last_seq + 1
        facts.append(kind(session_id=session_id, seq=seq, at=at, **fields))
        fold.apply(facts[-1])
    return tuple(facts)


def _check_results(fold: Fold) -> None:
    """Raise `AssertionError` if a model would see nothing of what comes after some call.

    Only the last reply of an open turn may have calls without a result.
    """
    replies = [item for item in fold.history if isinstance(item, Replied)]
    if replies and fold.turn is not None and replies[-1].turn_id == fold.turn.turn_id:
        replies.pop()
    assert all(reply.complete for reply in replies), "a call has no result"


def _cancelling(fold: Fold) -> list[_Fact]:
    turn = fold.turn
    if turn is None or turn.cancelling is not None:
        return []
    return [(ev.TurnCancelling, {"turn_id": turn.turn_id, "reason": "parent", "by": BY})]


def _last_shared(log: Sequence[ev.LoggedEvent], turn_id: str | None) -> int:
    """Return the number of the last fact that the fork shares."""
    ends = {fact.turn_id: fact.seq for fact in log if isinstance(fact, ev.TurnFinished)}
    if turn_id is None:
        return max(ends.values(), default=1)
    if turn_id not in ends:
        raise UserMustActError(
            "a session is forked at the end of a turn, and that turn has not ended; choose another"
        )
    return ends[turn_id]


def _later_facts(log: Sequence[ev.LoggedEvent], up_to: int) -> Iterator[_Fact]:
    """Yield later facts that concern the shared ones: undone turns, summaries, and settings that
    were changed before the next turn began."""
    turns = {fact.turn_id for fact in log[:up_to] if isinstance(fact, ev.TurnFinished)}
    is_next = False
    for fact in log[up_to:]:
        match fact:
            case ev.TurnStarted():
                is_next = True
            case ev.SessionChanged() if not is_next:
                yield _copied(fact)
            case ev.TurnUndone() | ev.TurnRestored() if fact.turn_id in turns:
                yield _within(turns, _copied(fact))
            case ev.ContextCompacted() if fact.up_to <= up_to and not is_next:
                yield _copied(fact)
            case _:
                pass


def _within(turns: Collection[str], fact: _Fact) -> _Fact:
    """Return the fact without the answers that the fork does not have."""
    kind, fields = fact
    if "variants" in fields:
        fields = {**fields, "variants": tuple(t for t in fields["variants"] if t in turns)}
    return kind, fields


def _copied(fact: ev.LoggedEvent) -> _Fact:
    """Return the fact without its envelope, to be recorded at another place."""
    fields = {name: getattr(fact, name) for name in fact.__struct_fields__}
    return type(fact), {name: fields[name] for name in fields if name not in _ENVELOPE}


def _closing_facts(fold: Fold, *, in_turn: bool = False) -> list[_Fact]:
    """Return facts that close what was queued or running, so that it does not happen twice.

    In an open turn, the turn itself expires its requests when it ends.
    """
    waiting = (*fold.queue, *fold.steers)
    closing: list[_Fact] = [
        (ev.MessageWithdrawn, {"message_id": message_id, "by": BY}) for message_id in waiting
    ]
    for approval in () if in_turn else fold.approvals.values():
        target = {"approval_id": approval.approval_id, "call_id": approval.call_id, "turn_id": None}
        closing.append((ev.ApprovalExpired, {**target, "cause": "parent"}))
    for question in () if in_turn else fold.questions.values():
        target = {"question_id": question.question_id, "call_id": question.call_id}
        closing.append((ev.QuestionExpired, {**target, "turn_id": None, "cause": "parent"}))
    for call in fold.person_calls.values():
        ended = {"call_id": call.call_id, "tool": call.tool, "turn_id": None, "started": True}
        ended |= {"outcome": "unknown", "reason": "parent", "result": (), "duration": 0.0}
        closing.append((ev.CallFinished, ended))
    return closing
