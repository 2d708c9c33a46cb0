"""The parts of the prompt that come from outside: the workspace's AGENTS.md, a personality."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from keryx.aio.bridge import Bridge
from keryx.engine.log.fold import Settings

AGENTS: Final = "AGENTS.md"
# A file of instructions is a page or two; one of this size is something else.
LARGEST: Final = 200_000


def read_prompt(
    bridge: Bridge, personalities: Mapping[str, str]
) -> Callable[[Settings, str], Awaitable[Mapping[str, str]]]:
    """A function that reads them at a turn's start."""

    async def read(settings: Settings, workspace: str) -> Mapping[str, str]:
        parts: dict[str, str] = {}
        agents = await bridge.to_thread(_read_agents, Path(workspace))
        if agents:
            parts["agents"] = agents
        personality = personalities.get(settings.personality or "")
        if personality:
            parts["personality"] = personality
        return parts

    return read


def _read_agents(workspace: Path) -> str:
    try:
        with (workspace / AGENTS).open(errors="replace") as file:
            return file.read(LARGEST)
    except OSError:
        return ""  # there is none, or it may not be read: the turn runs without it
