"""What a turn starts with: the configuration as it is now, AGENTS.md, a personality."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from keryx import config
from keryx.aio.bridge import Bridge
from keryx.app.diffs import open_files, read_start
from keryx.app.tools import hidden_places
from keryx.config import Config, ConfigurationError
from keryx.engine.log.state import Settings
from keryx.engine.session_context import PromptParts
from keryx.errors import ToolFailedError

AGENTS: Final = "AGENTS.md"
# A file of instructions is a page or two; one of this size is something else.
LARGEST: Final = 200_000
# Not blocking: opening a pipe would wait for a writer.
_PLAIN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class PromptSources:
    """Reads them at each turn's start; a running turn keeps what it started with."""

    def __init__(self, bridge: Bridge, found: Config, on_change: Callable[[Config], None]) -> None:
        self._bridge = bridge
        self._config = found
        self._on_change = on_change

    async def read(self, settings: Settings, workspace: str) -> PromptParts:
        found, agents, warnings = await self._bridge.to_thread(_read, self._config, Path(workspace))
        if found is not self._config:
            self._config = found
            self._on_change(found)
        parts: dict[str, str] = {}
        if agents:
            parts["agents"] = agents
        if settings.profile not in found.profiles:
            warnings = (*warnings, _unknown("profile", settings.profile, found.profiles))
        if settings.personality is not None:
            known = found.profile(settings.profile).personalities
            personality = known.get(settings.personality)
            if personality is None:
                warnings = (*warnings, _unknown("personality", settings.personality, known))
            else:
                parts["personality"] = personality.text
        return PromptParts(parts, warnings)


def _read(known: Config, workspace: Path) -> tuple[Config, str, tuple[str, ...]]:
    """In a thread: all that comes from the disk, in one go."""
    warnings: tuple[str, ...] = ()
    try:
        known = config.reload(known)
    except ConfigurationError as error:
        warnings = (f"{error}; the configuration from before is used",)
    try:
        agents = _read_agents(workspace, partial(hidden_places, known))
    except ToolFailedError as error:
        agents, warnings = "", (*warnings, f"{error}; the turn runs without it")
    return known, agents, warnings


def _read_agents(workspace: Path, hidden: Callable[[], Sequence[Path]]) -> str:
    """Commands of the session may have put anything there: a link to a secret, a pipe."""
    try:
        file = os.open(workspace / AGENTS, _PLAIN)
    except OSError as error:
        # A link is for `open_files` to judge. Else there is none, or it may not be read.
        return _read_elsewhere(workspace, hidden()) if error.errno == errno.ELOOP else ""
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return ""
        if status.st_nlink > 1:  # perhaps a second name of something hidden
            return _read_elsewhere(workspace, hidden())
        return os.read(file, LARGEST).decode(errors="replace")
    finally:
        os.close(file)


def _read_elsewhere(workspace: Path, hidden: Sequence[Path]) -> str:
    """As a tool of the session would read it; `ToolFailedError` if it may not."""
    files = open_files(str(workspace), hidden=hidden)
    return read_start(files.resolve(AGENTS, write=False), AGENTS, LARGEST)


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    configured = ", ".join(sorted(known)) or "none"
    return f"there is no {kind} {name!r} (configured: {configured}); the turn runs without it"
