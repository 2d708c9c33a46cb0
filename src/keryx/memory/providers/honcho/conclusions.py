"""Memories as conclusions of the agent: sent, read back, and deleted.

Only Keryx writes what the peer `agent` concludes about others, so a conclusion there that no item
of ours has, and whose text is that of an item in doubt, is this item.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
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
from keryx.memory.providers.honcho.names import (
    clean,
    digest_of,
    observed_name,
    session_name,
)
from keryx.memory.providers.honcho.remote_items import Entry, RemoteItems
from keryx.memory.providers.honcho.settling import Settling
from keryx.ports.memory import (
    Delivery,
    FateUnknownError,
    ItemRefusedError,
    Memory,
    ProviderUnavailableError,
)

BATCH: Final = 100
# Attempts to read back that may fail in a row. With the pauses between them they take an hour.
MAX_FAILED_READS: Final = 20


class RemoteConclusion(msgspec.Struct, frozen=True):
    """A conclusion as Honcho has it."""

    id: str
    content: str
    session: str
    at: float


class Target(msgspec.Struct, frozen=True):
    """Where conclusions are stored: a workspace at Honcho, a session, and whom they are about."""

    remote_workspace: str
    session_id: str
    workspace: str

    @property
    def remote_session(self) -> str:
        return session_name(self.session_id)


class _Doubtful(msgspec.Struct, frozen=True):
    """An item to send; `is_resent`: it was sent before, and is not there."""

    memory: Memory
    content: str
    is_resent: bool


class Conclusions:
    """Stores memories, each of them once as far as Honcho lets anybody know."""

    def __init__(
        self, connections: Owned[Connection], remote_items: RemoteItems, settling: Settling
    ) -> None:
        self._connections = connections
        self._remote_items = remote_items
        self._settling = settling
        self._failed_reads: dict[Target, int] = {}

    async def store(self, target: Target, deliveries: Sequence[Delivery]) -> None:
        """Store these memories in order."""
        items = [delivery.item for delivery in deliveries if isinstance(delivery.item, Memory)]
        stored = await self._remote_items.of_items(item.id for item in items)
        attempts = {delivery.item.id: delivery.attempts for delivery in deliveries}
        missing = [item for item in items if _kind(stored.get(item.id)) != "conclusion"]
        for item in missing:
            if not clean(item.text):
                raise ItemRefusedError(
                    item.id, "the memory is empty, and Honcho takes no empty one"
                )
        in_doubt = [item for item in missing if attempts[item.id]]
        placed = await self._read_back(target, in_doubt) if in_doubt else set[str]()
        waiting = [
            _Doubtful(item, clean(item.text), bool(attempts[item.id]))
            for item in missing
            if item.id not in placed
        ]
        for start in range(0, len(waiting), BATCH):
            await self._send(target, waiting[start : start + BATCH])

    async def delete(self, entry: Entry) -> None:
        """Delete a conclusion of ours, or what may be one."""
        target = Target(entry.remote_workspace, entry.session_id, entry.workspace)
        ids = [] if entry.kind == "unknown" else [entry.remote]
        try:
            if entry.kind == "unknown" or entry.resent_at is not None:
                ids += await self._strays(target, {entry.digest})
        except RequestRefusedError:
            return  # It may be there: the entry stays, and `remaining` says so.
        for remote in ids:
            await self._delete(target, remote)
        await self._remote_items.remove([entry.item])

    async def remove_doubles(self, target: Target) -> None:
        """Delete second copies of items that were sent again, once they cannot come any more."""
        before = self._settling.wall() - self._settling.delay
        place = (target.remote_workspace, target.remote_session)
        resent = await self._remote_items.resent(*place, before)
        for workspace in {entry.workspace for entry in resent}:
            about = Target(target.remote_workspace, target.session_id, workspace)
            digests = {entry.digest for entry in resent if entry.workspace == workspace}
            with suppress(RequestRefusedError):  # a double is a nuisance, and no reason to stop
                for remote in await self._strays(about, digests):
                    await self._delete(about, remote)
        if resent:
            await self._remote_items.settled(*place, before)

    # -- sending

    async def _send(self, target: Target, batch: Sequence[_Doubtful]) -> None:
        try:
            view = await self._view(target)
        except RequestRefusedError as error:
            raise ItemRefusedError(batch[0].memory.id, str(error)) from error
        try:
            with self._settling.sending(target.session_id):
                created = await self._create(view, target, batch)
        except RequestRefusedError as error:
            if error.status == NOT_FOUND:
                (await self._connections.get()).forget(target.remote_workspace)
                raise ProviderUnavailableError("Honcho has lost the session's peers") from error
            if refused := error.of_item([item.memory.id for item in batch]):
                raise refused from error
            for item in batch:
                await self._send(target, [item])
            return
        pairs = zip(batch, created, strict=True)
        await self._remote_items.add([self._entry(target, item, remote) for item, remote in pairs])

    async def _create(
        self, view: Any, target: Target, batch: Sequence[_Doubtful]
    ) -> Sequence[RemoteConclusion]:
        contents = [
            {"content": item.content, "session_id": target.remote_session} for item in batch
        ]
        created = [_remote(conclusion) for conclusion in await answer(view.create(contents))]
        if [conclusion.content for conclusion in created] != [item.content for item in batch]:
            raise MaybeStoredError("Honcho says that it stored something else than was sent")
        return created

    async def _view(self, target: Target) -> Any:
        connection = await self._connections.get()
        await connection.session(target.remote_workspace, target.remote_session)
        return await connection.conclusions(
            target.remote_workspace, observed_name(target.workspace)
        )

    def _entry(self, target: Target, item: _Doubtful, remote: RemoteConclusion | None) -> Entry:
        return Entry(
            item=item.memory.id,
            kind="unknown" if remote is None else "conclusion",
            remote="" if remote is None else remote.id,
            remote_workspace=target.remote_workspace,
            remote_session=target.remote_session,
            session_id=target.session_id,
            workspace=target.workspace,
            trust=item.memory.trust,
            at=item.memory.created_at,
            digest=digest_of(item.content),
            resent_at=self._settling.wall() if item.is_resent else None,
        )

    # -- reading back

    async def _read_back(self, target: Target, items: Sequence[Memory]) -> set[str]:
        """Find items that may be stored; return the ids of those that are."""
        placed = await self._place(target, items)
        missing = [item for item in items if item.id not in placed]
        if missing and not self._settling.is_settled(target.session_id):
            await self._settling.wait(target.session_id)
            placed |= await self._place(target, missing)
        return placed

    async def _place(self, target: Target, items: Sequence[Memory]) -> set[str]:
        try:
            strays = await self._unclaimed(target)
        except RequestRefusedError as error:
            raise await self._unknown(target, items[0], str(error)) from error
        except MaybeStoredError as error:
            self._failed_reads[target] = self._failed_reads.get(target, 0) + 1
            if self._failed_reads[target] >= MAX_FAILED_READS:
                raise await self._unknown(target, items[0], str(error)) from error
            raise
        self._failed_reads.pop(target, None)
        entries: list[Entry] = []
        for item in items:
            content = clean(item.text)
            remote = next((stray for stray in strays if stray.content == content), None)
            if remote is not None:
                strays.remove(remote)
                entries.append(self._entry(target, _Doubtful(item, content, True), remote))
        await self._remote_items.add(entries)
        return {entry.item for entry in entries}

    async def _unknown(self, target: Target, item: Memory, reason: str) -> FateUnknownError:
        """Write down that the item may be stored, so that forgetting it can still find it."""
        doubtful = _Doubtful(item, clean(item.text), True)
        await self._remote_items.add([self._entry(target, doubtful, None)])
        return FateUnknownError(
            item.id,
            f"Honcho may have stored this conclusion, and it cannot be read back: {reason}",
        )

    async def _strays(self, target: Target, digests: set[bytes]) -> list[str]:
        """Return the conclusions with these texts that no item of ours has."""
        strays = await self._unclaimed(target)
        return [stray.id for stray in strays if digest_of(stray.content) in digests]

    async def _unclaimed(self, target: Target) -> list[RemoteConclusion]:
        conclusions = await self._list(target)
        entries = await self._remote_items.of_session(
            target.remote_workspace, target.remote_session
        )
        ours = {entry.remote for entry in entries}
        return [conclusion for conclusion in conclusions if conclusion.id not in ours]

    async def _list(self, target: Target) -> list[RemoteConclusion]:
        """Return all conclusions of a session, the oldest first."""
        view = await self._view(target)
        entries = await all_entries(
            lambda: view.list(
                size=PAGE,
                session=target.remote_session,
                filters={"level": "explicit"},
                reverse=True,
            )
        )
        return [_remote(entry) for entry in entries]

    async def _delete(self, target: Target, remote: str) -> None:
        connection = await self._connections.get()
        observed = observed_name(target.workspace)
        view = await connection.conclusions(target.remote_workspace, observed)
        try:
            await answer(view.delete(remote))
        except RequestRefusedError as error:
            if error.status != NOT_FOUND:  # otherwise it is gone already
                raise ProviderUnavailableError(str(error)) from error


def _kind(entry: Entry | None) -> str | None:
    return None if entry is None else entry.kind


def _remote(conclusion: Any) -> RemoteConclusion:
    return RemoteConclusion(
        conclusion.id,
        conclusion.content,
        conclusion.session_id or "",
        conclusion.created_at.timestamp(),
    )
