"""A session from elsewhere, as it may go on here: it reaches and allows nothing by itself. Pure.

Whoever wrote the file may not be trusted. So its approvals count once, its settings become those
that this home has, and the file changes of another machine cannot be reverted on this one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from keryx import events as ev
from keryx.app.portable.conversation_log import Place
from keryx.app.portable.session_file import SessionFile
from keryx.config import DEFAULT
from keryx.engine.log.state import Settings
from keryx.ids import new_id
from keryx.ports.tags import LONGEST_TAG, MOST_TAGS, distinct_tags

BY: Final = "import"
LOCAL: Final = "local"


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """What imported sessions may keep of their settings, and what they get instead."""

    place: Place
    folders: Collection[str]
    """The workspaces that they may keep."""
    personalities: Mapping[str, Collection[str]]
    """The names of the personalities, by profile."""


def workspace_of(session: SessionFile) -> str:
    """Return the folder that the session works in, at its end."""
    return _settings(session).workspace


def adopted(session: SessionFile, adoption: Adoption, *, rename: bool = False) -> SessionFile:
    """Return the session with settings of this home; with `rename`, under a new id."""
    session_id = new_id("s") if rename else session.session_id
    opened, *later = session.events
    assert isinstance(opened, ev.SessionOpened), "a log begins with its opening"
    last = session.events[-1]
    fork = ev.ForkPoint(session_id=session_id, up_to=last.seq)
    first = msgspec.structs.replace(opened, parent=None, brought=(), fork=fork)
    facts = [_allowing_nothing(fact) for fact in (first, *later)]
    changes = _changes(_settings(session), adoption)
    if changes:
        fields: dict[str, Any] = {"session_id": session_id, "seq": last.seq + 1, "at": last.at}
        facts.append(ev.SessionChanged(by=BY, **fields, **changes))
    renamed = [msgspec.structs.replace(fact, session_id=session_id) for fact in facts]
    return SessionFile(events=tuple(renamed), blobs=session.blobs)


def _settings(session: SessionFile) -> Settings:
    settings = Settings()
    for fact in session.events:
        if isinstance(fact, ev.SessionOpened | ev.SessionChanged):
            settings.apply(fact)
    return settings


def _allowing_nothing(fact: ev.LoggedEvent) -> ev.LoggedEvent:
    """Return the fact; an approval for the whole session counts for its own call only."""
    if isinstance(fact, ev.ApprovalAnswered) and fact.decision in ("session", "always"):
        return msgspec.structs.replace(fact, decision="once", reach=None)
    return fact


def _changes(settings: Settings, adoption: Adoption) -> dict[str, Any]:
    place, profile = adoption.place, settings.profile
    if profile not in adoption.personalities:
        profile = DEFAULT
    is_named = settings.personality in adoption.personalities.get(profile, ())
    here: dict[str, Any] = {
        "profile": profile,
        "place": LOCAL,
        "workspace": place.workspace
        if settings.workspace not in adoption.folders
        else settings.workspace,
        "tools": tuple(name for name in settings.tools if name in place.tools),
        "personality": settings.personality if is_named else None,
        "approvals": None,
        "tags": distinct_tags(tag[:LONGEST_TAG] for tag in settings.tags)[:MOST_TAGS],
    }
    return {name: value for name, value in here.items() if getattr(settings, name) != value}
