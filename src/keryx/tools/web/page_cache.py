"""The pages that a session has read, up to a limit. It ends with the session."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from keryx.ports.resources import ResourceContext
from keryx.ports.tool_context import ToolContext
from keryx.tools.web.extraction import Page

MOST_PAGES: Final = 200
MOST_CHARACTERS: Final = 20_000_000
_KEY: Final = "web pages"


class PageCache:
    """Pages by the address that was asked for. The pages that were not used longest go first."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, Page] = OrderedDict()
        self._characters = 0

    @classmethod
    async def create(cls, context: ResourceContext) -> PageCache:
        del context  # it needs no process
        return cls()

    def __len__(self) -> int:
        return len(self._pages)

    def get(self, url: str) -> Page | None:
        page = self._pages.get(url)
        if page is not None:
            self._pages.move_to_end(url)
        return page

    def add(self, url: str, page: Page) -> None:
        """Keep the page; a page of the same address is replaced."""
        self._remove(url)
        self._pages[url] = page
        self._characters += len(page.text)
        while len(self._pages) > MOST_PAGES or self._characters > MOST_CHARACTERS:
            self._remove(next(iter(self._pages)))

    async def close(self) -> None:
        self._pages.clear()
        self._characters = 0

    def _remove(self, url: str) -> None:
        page = self._pages.pop(url, None)
        if page is not None:
            self._characters -= len(page.text)


async def pages_of(context: ToolContext) -> PageCache:
    """Return the pages of the call's session."""
    return await context.resources.get(_KEY, PageCache.create)
