"""What people and programs do with the memory of a home, whichever process owns the home."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from keryx.app.memory.consolidating import ConsolidationReport, consolidate
from keryx.app.models import Models
from keryx.config import DEFAULT
from keryx.errors import DeveloperMustActError, UserMustActError
from keryx.events import MemoryAbout
from keryx.ids import new_id
from keryx.messages import well_formed
from keryx.ports.memory import Memory, MemoryItem, MemoryScope, TurnMemory, Withdrawal

if TYPE_CHECKING:
    from keryx.memory.changes.curation import MemoryFilter, MemoryPage
    from keryx.memory.changes.forgetting import Forgotten
    from keryx.memory.deliveries import FailedDelivery, ProviderState
    from keryx.memory.service import MemoryService

MAX_TEXT: Final = 2_000
"""Characters of one memory."""
MOST: Final = 2**53
"""The largest number that is taken: of rows, or of a place."""
STUCK_AFTER: Final = 600.0
"""Seconds. A provider that is behind for longer is reported to people."""


class MemoryClient:
    """What is remembered beyond sessions: read, correct, confirm, forget and export it.

    Without a configured provider every method raises `UserMustActError`, which says how to turn
    the memory on.
    """

    def __init__(self, service: Callable[[], Awaitable[MemoryService]], models: Models) -> None:
        self._service = service
        self._models = models

    async def list(
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
        service = await self._service()
        chosen = _filter(profile, workspace, ended=ended)
        before = None if before is None else _number("before", before, least=0)
        return await service.curation.page(chosen, _number("limit", limit), before)

    async def search(
        self,
        words: str,
        *,
        profile: str | None = None,
        workspace: str | None = None,
        limit: int = 50,
    ) -> Sequence[Memory]:
        """Return the memories with all these words, the best first."""
        service = await self._service()
        chosen = _filter(profile, workspace)
        return await service.curation.search(chosen, _text("words", words), _number("limit", limit))

    async def get(self, memory_id: str) -> Memory | None:
        """Return a memory, also one that was replaced or removed."""
        return await (await self._service()).get(_text("memory_id", memory_id))

    async def add(
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
        service = await self._service()
        if about not in ("user", "work"):
            raise DeveloperMustActError(f"`about` is 'user' or 'work', not {about!r}")
        if about == "work" and not workspace:
            raise DeveloperMustActError("a memory about work needs the workspace that it is about")
        memory = Memory(
            id=new_id("mem"),
            text=_checked(text),
            kind="fact",
            about=about,
            trust="person",
            profile=_text("profile", profile),
            workspace=_text("workspace", workspace) if about == "work" else "",
            created_at=service.wall(),
        )
        return await service.curation.add(memory)

    async def edit(self, memory_id: str, text: str) -> Memory:
        """Replace a memory by a person's own words, and return the new one.

        `MemoryReplacedError` if it was replaced or removed meanwhile; then nothing changes.
        """
        service, text = await self._service(), _checked(text)
        memory = await service.curation.edit(_text("memory_id", memory_id), text)
        if memory is None:
            raise _unknown(memory_id)
        return memory

    async def confirm(self, memory_id: str) -> None:
        """Trust a memory as a person's own words. No tool can do this."""
        if not await (await self._service()).curation.confirm(_text("memory_id", memory_id)):
            raise _unknown(memory_id)

    async def forget(self, ids: Sequence[str]) -> Forgotten:
        """Erase memories here and at every provider; say what still remains there."""
        if isinstance(ids, str):  # its letters would be ids that nobody knows
            raise DeveloperMustActError(f"`ids` is a list of ids, not {ids!r}; write [{ids!r}]")
        return await (await self._service()).forget([_text("ids", name) for name in ids])

    async def consolidate(
        self, *, profile: str = DEFAULT, workspace: str = "", model: str | None = None
    ) -> ConsolidationReport:
        """Let a model propose merges of the newest memories; apply those that lose nothing.

        Those of the user and of the workspace are looked at. The model is the one of
        `models.auxiliary.memory`, or of `compaction`, or the default. `undo` takes it all back.
        """
        scope = MemoryScope(profile, workspace)
        return await consolidate(await self._service(), self._models, scope, model)

    async def undo(self, operation: str) -> bool:
        """Take back a consolidation, by the id in its report, or bring a removed memory back.

        False: there is nothing to undo.
        """
        return await (await self._service()).curation.undo(_text("operation", operation))

    async def export(self, profile: str | None = None) -> Sequence[Memory]:
        """Return all active memories, the oldest first."""
        return await (await self._service()).curation.everything(profile)

    async def states(self) -> Sequence[ProviderState]:
        """Return how far each provider is behind."""
        return await (await self._service()).states()

    async def failures(self) -> Sequence[FailedDelivery]:
        """Return what a provider refused, and what nobody knows the fate of."""
        return await (await self._up_to_date()).failures()

    async def retry(self, places: Sequence[int] | None = None) -> int:
        """Send failed items again, all or those of these places; return how many.

        Providers that are left alone after failures are tried at once.
        """
        checked = (
            None if places is None else [_number("places", place, least=0) for place in places]
        )
        return await (await self._up_to_date()).retry(checked)

    async def _up_to_date(self) -> MemoryService:
        """Return the memory, which knows what sessions have withdrawn: that is not sent again."""
        service = await self._service()
        await service.take_in()
        return service


def is_stuck(state: ProviderState) -> bool:
    """Return whether a person must look at the provider."""
    is_late = state.syncing_for is not None and state.syncing_for > STUCK_AFTER
    has_failed = state.lag.refused > 0 or state.lag.unknown > 0
    return is_late or has_failed or state.left_out is not None


def item_text(item: MemoryItem) -> str:
    """Return what an item for a provider says, on one line."""
    match item:
        case Memory():
            return " ".join(item.text.split())
        case TurnMemory():
            return f"a turn of {item.session_id}"
        case Withdrawal():
            return f"{len(item.items)} items are not true any more"


def _filter(profile: str | None, workspace: str | None, *, ended: bool = False) -> MemoryFilter:
    # Imported only here: a host without a memory starts faster.
    curation = importlib.import_module("keryx.memory.changes.curation")
    chosen: MemoryFilter = curation.MemoryFilter(
        profile=None if profile is None else _text("profile", profile),
        workspace=None if workspace is None else _text("workspace", workspace),
        ended=ended,
    )
    return chosen


def _text(name: str, text: str) -> str:
    """Return a text that can be stored; `DeveloperMustActError` names what is none."""
    try:
        return well_formed(text)
    except TypeError as error:
        raise DeveloperMustActError(f"`{name}` is no text: {error}") from None


def _number(name: str, number: int, least: int = 1) -> int:
    is_number = isinstance(number, int) and not isinstance(number, bool)  # pyright: ignore[reportUnnecessaryIsInstance] (comes from outside)
    if not is_number or not least <= number <= MOST:
        raise DeveloperMustActError(f"`{name}` is a number from {least} to {MOST}, not {number!r}")
    return number


def _checked(text: str) -> str:
    text = _text("text", text).strip()
    if not text:
        raise UserMustActError("the text is empty; write what is to be remembered")
    if len(text) > MAX_TEXT:
        raise UserMustActError(
            f"the text has {len(text):,} characters and may have {MAX_TEXT:,}; nothing was "
            "remembered: shorten it, or remember it in several parts"
        )
    return text


def _unknown(memory_id: str) -> UserMustActError:
    return UserMustActError(
        f"there is no memory {memory_id!r}; `keryx memory list` shows those there are"
    )
