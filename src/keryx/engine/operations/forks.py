"""A session that begins as another one was: the same facts up to the end of a turn, under a new id.

The facts are copied, numbers and all, so each of the two stands alone: either can be deleted and
the other is whole. What was under way at that point is closed in the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.log.fold import Fold
from keryx.engine.session_context import SessionContext
from keryx.errors import UserMustActError
from keryx.ports.dispatch import Done
from keryx.ports.store import Commit

BY: Final = "keryx"
"""Who closes what was under way."""
_ENVELOPE: Final = ("session_id", "seq", "at", "v")
_Fact = tuple[type[ev.LoggedEvent], dict[str, Any]]
"""A fact to be stated: its kind, and its fields without those that all have."""


async def fork(context: SessionContext, dedup: Dedup, command: cm.ForkSession) -> Done:
    """Make the new session; it is there, and at rest, once this returns."""
    row, store = row_of(command), context.services.store
    if await dedup.was_taken(row):
        return Done(True)
    new = command.new_session_id
    if await store.session(new) is None:
        log = await store.events(context.fold.session_id)
        facts = forked(log, new, command.turn_id, at=context.services.clock.wall())
        epoch = await store.claim(new)
        await store.append(Commit(session_id=new, epoch=epoch, events=facts))
        context.services.changed(new)
    dedup.take(row)
    await context.log.durable()
    return Done(True)


def forked(
    log: Sequence[ev.LoggedEvent], session_id: str, turn_id: str | None, *, at: float
) -> tuple[ev.LoggedEvent, ...]:
    """The facts of the new session. Pure."""
    opened = log[0]
    assert isinstance(opened, ev.SessionOpened), "a log begins with its opening"
    up_to = _end_of(log, turn_id)
    begun = msgspec.structs.replace(
        opened,
        session_id=session_id,
        parent=None,
        fork=ev.ForkPoint(session_id=opened.session_id, up_to=up_to),
    )
    facts: list[ev.LoggedEvent] = [
        begun,
        *(msgspec.structs.replace(each, session_id=session_id) for each in log[1:up_to]),
    ]
    fold = Fold(session_id)
    for fact in facts:
        fold.apply(fact)

    def state(fields_of_facts: Iterable[_Fact]) -> None:
        for kind, fields in fields_of_facts:
            seq = fold.last_seq + 1
            facts.append(kind(session_id=session_id, seq=seq, at=at, **fields))
            fold.apply(facts[-1])

    state(_later(log, up_to))
    state(_closing(fold))
    return tuple(facts)


def _end_of(log: Sequence[ev.LoggedEvent], turn_id: str | None) -> int:
    """The number of the last fact to be shared."""
    ends = {fact.turn_id: fact.seq for fact in log if isinstance(fact, ev.TurnFinished)}
    if turn_id is None:
        return max(ends.values(), default=1)
    if turn_id not in ends:
        raise UserMustActError("a session is forked at the end of a turn, and that one has none")
    return ends[turn_id]


def _later(log: Sequence[ev.LoggedEvent], up_to: int) -> Iterator[_Fact]:
    """What came after the shared facts and holds for them: what was undone of them, summaries of
    them, and settings that were changed before the next turn began."""
    turns = {fact.turn_id for fact in log[:up_to] if isinstance(fact, ev.TurnFinished)}
    is_next = False
    for fact in log[up_to:]:
        match fact:
            case ev.TurnStarted():
                is_next = True
            case ev.SessionChanged() if not is_next:
                yield _again(fact)
            case ev.TurnUndone() if fact.turn_id in turns:
                yield _again(fact)
            case ev.ContextCompacted() if fact.up_to <= up_to and not is_next:
                yield _again(fact)
            case _:
                pass


def _again(fact: ev.LoggedEvent) -> _Fact:
    """The same fact, to be stated at another place."""
    fields = {name: getattr(fact, name) for name in fact.__struct_fields__}
    return type(fact), {name: fields[name] for name in fields if name not in _ENVELOPE}


def _closing(fold: Fold) -> list[_Fact]:
    """Nothing that was queued or under way there happens here a second time."""
    waiting = (*fold.queue, *fold.steers)
    closing: list[_Fact] = [
        (ev.MessageWithdrawn, {"message_id": each, "by": BY}) for each in waiting
    ]
    for asked in fold.approvals.values():
        target = {"approval_id": asked.approval_id, "call_id": asked.call_id, "turn_id": None}
        closing.append((ev.ApprovalExpired, {**target, "cause": "parent"}))
    for question in fold.questions.values():
        target = {"question_id": question.question_id, "call_id": question.call_id}
        closing.append((ev.QuestionExpired, {**target, "turn_id": None, "cause": "parent"}))
    for call in fold.person_calls.values():
        ended = {"call_id": call.call_id, "tool": call.tool, "turn_id": None, "started": True}
        ended |= {"outcome": "unknown", "reason": "parent", "result": (), "duration": 0.0}
        closing.append((ev.CallFinished, ended))
    if fold.settings.title:
        closing.append((ev.SessionChanged, {"by": BY, "title": f"{fold.settings.title} (fork)"}))
    return closing
