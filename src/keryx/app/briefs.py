"""What a turn starts with: the configuration as it is now, AGENTS.md, a personality."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from keryx import config
from keryx.aio.bridge import Bridge
from keryx.config import Config, ConfigurationError
from keryx.engine.desk import Brief
from keryx.engine.log.state import Settings

AGENTS: Final = "AGENTS.md"
# A file of instructions is a page or two; one of this size is something else.
LARGEST: Final = 200_000


class Briefs:
    """Reads them at each turn's start; a running turn keeps what it started with."""

    def __init__(self, bridge: Bridge, found: Config, on_change: Callable[[Config], None]) -> None:
        self._bridge = bridge
        self._config = found
        self._on_change = on_change

    async def read(self, settings: Settings, workspace: str) -> Brief:
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
        return Brief(parts, warnings)


def _read(known: Config, workspace: Path) -> tuple[Config, str, tuple[str, ...]]:
    """In a thread: all that comes from the disk, in one go."""
    warnings: tuple[str, ...] = ()
    try:
        known = config.reload(known)
    except ConfigurationError as error:
        warnings = (f"{error}; the configuration from before is used",)
    return known, _read_agents(workspace), warnings


def _read_agents(workspace: Path) -> str:
    try:
        with (workspace / AGENTS).open(encoding="utf-8", errors="replace") as file:
            return file.read(LARGEST)
    except OSError:
        return ""  # there is none, or it may not be read: the turn runs without it


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    configured = ", ".join(sorted(known)) or "none"
    return f"there is no {kind} {name!r} (configured: {configured}); the turn runs without it"
