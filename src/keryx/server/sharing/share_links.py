"""Links to sessions: made, listed, looked up and revoked. Only the hash of a secret is stored.

A link is a record of its session, in the store of the home that has the session. So it is deleted
with the session, and a lookup names the home, the session and the secret: nothing is searched.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from typing import Final
from urllib.parse import quote

import msgspec

from keryx.app.host_client import HostClient
from keryx.app.portable.importing import writable_store
from keryx.decoding import json_decoder
from keryx.ports.store import Store, records_of
from keryx.server.access.tokens import hashed
from keryx.server.problems import conflict, not_found

PREFIX: Final = "/share/"
"""The beginning of the paths of all links."""
OWNER: Final = "0"
"""The home of the server's owner, in a path."""
MOST_LINKS: Final = 50
"""Links of one session."""
LIFETIMES: Final = (1, 7, 30)
"""Days after which a link may end."""
DAY: Final = 86_400.0
SECRET_BYTES: Final = 32
_SHARES: Final = "shares/"
_ALL: Final = "session/"


class ShareRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One link, without its secret."""

    session_id: str
    by: str
    created_at: float
    expires_at: float | None
    """None: never."""
    up_to: int | None
    """The last event that it shows; None: it follows the session."""
    attachments: bool
    """Whether it shows pictures."""

    @classmethod
    def of(
        cls,
        session_id: str,
        *,
        by: str,
        now: float,
        days: int | None,
        up_to: int | None,
        attachments: bool,
    ) -> ShareRecord:
        """Return a new link; `days` None: it does not end by itself."""
        return cls(
            session_id=session_id,
            by=by,
            created_at=now,
            expires_at=None if days is None else now + days * DAY,
            up_to=up_to,
            attachments=attachments,
        )

    def is_over(self, now: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now


_decode: Final = json_decoder(ShareRecord).decode


class ShareAddress(msgspec.Struct, frozen=True):
    """What the path of a link names."""

    home: str
    session_id: str
    secret: str

    @property
    def share_id(self) -> str:
        return hashed(self.secret)

    @property
    def path(self) -> str:
        return f"{PREFIX}{self.home}/{quote(self.session_id, safe='')}/{self.secret}"


def home_key(user: str) -> str:
    """Return the name of a user's home in paths. It does not show the name of the user."""
    return hashlib.sha256(f"keryx home {user}".encode()).hexdigest()[:16] if user else OWNER


async def create_link(client: HostClient, user: str, record: ShareRecord) -> ShareAddress:
    """Store a link; return its address with the secret, which is not stored."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    async with AsyncExitStack() as stack:
        store = await writable_store(client, stack)
        links = await _links(store, record.session_id)
        over = [id_ for id_, link in links.items() if link.is_over(record.created_at)]
        for share_id in over:
            await store.drop_record(_key(record.session_id, share_id))
        if len(links) - len(over) >= MOST_LINKS:
            raise conflict(
                f"This session has {MOST_LINKS} links already", "revoke one that is not used"
            )
        key = _key(record.session_id, hashed(secret))
        await store.keep_record(key, msgspec.json.encode(record))
        if await store.session(record.session_id) is None:  # deleted meanwhile
            await store.drop_record(key)
            raise not_found(f"There is no session {record.session_id}", "it was deleted")
    return ShareAddress(home_key(user), record.session_id, secret)


async def revoke_link(client: HostClient, session_id: str, share_id: str) -> bool:
    """Remove a link. False: there is no such link."""
    async with AsyncExitStack() as stack:
        store = await writable_store(client, stack)
        return await store.drop_record(_key(session_id, share_id))


async def links_of(store: Store, session_id: str, now: float) -> Mapping[str, ShareRecord]:
    """Return the links of a session that are not over, by their ids, the newest first."""
    return _valid(await _links(store, session_id), now)


async def all_links(store: Store, now: float) -> Mapping[str, ShareRecord]:
    """Return all links of a home that are not over, by their ids, the newest first."""
    records = await store.records(_ALL)
    shares = {key: value for key, value in records.items() if f"/{_SHARES}" in key}
    return _valid(dict(_decoded(shares)), now)


async def find_link(store: Store, address: ShareAddress, now: float) -> ShareRecord | None:
    """Return the link at this address; None: there is none, or it is over."""
    stored = await store.record(_key(address.session_id, hashed(address.secret)))
    if stored is None:
        return None
    record = _decode(stored[1])
    return None if record.is_over(now) else record


async def _links(store: Store, session_id: str) -> dict[str, ShareRecord]:
    return dict(_decoded(await store.records(records_of(session_id) + _SHARES)))


def _decoded(records: Mapping[str, bytes]) -> Iterator[tuple[str, ShareRecord]]:
    for key, value in records.items():
        yield key.rpartition("/")[2], _decode(value)


def _valid(links: Mapping[str, ShareRecord], now: float) -> Mapping[str, ShareRecord]:
    valid = [(share_id, link) for share_id, link in links.items() if not link.is_over(now)]
    return dict(sorted(valid, key=lambda item: (-item[1].created_at, item[0])))


def _key(session_id: str, share_id: str) -> str:
    """Return the key of a link's record; its id is the hash of its secret."""
    return f"{records_of(session_id)}{_SHARES}{share_id}"
