"""The memory of a home, blocking: for programs without an event loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keryx.app.memory.consolidating import ConsolidationReport
from keryx.app.memory.memory_client import MemoryClient
from keryx.config import DEFAULT
from keryx.events import MemoryAbout
from keryx.ports.memory import Memory
from keryx.sync.caller import Caller

if TYPE_CHECKING:
    from keryx.memory.changes.curation import MemoryPage
    from keryx.memory.changes.forgetting import Forgotten
    from keryx.memory.deliveries import FailedDelivery, ProviderState


class Memories:
    """What is remembered beyond sessions: read, correct, confirm, forget and export it.

    Without a configured provider every method raises `UserMustActError`, which says how to turn
    the memory on.
    """

    def __init__(self, call: Caller, memory: MemoryClient) -> None:
        self._call = call
        self._memory = memory

    def list(
        self,
        *,
        profile: str | None = None,
        workspace: str | None = None,
        ended: bool = False,
        limit: int = 50,
        before: int | None = None,
    ) -> MemoryPage:
        """Return a page of the memories, the newest first; `before` is `next` of the last page.

        None: of all profiles, of all workspaces. `workspace` also lists what is about the user.
        `ended`: those that were replaced or removed.
        """
        return self._call(
            self._memory.list,
            profile=profile,
            workspace=workspace,
            ended=ended,
            limit=limit,
            before=before,
        )

    def search(
        self,
        words: str,
        *,
        profile: str | None = None,
        workspace: str | None = None,
        limit: int = 50,
    ) -> Sequence[Memory]:
        """Return the memories with all these words, the best first."""
        return self._call(
            self._memory.search, words, profile=profile, workspace=workspace, limit=limit
        )

    def get(self, memory_id: str) -> Memory | None:
        """Return a memory, also one that was replaced or removed."""
        return self._call(self._memory.get, memory_id)

    def add(
        self,
        text: str,
        *,
        about: MemoryAbout = "user",
        workspace: str = "",
        profile: str = DEFAULT,
    ) -> Memory:
        """Remember a fact in a person's own words; durable once this returns.

        `about`: `user` is true everywhere, `work` is about the workspace only.
        """
        return self._call(self._memory.add, text, about=about, workspace=workspace, profile=profile)

    def edit(self, memory_id: str, text: str) -> Memory:
        """Replace a memory by a person's own words, and return the new one.

        `MemoryReplacedError` if it was replaced or removed meanwhile; then nothing changes.
        """
        return self._call(self._memory.edit, memory_id, text)

    def confirm(self, memory_id: str) -> None:
        """Trust a memory as a person's own words. No tool can do this."""
        return self._call(self._memory.confirm, memory_id)

    def forget(self, ids: Sequence[str]) -> Forgotten:
        """Erase memories here and at every provider; say what still remains there."""
        return self._call(self._memory.forget, ids)

    def consolidate(
        self, *, profile: str = DEFAULT, workspace: str = "", model: str | None = None
    ) -> ConsolidationReport:
        """Let a model propose merges of the newest memories; apply those that lose nothing.

        Those of the user and of the workspace are looked at. The model is the one of
        `models.auxiliary.memory`, or of `compaction`, or the default. `undo` takes it all back.
        """
        return self._call(
            self._memory.consolidate, profile=profile, workspace=workspace, model=model
        )

    def undo(self, operation: str) -> bool:
        """Take back a consolidation, by the id in its report, or bring a removed memory back.

        False: there is nothing to undo.
        """
        return self._call(self._memory.undo, operation)

    def export(self, profile: str | None = None) -> Sequence[Memory]:
        """Return all active memories, the oldest first."""
        return self._call(self._memory.export, profile)

    def states(self) -> Sequence[ProviderState]:
        """Return how far each provider is behind."""
        return self._call(self._memory.states)

    def failures(self) -> Sequence[FailedDelivery]:
        """Return what a provider refused, and what nobody knows the fate of."""
        return self._call(self._memory.failures)

    def retry(self, places: Sequence[int] | None = None) -> int:
        """Send failed items again, all or those of these places; return how many.

        Providers that are left alone after failures are tried at once.
        """
        return self._call(self._memory.retry, places)
