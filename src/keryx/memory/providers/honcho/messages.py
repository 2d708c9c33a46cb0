"""Turns as messages: what the person and the agent said, in parts that Honcho takes.

Each message has the id of its text and the number of its part as metadata; by these it is read
back. Messages cannot be deleted one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Any, Final

import msgspec

from keryx.aio.owned import Owned
from keryx.memory.providers.honcho.connection import Connection
from keryx.memory.providers.honcho.failures import (
    NOT_FOUND,
    MaybeStoredError,
    RequestRefusedError,
    answer,
)
from keryx.memory.providers.honcho.listing import PAGE, all_entries
from keryx.memory.providers.honcho.names import AGENT, USER, clean, session_name
from keryx.memory.providers.honcho.remote_items import Entry, EntryKind, RemoteItems
from keryx.memory.providers.honcho.settling import Settling
from keryx.ports.memory import (
    Delivery,
    FateUnknownError,
    ItemRefusedError,
    ProviderUnavailableError,
    TurnMemory,
)

MAX_CHARACTERS: Final = 25_000
BATCH: Final = 100
# Ids of texts in one filter.
MAX_IDS: Final = 100


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One message: a text of a turn, or a part of a long one."""

    turn: TurnMemory
    event_id: str
    number: int
    count: int
    by: str
    text: str

    @property
    def key(self) -> tuple[str, int]:
        return self.event_id, self.number


def parts_of(turn: TurnMemory) -> list[Part]:
    """Return the messages of a turn, in order. Texts that are empty have none."""
    parts: list[Part] = []
    for text in turn.texts:
        content = clean(text.text)
        pieces = [
            content[start : start + MAX_CHARACTERS]
            for start in range(0, len(content), MAX_CHARACTERS)
        ]
        parts += [
            Part(
                turn=turn,
                event_id=text.id,
                number=number,
                count=len(pieces),
                by=USER if text.by == "user" else AGENT,
                text=piece,
            )
            for number, piece in enumerate(pieces, 1)
        ]
    return parts


class Messages:
    """Stores turns, each of their parts once and in order."""

    def __init__(
        self, connections: Owned[Connection], remote_items: RemoteItems, settling: Settling
    ) -> None:
        self._connections = connections
        self._remote_items = remote_items
        self._settling = settling

    async def store(self, remote_workspace: str, deliveries: Sequence[Delivery]) -> None:
        """Store these turns of one session."""
        turns = [d.item for d in deliveries if isinstance(d.item, TurnMemory)]
        stored = await self._remote_items.of_items(turn.id for turn in turns)
        missing = [
            turn for turn in turns if turn.id not in stored or stored[turn.id].kind != "turn"
        ]
        attempts = {delivery.item.id: delivery.attempts for delivery in deliveries}
        in_doubt = [
            part
            for turn in missing
            if attempts[turn.id] or turn.id in stored
            for part in parts_of(turn)
        ]
        there = await self._read_back(remote_workspace, in_doubt) if in_doubt else set[Any]()
        waiting = [part for turn in missing for part in parts_of(turn) if part.key not in there]
        for start in range(0, len(waiting), BATCH):
            await self._send(remote_workspace, waiting[start : start + BATCH])
        # A turn that was withdrawn is still there, and counts again.
        await self._remote_items.add([_entry(remote_workspace, turn) for turn in turns])

    async def delete_session(self, entry: Entry) -> None:
        """Let Honcho delete a session with all its messages; it does that later."""
        connection = await self._connections.get()
        session = await connection.opened_session(entry.remote_workspace, entry.remote_session)
        try:
            await answer(session.aio.delete())
        except RequestRefusedError as error:
            if error.status != NOT_FOUND:  # otherwise it is gone already
                raise ProviderUnavailableError(str(error)) from error
        connection.forget(entry.remote_workspace)

    async def is_there(self, entry: Entry) -> bool:
        """Return whether Honcho still has messages of this turn's session."""
        connection = await self._connections.get()
        session = await connection.opened_session(entry.remote_workspace, entry.remote_session)
        try:
            page = await answer(session.aio.messages(size=1))
        except RequestRefusedError as error:
            return error.status != NOT_FOUND
        return page.total != 0

    async def _send(self, remote_workspace: str, batch: Sequence[Part]) -> None:
        turn = batch[0].turn
        connection = await self._connections.get()
        try:
            session = await connection.session(remote_workspace, session_name(turn.session_id))
        except RequestRefusedError as error:
            raise ItemRefusedError(turn.id, str(error)) from error
        try:
            with self._settling.sending(turn.session_id):
                await _add(session, batch)
        except RequestRefusedError as error:
            if error.status == NOT_FOUND:
                connection.forget(remote_workspace)
                raise ProviderUnavailableError("Honcho has lost the session") from error
            if refused := error.of_item([part.turn.id for part in batch]):
                raise refused from error
            for _, parts in groupby(batch, key=lambda part: part.turn.id):
                await self._send(remote_workspace, list(parts))

    # -- reading back

    async def _read_back(
        self, remote_workspace: str, parts: Sequence[Part]
    ) -> set[tuple[str, int]]:
        """Return which of these parts are stored."""
        session_id = parts[0].turn.session_id
        there = await self._find(remote_workspace, parts)
        if len(there) < len(parts) and not self._settling.is_settled(session_id):
            await self._settling.wait(session_id)
            there = await self._find(remote_workspace, parts)
        return there

    async def _find(self, remote_workspace: str, parts: Sequence[Part]) -> set[tuple[str, int]]:
        name = session_name(parts[0].turn.session_id)
        ids = list(dict.fromkeys(part.event_id for part in parts))
        there: set[tuple[str, int]] = set()
        try:
            session = await (await self._connections.get()).session(remote_workspace, name)
            for start in range(0, len(ids), MAX_IDS):
                event_ids = {"in": ids[start : start + MAX_IDS]}
                request = partial(
                    session.aio.messages, filters={"metadata": {"event_id": event_ids}}, size=PAGE
                )
                there |= {_key(message.metadata) for message in await all_entries(request)}
        except RequestRefusedError as error:
            turn = parts[0].turn
            await self._remote_items.add([_entry(remote_workspace, turn, "unknown turn")])
            raise FateUnknownError(
                turn.id,
                f"Honcho may have stored this turn, and it cannot be read back: {error}",
            ) from error
        return there & {part.key for part in parts}


async def _add(session: Any, batch: Sequence[Part]) -> None:
    created = await answer(session.aio.add_messages(_params(batch)))
    if [message.content for message in created] != [part.text for part in batch]:
        raise MaybeStoredError("Honcho says that it stored something else than was sent")


def _params(batch: Sequence[Part]) -> list[Any]:
    return [
        {
            "content": part.text,
            "peer_id": part.by,
            "metadata": {
                "event_id": part.event_id,
                "turn_id": part.turn.id,
                "part": part.number,
                "parts": part.count,
            },
            "created_at": datetime.fromtimestamp(part.turn.at, UTC),
        }
        for part in batch
    ]


def _key(metadata: dict[str, Any]) -> tuple[str, int]:
    number = metadata.get("part")
    return str(metadata.get("event_id")), number if isinstance(number, int) else 0


def _entry(remote_workspace: str, turn: TurnMemory, kind: EntryKind = "turn") -> Entry:
    return Entry(
        item=turn.id,
        kind=kind,
        remote="",
        remote_workspace=remote_workspace,
        remote_session=session_name(turn.session_id),
        session_id=turn.session_id,
        workspace=turn.workspace,
        trust="tool",
        at=turn.at,
        digest=b"",
    )
