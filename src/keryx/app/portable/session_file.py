"""The complete export of a session: every event as it was logged, and every blob that they name."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from keryx import events as ev
from keryx.decoding import decode_json
from keryx.errors import UserMustActError
from keryx.ports.store import Blob, Store, blob_hash
from keryx.store.projections import project

FORMAT: Final = "keryx.session"
VERSION: Final = 1
LATEST_TIME: Final = 253_370_764_800.0
"""The year 9999. A later time cannot be shown, and would hide all other sessions of a list."""


class SessionFile(msgspec.Struct, frozen=True, kw_only=True):
    """A session with everything that it names."""

    events: tuple[ev.LoggedEvent, ...]
    blobs: tuple[Blob, ...] = ()

    @property
    def session_id(self) -> str:
        return self.events[0].session_id


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON form. Events stay as they are until each is checked by itself."""

    format: Literal["keryx.session"]
    version: int
    session_id: str
    events: list[msgspec.Raw]
    blobs: dict[str, str] = {}


async def read_session(store: Store, session_id: str) -> SessionFile:
    """Return all of a session. `UserMustActError` if there is none."""
    events = await store.events(session_id)
    if not events:
        raise UserMustActError(
            f"there is no session {session_id!r}; `keryx sessions list` shows all"
        )
    blobs: list[Blob] = []
    for hash_ in dict.fromkeys(named_blobs(events)):
        data = await store.blob(hash_)
        if data is not None:
            blobs.append(Blob(hash_, data))
    return SessionFile(events=tuple(events), blobs=tuple(blobs))


def named_blobs(events: Iterable[ev.LoggedEvent]) -> list[str]:
    """Return the hashes of the blobs that these events name."""
    return project(events, "").blobs


def encode_session(session: SessionFile) -> bytes:
    """Return the session as JSON; `decode_session` returns an equal one."""
    written = _Written(
        format=FORMAT,
        version=VERSION,
        session_id=session.session_id,
        events=[msgspec.Raw(ev.encode(event)) for event in session.events],
        blobs={blob.hash: base64.b64encode(blob.data).decode() for blob in session.blobs},
    )
    return msgspec.json.encode(written) + b"\n"


def decode_session(data: bytes) -> SessionFile:
    """Return the session of such a file. `ValueError` says where it is broken."""
    try:
        written = decode_json(data, _Written)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}") from error
    if written.version != VERSION:
        raise ValueError(
            f"version is {written.version}, and this Keryx reads version {VERSION}; update Keryx"
        )
    blobs = [_blob(hash_, text) for hash_, text in written.blobs.items()]
    return SessionFile(events=decode_events(written.events), blobs=tuple(blobs))


def decode_events(bodies: Iterable[bytes | msgspec.Raw]) -> tuple[ev.LoggedEvent, ...]:
    """Return the log. `ValueError` names the first event that cannot be in it."""
    events: list[ev.LoggedEvent] = []
    for number, body in enumerate(bodies, 1):
        try:
            event = ev.decode_logged(bytes(body))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"event {number}: {error}") from error
        if not is_possible_time(event.at):
            raise ValueError(f"event {number}: its time is {event.at:g}, and must be in seconds")
        usage = event.usage if isinstance(event, ev.StepReplied | ev.UsageRecorded) else None
        if usage is not None and not usage.is_possible:
            raise ValueError(f"event {number}: its usage has counts that cannot be")
        if event.seq != number:
            raise ValueError(f"event {number}: its seq is {event.seq}, and a log has no gaps")
        if events and event.session_id != events[0].session_id:
            raise ValueError(f"event {number}: it is of another session, {event.session_id!r}")
        events.append(event)
    if not events or not isinstance(events[0], ev.SessionOpened):
        raise ValueError("event 1: a log begins with session.opened")
    return tuple(events)


def is_possible_time(at: float) -> bool:
    """Return whether this is a time in seconds that can be shown."""
    return 0 <= at < LATEST_TIME


def _blob(hash_: str, text: str) -> Blob:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"blobs[{hash_[:80]!r}]: it is not base64") from error
    if blob_hash(data) != hash_:
        raise ValueError(f"blobs[{hash_[:80]!r}]: its content has another hash")
    return Blob(hash_, data)
