"""Lists, adds, edits, confirms and erases memories; shows how far the providers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from litestar import delete, get, patch, post
from litestar.params import FromQuery, JSONBody, PathParameter, QueryParameter

from keryx.app.memory.attached_memory import MemoryOffError
from keryx.app.memory.memory_client import is_stuck, item_text
from keryx.errors import StoreError
from keryx.ports.memory import Memory, MemoryReplacedError, profile_and_person
from keryx.ports.store import Store
from keryx.server.problems import CONFLICT, ProblemError, from_error, not_found
from keryx.server.routes.memory import memory_schemas as schemas
from keryx.server.routes.params import PAGE, Before, Limit, TheService
from keryx.server.schemas import ID_PATTERN
from keryx.server.service import Service

MemoryId = Annotated[str, PathParameter(pattern=ID_PATTERN, description="A memory.")]
Words = Annotated[str | None, QueryParameter(max_length=500, description="Words to search for.")]
Profile = Annotated[str | None, QueryParameter(max_length=200, description="Only of this profile.")]
Workspace = Annotated[
    str | None,
    QueryParameter(max_length=4_096, description="Only of this folder, and about the user."),
]


@get("/api/memory")
async def list_memories(
    service: TheService,
    q: Words = None,
    profile: Profile = None,
    workspace: Workspace = None,
    limit: Limit = PAGE,
    before: Before = None,
    ended: FromQuery[bool] = False,  # noqa: FBT002 (a parameter of the query)
) -> schemas.MemoryList:
    """What is remembered, the newest first; with `q`, what has all these words, the best first.

    `ended` lists what was replaced or removed.
    """
    memory, store = service.host_client.memory, service.host_client.store
    if q is not None:
        hits = await memory.search(q, profile=profile, workspace=workspace, limit=limit)
        return schemas.MemoryList(await _items(store, hits), None)
    page = await memory.list(
        profile=profile, workspace=workspace, ended=ended, limit=limit, before=before
    )
    return schemas.MemoryList(await _items(store, page.memories), page.next)


@post("/api/memory", status_code=201)
async def add_memory(
    service: TheService, data: JSONBody[schemas.NewMemory]
) -> schemas.RememberedItem:
    """Remember a fact in a person's own words."""
    workspace = "" if data.workspace is None else await service.folder(data.workspace)
    memory = await service.host_client.memory.add(
        data.text, about=data.about, workspace=workspace, profile=data.profile
    )
    return await _item(service.host_client.store, memory)


@patch("/api/memory/{memory_id:str}")
async def edit_memory(
    service: TheService, memory_id: MemoryId, data: JSONBody[schemas.MemoryEdit]
) -> schemas.RememberedItem:
    """Replace a memory; 409 with the newest if it was replaced or removed meanwhile."""
    await _existing(service, memory_id)
    store = service.host_client.store
    try:
        memory = await service.host_client.memory.edit(memory_id, data.text)
    except MemoryReplacedError as error:
        newest = None if error.newest is None else await _item(store, error.newest)
        raise _conflict(error, newest) from error
    return await _item(store, memory)


def _conflict(error: MemoryReplacedError, newest: schemas.RememberedItem | None) -> ProblemError:
    refusal = from_error(error, CONFLICT, "changed_meanwhile")
    fields = msgspec.structs.asdict(refusal.problem)
    refusal.problem = schemas.MemoryConflict(**fields, newest=newest)
    return refusal


@post("/api/memory/{memory_id:str}/confirm", status_code=200)
async def confirm_memory(service: TheService, memory_id: MemoryId) -> schemas.RememberedItem:
    """Trust a memory like a person's own words."""
    await _existing(service, memory_id)
    await service.host_client.memory.confirm(memory_id)
    return await _item(service.host_client.store, await _existing(service, memory_id))


@delete("/api/memory/{memory_id:str}", status_code=200)
async def forget_memory(service: TheService, memory_id: MemoryId) -> schemas.Erased:
    """Erase a memory and what it replaced, here and at every provider; say what remains there."""
    await _existing(service, memory_id)
    forgotten = await service.host_client.memory.forget([memory_id])
    return schemas.Erased(forgotten.erased, forgotten.remaining)


@get("/api/memory/state")
async def show_state(service: TheService) -> schemas.MemoryStatus:
    """Whether the memory is on, how far its providers are behind, and what failed."""
    try:
        # In this order: whatever failed by now is counted in the states too.
        failures = await service.host_client.memory.failures()
        states = await service.host_client.memory.states()
    except (MemoryOffError, StoreError) as error:
        return schemas.MemoryStatus(on=False, hint=str(error))
    providers = tuple(
        schemas.ProviderShown(
            name=state.name,
            waiting=state.lag.waiting,
            refused=state.lag.refused,
            unknown=state.lag.unknown,
            behind=state.syncing_for,
            failures=state.lag.breaker.failures,
            error=state.lag.breaker.error,
            retry_at=state.lag.breaker.retry_at,
            stuck=is_stuck(state),
            left_out=state.left_out,
        )
        for state in states
    )
    return schemas.MemoryStatus(
        on=True,
        providers=providers,
        failures=tuple(
            schemas.FailureShown(
                place=failure.place,
                provider=failure.provider,
                state="refused" if failure.state == "refused" else "unknown",
                text=item_text(failure.item),
                error=failure.error,
                attempts=failure.attempts,
                since=failure.since,
            )
            for failure in failures
        ),
    )


@post("/api/memory/retry", status_code=200)
async def retry(service: TheService, data: JSONBody[schemas.RetryBody]) -> schemas.Retried:
    """Send failed items again, and try all providers at once."""
    return schemas.Retried(await service.host_client.memory.retry(data.places))


async def _existing(service: Service, memory_id: str) -> Memory:
    memory = await service.host_client.memory.get(memory_id)
    if memory is None:
        raise not_found("There is no memory with that id", "it may have been forgotten before")
    return memory


async def _items(store: Store, memories: Sequence[Memory]) -> tuple[schemas.RememberedItem, ...]:
    return tuple([await _item(store, memory) for memory in memories])


async def _item(store: Store, memory: Memory) -> schemas.RememberedItem:
    rows = {source: await store.session(source.session_id) for source in memory.sources}
    return schemas.RememberedItem(
        id=memory.id,
        text=memory.text,
        kind=memory.kind,
        about=memory.about,
        trust=memory.trust,
        profile=memory.profile,
        person=profile_and_person(memory.profile)[1],
        workspace=memory.workspace,
        created_at=memory.created_at,
        state=memory.state,
        replaces=memory.replaces,
        conflicts_with=memory.conflicts_with,
        sources=tuple(
            schemas.MemoryOrigin(
                session_id=source.session_id,
                seq=source.seq,
                turn_id=source.turn_id,
                call_id=source.call_id,
                title=None if row is None else row.title,
            )
            for source, row in rows.items()
        ),
    )


ROUTES = (
    list_memories,
    add_memory,
    edit_memory,
    confirm_memory,
    forget_memory,
    show_state,
    retry,
)
