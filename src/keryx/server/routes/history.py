"""The history of a session: read, undo, revert, fork and compact it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from litestar import get, post
from litestar.params import JSONBody
from msgspec import UNSET

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.context.window import text_tokens
from keryx.engine.log.rebuild import folded
from keryx.ids import new_id
from keryx.ports.plan import NewestPlan, plan_of
from keryx.ports.store import Store
from keryx.server import schemas
from keryx.server.problems import conflict, refusals_as_conflicts, unprocessable
from keryx.server.routes.params import (
    PAGE,
    After,
    Before,
    Limit,
    SessionId,
    TheCaller,
    TheService,
    TurnId,
)
from keryx.server.service import Service

READ_AT_ONCE = 500
MOST_PAGES_OF_PLAN = 6
"""A plan further back than this many pages of the transcript is not the current one any more."""


class FactPage(msgspec.Struct, frozen=True):
    """Oldest first; `next` is the `after` of the page that goes on."""

    facts: tuple[ev.LoggedEvent, ...]
    next: int | None


@get("/api/sessions/{session_id:str}/messages")
async def transcript(
    service: TheService,
    session_id: SessionId,
    before: Before = None,
    after: After = None,
    limit: Limit = PAGE,
) -> schemas.TranscriptPage:
    """What a person reads, oldest first: the page before a place or after it, or the last one."""
    if before is not None and after is not None:
        raise unprocessable("`before` and `after` exclude each other", "use only one of them")
    upto = (await service.row(session_id)).last_seq
    rows = await service.host_client.store.transcript(
        session_id, before=before, after=after, limit=limit
    )
    edge = 0 if after is None else -1
    following = rows[edge].seq if len(rows) == limit else None
    entries = tuple(schemas.TranscriptEntry(row.seq, row.event) for row in rows)
    return schemas.TranscriptPage(entries, following, upto)


@get("/api/sessions/{session_id:str}/facts")
async def facts(
    service: TheService, session_id: SessionId, after: After = None, limit: Limit = PAGE
) -> FactPage:
    """The facts of the log as they are, oldest first: the page after a fact, or the first one."""
    await service.row(session_id)
    events = await service.host_client.store.events(session_id, after=after or 0, limit=limit)
    following = events[-1].seq if len(events) == limit else None
    return FactPage(tuple(events), following)


@get("/api/sessions/{session_id:str}/plan")
async def plan(service: TheService, session_id: SessionId) -> NewestPlan:
    """Return the plan that the session's last call of `todo` wrote, if it is not long ago."""
    await service.row(session_id)
    before: int | None = None
    for _ in range(MOST_PAGES_OF_PLAN):
        rows = await service.host_client.store.transcript(
            session_id, before=before, limit=READ_AT_ONCE
        )
        for row in reversed(rows):
            written = plan_of(row.event)
            if written is not None:
                return NewestPlan(written.items, row.seq)
        if len(rows) < READ_AT_ONCE:
            break
        before = rows[0].seq
    return NewestPlan()


@get("/api/sessions/{session_id:str}/context")
async def context(service: TheService, session_id: SessionId) -> schemas.Context:
    """What the model is told besides the messages, and in place of the earlier ones."""
    await service.row(session_id)
    view = await service.host_client.view(session_id)
    log = await service.host_client.store.events(session_id)
    fold = await folded(session_id, log)
    parts: list[schemas.PromptPart] = []
    for part, blob in fold.prompt.items():
        data = await service.host_client.store.blob(blob)
        if data is not None:
            parts.append(schemas.PromptPart(part, data.decode(errors="replace")))
    summary = None if fold.compacted is None else fold.compacted.summary
    return schemas.Context(
        parts=tuple(parts),
        tools=view.settings.tools,
        context=view.context,
        summary=summary,
        summary_tokens=None if summary is None else text_tokens(summary),
        recalled=_recalled_last(log),
    )


def _recalled_last(log: Sequence[ev.LoggedEvent]) -> ev.MemoryRecalled | None:
    """Return what the memory gave to the last turn; None: nothing."""
    recalls = [
        event
        for event in log
        if isinstance(event, ev.MemoryRecalled) and isinstance(event.call_id, msgspec.UnsetType)
    ]
    turn = next((event for event in reversed(log) if isinstance(event, ev.TurnStarted)), None)
    if turn is None or not recalls or recalls[-1].turn_id != turn.turn_id:
        return None
    return recalls[-1]


@get("/api/sessions/{session_id:str}/changes")
async def changes(service: TheService, session_id: SessionId) -> schemas.Changes:
    """What the session changed on the disk."""
    await service.row(session_id)
    inherited, file_changes = 0, list[schemas.FileChanged]()
    for event in await service.host_client.store.events(session_id):
        if isinstance(event, ev.SessionOpened) and event.fork is not None:
            inherited = event.fork.up_to
        if isinstance(event, ev.FilesChanged) and event.seq > inherited:
            fields = (event.seq, event.path, event.call_id, event.turn_id, event.at)
            file_changes.append(schemas.FileChanged(*fields))
    return schemas.Changes(await service.host_client.diff(session_id), tuple(file_changes))


@post("/api/sessions/{session_id:str}/changes/revert", status_code=200)
async def revert(
    service: TheService,
    caller: TheCaller,
    session_id: SessionId,
    data: JSONBody[schemas.RevertBody],
) -> schemas.Nothing:
    """Revert changes of files: all of these, or none."""
    command = cm.RevertFiles(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        changes=data.changes,
    )
    await _do(service, command)
    return schemas.Nothing()


@post("/api/sessions/{session_id:str}/undo", status_code=200)
async def undo(
    service: TheService, caller: TheCaller, session_id: SessionId, data: JSONBody[schemas.UndoBody]
) -> schemas.Undone:
    """Undo a turn that is over, with its changes of files."""
    command = cm.UndoTurn(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        turn_id=data.turn_id,
        files=data.files,
    )
    return schemas.Undone(await _do(service, command))


@post("/api/sessions/{session_id:str}/turns/{turn_id:str}/restore", status_code=200)
async def restore(
    service: TheService, caller: TheCaller, session_id: SessionId, turn_id: TurnId
) -> schemas.Nothing:
    """Bring back a turn that another one replaced, and those that followed it.

    The session goes on from there; what replaced it can come back the same way.
    """
    command = cm.RestoreTurn(
        command_id=service.new_id(), session_id=session_id, by=caller.name, turn_id=turn_id
    )
    await _do(service, command)
    return schemas.Nothing()


@post("/api/sessions/{session_id:str}/fork", status_code=201)
async def fork(
    service: TheService, caller: TheCaller, session_id: SessionId, data: JSONBody[schemas.ForkBody]
) -> schemas.View:
    """A new session that shares this one's past, up to the end of a turn."""
    new = data.session_id or new_id("s")
    if data.session_id is not None:
        await _refuse_other(service.host_client.store, session_id, new)
    command = cm.ForkSession(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        new_session_id=new,
        turn_id=data.turn_id,
        title=UNSET if data.title is None else data.title,
    )
    await _do(service, command)
    return await service.view(new)


@post("/api/sessions/{session_id:str}/compact", status_code=200)
async def compact(
    service: TheService,
    caller: TheCaller,
    session_id: SessionId,
    data: JSONBody[schemas.CompactBody | None] = None,
) -> schemas.Nothing:
    """Replace the conversation so far by a summary, in what the model is sent.

    Answered when a model has written it and it is durable; meanwhile the session goes on.
    """
    command = cm.CompactContext(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        focus="" if data is None else data.focus,
    )
    await _do(service, command)
    return schemas.Nothing()


async def _do(service: Service, command: cm.Command) -> bool:
    """Do the command; a refusal is a conflict with the session's state, not a wrong request."""
    with refusals_as_conflicts():
        return await service.do(command)


async def _refuse_other(store: Store, session_id: str, new: str) -> None:
    """Raise `ProblemError` if the new id belongs to a session that is not this very fork."""
    first = await store.events(new, limit=1)
    if not first:
        return
    opened = first[0]
    fork = opened.fork if isinstance(opened, ev.SessionOpened) else None
    if fork is None or fork.session_id != session_id:
        raise conflict("Another session has that id already", "choose a new id")


ROUTES = (
    *(transcript, facts, plan, context, changes, revert),
    *(undo, restore, fork, compact),
)
