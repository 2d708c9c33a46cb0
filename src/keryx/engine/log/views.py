"""Builds the view of a session that screens show. Pure."""

from __future__ import annotations

import msgspec

from keryx import events as ev
from keryx.engine.log.fold import Fold
from keryx.engine.log.state import SETTINGS, Queued, Settings
from keryx.ports.view import (
    QueuedMessage,
    RestingSession,
    SessionSettings,
    SessionView,
    TurnUnderWay,
    Typed,
)


def view_of(fold: Fold, draft: Typed) -> SessionView:
    turn = fold.turn
    started = {} if turn is None else turn.started
    return SessionView(
        session_id=fold.session_id,
        seq=fold.last_seq,
        settings=_settings(fold.settings),
        turn=None
        if turn is None
        else TurnUnderWay(turn_id=turn.turn_id, cancelling=turn.cancelling is not None),
        queue=tuple(map(_queued, (*fold.steers.values(), *fold.queue.values()))),
        approvals=tuple(fold.approvals.values()),
        questions=tuple(fold.questions.values()),
        calls=(*started.values(), *fold.person_calls.values()),
        context=_context(fold.last_reply, fold.compacted),
        draft=draft,
    )


def view_at_rest(session_id: str, idle: RestingSession, draft: Typed) -> SessionView:
    """Return the view of an idle session, without reading its log."""
    settings = Settings()
    for event in idle.settings:
        settings.apply(event)
    return SessionView(
        session_id=session_id,
        seq=idle.seq,
        settings=_settings(settings),
        turn=None,
        queue=(),
        approvals=(),
        questions=(),
        calls=(),
        context=_context(idle.last_reply, idle.compacted),
        draft=draft,
    )


def _settings(settings: Settings) -> SessionSettings:
    return SessionSettings(**{name: getattr(settings, name) for name in SETTINGS})


def _queued(message: Queued) -> QueuedMessage:
    names = QueuedMessage.__struct_fields__
    return QueuedMessage(**{name: getattr(message, name) for name in names})


def _context(
    last: ev.StepReplied | None, compacted: ev.ContextCompacted | None
) -> ev.ContextSize | None:
    """Return the context size as last counted, or as a later summary left it."""
    if last is None or compacted is None or compacted.seq < last.seq:
        return None if last is None else last.context
    return msgspec.structs.replace(last.context, last_prompt_tokens=compacted.tokens_after)
