"""Imports sessions into a home. An imported session rests, and can be continued."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import msgspec

from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.app.host.homes.home import STORE
from keryx.app.host_client import HostClient
from keryx.app.library import Keryx
from keryx.app.portable.conversation_log import Place, conversation_log
from keryx.app.portable.foreign.message_lists import Conversation
from keryx.app.portable.formats import LARGEST, Read, read_file
from keryx.app.portable.session_file import SessionFile
from keryx.app.services.places import find_workspace
from keryx.config import DEFAULT, FrontEnd
from keryx.engine.operations.forks import closing_facts
from keryx.errors import UserMustActError
from keryx.ids import new_id
from keryx.ports.store import Commit, Store
from keryx.store.foreign_database import MAGIC, snapshot
from keryx.store.sqlite import SqliteStore

EVENTS_AT_ONCE: Final = 2_000


class Imported(msgspec.Struct, frozen=True):
    """A session that was imported; `left_out` counts the instructions of another program."""

    session_id: str
    left_out: int = 0


async def import_file(app: Keryx, path: Path, workspace: str = ".") -> list[Imported]:
    """Import all sessions of a file, or none. `UserMustActError` names what is wrong, and where.

    Sessions of Keryx keep their ids, unless the home has them already. Conversations from elsewhere
    get this workspace, and the model and tools that a new session would get.
    """
    client = app.host_client
    data = await client.to_thread(lambda: _content(path))
    sessions = await client.to_thread(lambda: read_file(data, str(path)))
    folder = await client.to_thread(lambda: str(find_workspace(workspace)))
    return await import_sessions(client, sessions, await place_in(client, "cli", folder))


async def place_in(client: HostClient, front_end: FrontEnd, workspace: str) -> Place:
    """Return the settings that a new session of this front end would get."""
    tools = await client.tools_for(front_end, DEFAULT)
    return Place(
        model=client.models.default,
        workspace=workspace,
        tools=tuple((await client.tools_to_choose()).by_name) if tools is None else tools,
        at=Scope("import").clock.wall(),
    )


async def import_sessions(client: HostClient, sessions: Read, place: Place) -> list[Imported]:
    """Write these sessions into the home, all or none."""
    files = [
        conversation_log(session, place) if isinstance(session, Conversation) else session
        for session in sessions
    ]
    for file in files:
        _closed(file.events, file.session_id, place.at)  # raises before anything is written
    imported: list[Imported] = []
    async with AsyncExitStack() as stack:
        store = await writable_store(client, stack)
        for session, file in zip(sessions, files, strict=True):
            left_out = session.left_out if isinstance(session, Conversation) else 0
            imported.append(Imported(await write_session(store, file, place.at), left_out))
    if client.local_host is not None:
        for session in imported:
            client.local_host.note_change(session.session_id)
    return imported


async def import_conversation(client: HostClient, conversation: Conversation, place: Place) -> str:
    """Write a conversation from elsewhere as a session of its own; return its id."""
    async with AsyncExitStack() as stack:
        store = await writable_store(client, stack)
        return await write_session(store, conversation_log(conversation, place), place.at)


async def write_session(store: Store, session: SessionFile, at: float) -> str:
    """Write a session into a store; return its id. What was under way in it is closed."""
    session_id = session.session_id
    if await store.session(session_id) is not None:
        session_id = new_id("s")
    opened, *later_events = _closed(session.events, session_id, at)
    assert isinstance(opened, ev.SessionOpened), "a log begins with its opening"
    # It belongs to whoever imports it: the people of another home are unknown here.
    events = (msgspec.structs.replace(opened, person=None), *later_events)
    is_fork = opened.fork is not None
    # What a fork inherited is known to one commit only.
    size = len(events) if is_fork else EVENTS_AT_ONCE
    first, *later = [events[start : start + size] for start in range(0, len(events), size)]
    # If a later part fails, nothing of the session stays.
    epoch = await store.create(
        Commit(session_id=session_id, epoch=0, events=first, blobs=session.blobs)
    )
    try:
        for part in later:
            await store.append(Commit(session_id=session_id, epoch=epoch, events=part))
    except BaseException:
        await store.delete(session_id)
        raise
    return session_id


def _closed(
    events: Sequence[ev.LoggedEvent], session_id: str, at: float
) -> tuple[ev.LoggedEvent, ...]:
    """Return the events, under this id, and with what closes an open turn and open messages."""
    facts = [
        event
        if event.session_id == session_id
        else msgspec.structs.replace(event, session_id=session_id)
        for event in events
    ]
    try:
        closing = closing_facts(facts, session_id, at=at)
    except (AssertionError, KeyError) as error:
        raise UserMustActError(
            f"the events of session {session_id} contradict each other; nothing of it was imported"
        ) from error
    return (*facts, *closing)


async def writable_store(client: HostClient, stack: AsyncExitStack) -> Store:
    """Return a store to write to. Beside the host of a home, a process writes as its guest."""
    if client.local_host is not None:
        return client.store
    bridge = Bridge(Scope("import"))
    stack.push_async_callback(bridge.close)
    store = await SqliteStore.open(client.config.home / STORE, bridge, guest=True)
    stack.push_async_callback(store.close)
    return store


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST:
            raise UserMustActError(
                f"{path} is larger than {LARGEST >> 20} MiB; divide it and import the parts"
            )
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
            if start != MAGIC:
                return start + file.read()
        return snapshot(path)
    except (OSError, ValueError) as error:
        raise UserMustActError(f"{str(path)[:200]} cannot be read: {error}") from error
