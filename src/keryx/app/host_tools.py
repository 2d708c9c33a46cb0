"""The tools of one host, by whose sessions may have them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.app.named_sets import with_named_sets
from keryx.app.own_tools import TOOLSET, Listing, OwnTools, list_files, names_in_use
from keryx.app.tools import Tools
from keryx.config import Config, ConfigurationError, reload
from keryx.ports.tool import Tool

SKILL: Final = "skill"


def _read(config: Config, folder: Path) -> tuple[Config, Listing]:
    """Read the configuration and the list of own tools again, in a thread."""
    with suppress(ConfigurationError):  # the next turn reports it, and the last valid one holds
        config = reload(config)
    return config, list_files(folder)


class HostTools:
    """The tools of one host: those of its program for the program's sessions; for all other
    sessions the built-in ones and the user's own. Those are loaded for the first of these."""

    def __init__(
        self, program: Tools, config: Config, to_thread: Callable[..., Awaitable[Any]]
    ) -> None:
        """`program`: the tools that a program passed, or the built-in ones if it passed none."""
        self._program, self._config = program, config
        self._to_thread = to_thread
        self._load = partial(to_thread, Tools.built_in, config)
        self._built_in = None if program.from_program else program
        self._shared = self._built_in
        """The built-in tools and the user's own."""
        self.own: Final = OwnTools(config.settings_home, to_thread)

    @property
    def capabilities(self) -> tuple[str, ...]:
        return self._program.capabilities

    @property
    def are_loaded(self) -> bool:
        """Whether the tools of all sessions are loaded."""
        return self._built_in is not None and self.own.is_loaded

    async def prepare(self, names: Iterable[str] | None, *, for_others: bool) -> None:
        """Load what a new session with these tools may need; None: all tools."""
        if for_others or not self._program.from_program:
            await self._prepare(names, again=True)

    async def prepare_existing(self, names: Iterable[str]) -> None:
        """Load what a session with these tools needs before it goes on."""
        await self._prepare(names, again=False)

    async def _prepare(self, names: Iterable[str] | None, *, again: bool) -> None:
        if names is not None and self.needs_program_only(names):
            return
        if self._built_in is None:
            self._built_in = await self._load()
        if again:
            self._config, listing = await self._to_thread(_read, self._config, self.own.folder)
            await self.refresh(listing)
            assert self._shared is not None
            self._shared = with_named_sets(self._shared, self._config)
        elif not self.own.is_loaded:
            await self.refresh()

    def needs_program_only(self, names: Iterable[str]) -> bool:
        """Return whether the program passed all of these tools; also if there are none."""
        names = set(names)
        return not names or (self._program.from_program and self._program.by_name.keys() >= names)

    def has_skills_tool(self, names: Collection[str]) -> bool:
        """Return whether a session with these tools has the built-in tool for skills."""
        program = self._program
        return SKILL in names and not (program.from_program and SKILL in program.by_name)

    async def refresh(self, listing: Listing | None = None) -> None:
        """Load the user's own tools that have changed."""
        built_in = self._built_in
        if built_in is None or (listing is not None and self.own.is_current(listing)):
            return
        await self.own.refresh(names_in_use(built_in), listing)
        shared = built_in.plus(TOOLSET, self.own.by_name)
        self._shared = shared if self._shared is None else shared.with_sets(self._shared.named)

    def chosen(self, names: Iterable[str] | None, *, for_others: bool = False) -> tuple[str, ...]:
        """Return the names of tools, for a session of this program or of another process."""
        if self._shared is None or (self._program.from_program and not for_others):
            return self._program.chosen(names)
        return (self._shared if names is None else self._all).chosen(names)

    def granted(self, names: Iterable[str]) -> list[Tool]:
        return self._all.granted(names)

    @property
    def _all(self) -> Tools:
        if self._shared is None or not self._program.from_program:
            return self._shared or self._program
        by_name = {**self._shared.by_name, **self._program.by_name}
        return msgspec.structs.replace(self._shared, by_name=by_name)
