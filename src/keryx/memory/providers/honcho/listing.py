"""All entries of a listing. It comes in pages, and what is missing there decides what is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from keryx.memory.providers.honcho.failures import (
    MaybeStoredError,
    RequestRefusedError,
    answer,
)

PAGE: Final = 100
# A listing whose pages contradict each other is read so often.
MAX_READS: Final = 3


async def all_entries(request: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Return the entries of all pages, each once; an error if some are missing.

    Entries that were stored together have one time: pages by time may overlap, and leave one out.
    """
    for _ in range(MAX_READS):
        entries: dict[str, Any] = {}
        page = await answer(request())
        total = page.total
        if not isinstance(total, int):
            raise MaybeStoredError("Honcho answered something else than a listing")
        while page is not None:
            entries |= {entry.id: entry for entry in page.items}
            page = await answer(page.get_next_page())
        if len(entries) >= total:
            return list(entries.values())
    raise RequestRefusedError(200, "the pages of its listing contradict each other")
