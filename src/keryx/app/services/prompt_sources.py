"""What a turn reads at its start: the present configuration, AGENTS.md, a personality, the list of
skills, and which of the user's own tools have changed."""

from __future__ import annotations

import errno
import importlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.aio.bridge import Bridge
from keryx.app.host_tools import HostTools
from keryx.app.own_tools import Listing, list_files
from keryx.app.services.diffs import open_files, read_start
from keryx.app.skill_folders import skill_folders
from keryx.app.tools import hidden_places
from keryx.config import Config, ConfigurationError, reload
from keryx.engine.log.state import Settings
from keryx.engine.session_context import PromptParts
from keryx.errors import ToolFailedError

AGENTS: Final = "AGENTS.md"
# Bytes. A file of instructions has a page or two; a larger one is something else.
MAX_SIZE: Final = 200_000
# Non-blocking: opening a pipe would wait for a writer.
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class PromptSources:
    """Reads the sources when a turn starts; a running turn keeps what it started with."""

    def __init__(
        self,
        bridge: Bridge,
        config: Config,
        tools: HostTools,
        on_change: Callable[[Config], None],
    ) -> None:
        self._bridge = bridge
        self._tools = tools
        self._config = config
        self._on_change = on_change
        self._without_skills: set[str] = set()
        """The profiles that had no skills when a turn last looked."""

    def has_skills(self, profile: str) -> bool:
        """Return whether a profile had skills when a turn last looked; True before that."""
        return profile not in self._without_skills

    async def read(self, settings: Settings, workspace: str) -> TurnSources:
        uses_own = not self._tools.needs_program_only(settings.tools)
        own = self._tools.own.folder if uses_own else None
        uses_skills = self._tools.has_skills_tool(settings.tools)
        contents = await self._bridge.to_thread(
            _read, self._config, Path(workspace), own, settings.profile if uses_skills else None
        )
        config, warnings, parts = contents.config, contents.warnings, contents.parts
        if config is not self._config:
            self._config = config
            self._on_change(config)
        if uses_skills:
            if contents.skills:
                self._without_skills.discard(settings.profile)
            else:
                self._without_skills.add(settings.profile)
        if contents.own_tools is not None:
            await self._tools.refresh(contents.own_tools)
            warnings = (*warnings, *self._tools.own.warnings)
        if settings.profile not in config.profiles:
            warnings = (*warnings, _unknown("profile", settings.profile, config.profiles))
        if settings.personality is not None:
            personalities = config.profile(settings.profile).personalities
            personality = personalities.get(settings.personality)
            if personality is None:
                warnings = (*warnings, _unknown("personality", settings.personality, personalities))
            else:
                parts["personality"] = personality.text
        return TurnSources(PromptParts(parts, warnings), contents.skills, contents.workspace)


def with_skills(parts: PromptParts, skills: Sequence[Any]) -> PromptParts:
    """Return the parts with the list of these skills."""
    if not skills:
        return parts
    # Imported only here: a program that passes its own tools starts faster.
    catalog: Any = importlib.import_module("keryx.tools.skills.catalog")
    text, overflow = catalog.list_for_model(skills)
    return msgspec.structs.replace(
        parts, parts={**parts.parts, "skills": text}, warnings=(*parts.warnings, *overflow)
    )


class TurnSources(msgspec.Struct, frozen=True):
    """What one turn reads: parts of the prompt, the user's skills, and what the workspace has."""

    parts: PromptParts
    skills: Sequence[Any] = ()
    workspace: Any = None
    """A `WorkspaceContent`; None: the workspace brings nothing along."""


class _Contents(msgspec.Struct, frozen=True):
    """What one turn read from the disk."""

    config: Config
    parts: dict[str, str]
    own_tools: Listing | None
    warnings: tuple[str, ...]
    skills: Sequence[Any] = ()
    workspace: Any = None


def _read(config: Config, workspace: Path, own: Path | None, profile: str | None) -> _Contents:
    """Read everything from the disk in one step, in a thread. No profile: no skills."""
    warnings: list[str] = []
    parts: dict[str, str] = {}
    try:
        config = reload(config)
    except ConfigurationError as error:
        warnings.append(f"{error}; the last valid configuration is used")
    try:
        if agents := _read_agents(workspace, partial(hidden_places, config)):
            parts["agents"] = agents
    except ToolFailedError as error:
        warnings.append(f"{error}; the turn runs without it")
    skills = () if profile is None else _read_skills(skill_folders(config, profile), warnings)
    listing = None if own is None else list_files(own)
    content = read_workspace(workspace, config)
    return _Contents(config, parts, listing, tuple(warnings), skills, content)


def read_workspace(workspace: Path, config: Config) -> Any:
    """Return what the workspace brings along, as `WorkspaceContent`; None: nothing. Blocking."""
    if not (os.path.lexists(f"{workspace}/.mcp.json") or os.path.lexists(f"{workspace}/.keryx")):
        return None
    # Imported only here: most workspaces bring nothing along.
    content: Any = importlib.import_module("keryx.app.trust.content")
    return content.read_content(workspace, config.environment)


def _read_skills(folders: Sequence[Path], warnings: list[str]) -> Sequence[Any]:
    """Return the skills, and add what is wrong with them to the warnings."""
    # Imported only here: a program that passes its own tools starts faster.
    catalog: Any = importlib.import_module("keryx.tools.skills.catalog")
    skills, faults = catalog.read_skills(*folders)
    warnings.extend(faults)
    result: Sequence[Any] = skills
    return result


def _read_agents(workspace: Path, hidden: Callable[[], Sequence[Path]]) -> str:
    """Return the text of AGENTS.md. It may be anything, such as a link to a secret or a pipe."""
    try:
        file = os.open(workspace / AGENTS, _OPEN_FLAGS)
    except OSError as error:
        # `open_files` decides about links. Other errors: there is no readable file.
        return _read_with_file_tools(workspace, hidden()) if error.errno == errno.ELOOP else ""
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return ""
        if status.st_nlink > 1:  # it may be a second name of a hidden file
            return _read_with_file_tools(workspace, hidden())
        return os.read(file, MAX_SIZE).decode(errors="replace")
    finally:
        os.close(file)


def _read_with_file_tools(workspace: Path, hidden: Sequence[Path]) -> str:
    """Read the file as a tool of the session would; `ToolFailedError` if that is not allowed."""
    files = open_files(str(workspace), hidden=hidden)
    return read_start(files.resolve(AGENTS, write=False), AGENTS, MAX_SIZE)


def _unknown(kind: str, name: str, configured: Iterable[str]) -> str:
    names = ", ".join(sorted(configured)) or "none"
    return f"there is no {kind} {name!r} (configured: {names}); the turn runs without it"
