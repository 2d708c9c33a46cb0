"""Links with which others read a session: created, listed and revoked. A link is shown once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from litestar import delete, get, post
from litestar.params import JSONBody, PathParameter

from keryx.ports.store import Store
from keryx.server.problems import not_found
from keryx.server.routes.params import SessionId, TheCaller, TheService
from keryx.server.schemas import HASH_PATTERN
from keryx.server.sharing.share_links import (
    ShareRecord,
    all_links,
    create_link,
    links_of,
    revoke_link,
)

ShareId = Annotated[str, PathParameter(pattern=HASH_PATTERN, description="A link.")]


class ShareLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link without its secret. `up_to` null: it follows the session. `expires_at` null: never."""

    share_id: str
    session_id: str
    title: str
    by: str
    created_at: float
    expires_at: float | None
    up_to: int | None
    attachments: bool


class ShareLinks(msgspec.Struct, frozen=True):
    """The links that work, the newest first."""

    shares: tuple[ShareLink, ...]


class NewShare(msgspec.Struct, frozen=True, kw_only=True):
    """`days` until it ends, null: never. With `follow`, it shows what comes later too."""

    days: Literal[1, 7, 30] | None = 7
    follow: bool = False
    attachments: bool = False


class CreatedShare(msgspec.Struct, frozen=True, kw_only=True):
    """The new link. Its secret is the end of `path`: not stored, and not shown again."""

    share: ShareLink
    path: str


@post("/api/sessions/{session_id:str}/shares", status_code=201)
async def share(
    service: TheService, caller: TheCaller, session_id: SessionId, data: JSONBody[NewShare]
) -> CreatedShare:
    """Create a link with which anybody can read this session, without a login."""
    row, now = await service.row(session_id), service.access.wall()
    record = ShareRecord.of(
        session_id,
        by=caller.name,
        now=now,
        days=data.days,
        up_to=None if data.follow else row.last_seq,
        attachments=data.attachments,
    )
    address = await create_link(service.host_client, caller.user, record)
    return CreatedShare(share=_link(address.share_id, record, row.title), path=address.path)


@get("/api/sessions/{session_id:str}/shares")
async def list_of_session(service: TheService, session_id: SessionId) -> ShareLinks:
    """The links to this session that work."""
    await service.row(session_id)
    store = service.host_client.store
    return await _listed(store, await links_of(store, session_id, service.access.wall()))


@get("/api/shares")
async def list_all(service: TheService) -> ShareLinks:
    """The links to all sessions that work."""
    store = service.host_client.store
    return await _listed(store, await all_links(store, service.access.wall()))


@delete("/api/sessions/{session_id:str}/shares/{share_id:str}", status_code=204)
async def revoke(service: TheService, session_id: SessionId, share_id: ShareId) -> None:
    """End a link: it works no more."""
    await service.row(session_id)
    if not await revoke_link(service.host_client, session_id, share_id):
        raise not_found("There is no such link", "it may have ended, or been revoked before")


async def _listed(store: Store, links: Mapping[str, ShareRecord]) -> ShareLinks:
    shares: list[ShareLink] = []
    for share_id, record in links.items():
        row = await store.session(record.session_id)
        if row is not None:
            shares.append(_link(share_id, record, row.title))
    return ShareLinks(tuple(shares))


def _link(share_id: str, record: ShareRecord, title: str) -> ShareLink:
    fields = msgspec.structs.asdict(record)
    return ShareLink(share_id=share_id, title=title, **fields)


ROUTES = (share, list_of_session, list_all, revoke)
