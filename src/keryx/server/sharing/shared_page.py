"""Serves shared sessions: a page without a login and without scripts, of the transcript alone.

A link that has expired, that was revoked and that never existed get the same answer.
"""

from __future__ import annotations

import math
import re
from typing import Final

from keryx.app.portable.conversation import ReadableSession, readable
from keryx.app.portable.html_page import POLICY, SHOWN_IMAGES, document, html_page
from keryx.config.users import UserRecord
from keryx.dates import time_text
from keryx.errors import KeryxError
from keryx.ports.store import Store
from keryx.server.guards import ALWAYS, Headers
from keryx.server.schemas import is_id
from keryx.server.service import Service
from keryx.server.sharing.share_links import (
    OWNER,
    PREFIX,
    ShareAddress,
    ShareRecord,
    find_link,
    home_key,
)
from keryx.server.stream import Send
from keryx.server.users.user_hosts import UserHosts

MOST_AT_ONCE: Final = 4
"""Pages that are written at the same time: each takes a thread, and memory for a whole session."""
_PATH: Final = re.compile(r"([0-9a-f]{1,16})/([^/]{1,200})/([A-Za-z0-9_-]{43})")
_HEADERS: Final[Headers] = [
    *ALWAYS,
    (b"content-security-policy", f"{POLICY}; frame-ancestors 'none'; sandbox".encode()),
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-robots-tag", b"noindex, nofollow, noarchive"),
]
_GONE: Final = (
    "This link doesn't work",
    "It may have expired, or the person who shared it has ended it. Ask them for a new link.",
)
_BUSY: Final = ("Too many requests", "Wait a moment, then load this page again.")


class SharedPages:
    """Answers requests for shared sessions. Belongs to one loop."""

    def __init__(self, service: Service, users: UserHosts) -> None:
        self._owner, self._users = service, users
        self._attempts = service.access.share_attempts
        self._rendering = 0

    async def serve(self, method: str, path: str, client: str, send: Send) -> None:
        """Answer a request for the path of a link; `client` is the address that it comes from."""
        if method not in ("GET", "HEAD"):
            await _answer(send, 405, b"", [(b"allow", b"GET, HEAD")])
            return
        wait = self._attempts.wait(client)
        if wait > 0 or self._rendering >= MOST_AT_ONCE:
            seconds = str(math.ceil(max(wait, 1.0))).encode()
            await _answer(send, 429, _message(_BUSY), [(b"retry-after", seconds)])
            return
        self._attempts.began(client)
        self._rendering += 1
        try:
            body = await self._page(path)
        finally:
            self._rendering -= 1
        if body is None:
            await _answer(send, 404, _message(_GONE), [])
            return
        self._attempts.succeeded(client)
        await _answer(send, 200, body if method == "GET" else b"", [])

    async def _page(self, path: str) -> bytes | None:
        """Return the page of a link; None: there is no such link."""
        address = _address(path)
        service = None if address is None else await self._service_of(address.home)
        if address is None or service is None:
            return None
        store = service.host_client.store
        record = await find_link(store, address, service.access.wall())
        if record is None:
            return None
        events = await store.events(record.session_id, limit=record.up_to)
        if not events:
            return None
        conversation = await service.threads.to_thread(readable, events)
        blobs = await _pictures(store, conversation) if record.attachments else {}
        note = _note(record, events[-1].at)
        return await service.threads.to_thread(lambda: html_page(conversation, blobs, note=note))

    async def _service_of(self, home: str) -> Service | None:
        """Return the service of the home that a link names; None: there is no such home."""
        if home == OWNER:
            return self._owner
        await self._owner.access.refresh()
        user = self._user_of(home)
        if user is None or user.disabled:
            return None
        try:
            return await self._users.service_of(user)
        except KeryxError:
            return None

    def _user_of(self, home: str) -> UserRecord | None:
        users = self._owner.access.users
        return {home_key(name): user for name, user in users.items()}.get(home)


def _address(path: str) -> ShareAddress | None:
    match = _PATH.fullmatch(path.removeprefix(PREFIX))
    if match is None or not is_id(match[2]):
        return None
    return ShareAddress(match[1], match[2], match[3])


async def _pictures(store: Store, conversation: ReadableSession) -> dict[str, bytes]:
    hashes = {
        file.blob
        for entry in conversation.entries
        for file in entry.files
        if file.media_type in SHOWN_IMAGES
    }
    pictures = {hash_: await store.blob(hash_) for hash_ in sorted(hashes)}
    return {hash_: data for hash_, data in pictures.items() if data is not None}


def _note(record: ShareRecord, changed_at: float) -> str:
    if record.up_to is None:
        return f"Shared to read. It shows everything up to {time_text(changed_at)}."
    return f"Shared to read, as of {time_text(record.created_at)}."


def _message(words: tuple[str, str]) -> bytes:
    title, text = words
    return document(title, f"<main><h1>{title}</h1><p>{text}</p></main>")


async def _answer(send: Send, status: int, body: bytes, headers: Headers) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [*_HEADERS, *headers, length],
        }
    )
    await send({"type": "http.response.body", "body": body})
