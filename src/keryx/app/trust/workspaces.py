"""The workspaces of a host's sessions: only what a trusted one brings along is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import msgspec

from keryx.app.trust.content import WorkspaceContent, read_content
from keryx.app.trust.trusted_folders import trusted_digest
from keryx.errors import ToolFailedError
from keryx.ports.store import Store
from keryx.ports.tool import Tool
from keryx.tools.mcp.servers import McpServers
from keryx.tools.mcp.settings import ServerList
from keryx.tools.skills.catalog import Skill
from keryx.tools.skills.skill_tool import SkillFile, skill_tool


class TrustedWorkspace(msgspec.Struct, frozen=True, eq=False):
    """What a trusted workspace brings along, in use."""

    content: WorkspaceContent
    servers: McpServers
    skill: Callable[[tuple[Path, ...]], Tool] | None
    """Returns the tool for the skills of these folders and of this workspace, the same for the same
    folders; None: the workspace has no skills."""

    @property
    def skills(self) -> list[Skill]:
        return [skill for skill, _ in self.content.skills]


class Decision(msgspec.Struct, frozen=True):
    """Whether a workspace is in use, and what a person is told about it."""

    workspace: TrustedWorkspace | None = None
    at_start: tuple[str, ...] = ()
    """For the start of a session."""
    warnings: tuple[str, ...] = ()
    """For every turn."""


NOTHING = Decision()


class Workspaces:
    """The trusted workspaces of one host. Belongs to its loop."""

    def __init__(self, store: Store, open_servers: Callable[[Path], McpServers]) -> None:
        self._store, self._open_servers = store, open_servers
        self._trusted: dict[str, TrustedWorkspace] = {}

    def of(self, workspace: str) -> TrustedWorkspace | None:
        """Return what is in use in this folder, as the last turn there decided."""
        return self._trusted.get(workspace)

    async def decide(
        self,
        workspace: str,
        content: WorkspaceContent | None,
        environment: Mapping[str, str],
        users: Mapping[str, object],
    ) -> Decision:
        """Use what the folder brings along if a person trusts exactly that.

        `users` are the user's own MCP servers, which win over those of the same name.
        """
        digest = None if content is None else await trusted_digest(self._store, workspace)
        if content is None or digest != content.digest:
            await self._drop(workspace)
            return NOTHING if content is None else _not_used(content, is_known=digest is not None)
        clashes = sorted(content.servers.servers.keys() & users.keys())
        trusted = self._trusted.get(workspace)
        if trusted is None or trusted.content.digest != digest:
            trusted = self._use(workspace, content, environment, trusted)
        others = {
            name: settings
            for name, settings in content.servers.servers.items()
            if name not in users
        }
        trusted.servers.configure(ServerList(others))
        warnings = (
            f"the MCP server {name!r} of {workspace} is not used, because you have one of that name"
            for name in clashes
        )
        return Decision(trusted, warnings=(*content.problems, *warnings))

    def _use(
        self,
        workspace: str,
        content: WorkspaceContent,
        environment: Mapping[str, str],
        earlier: TrustedWorkspace | None,
    ) -> TrustedWorkspace:
        def read_again() -> Sequence[tuple[Skill, Sequence[SkillFile]]]:
            """Read the skills when one is called for: the files may have changed since."""
            now = read_content(content.workspace, environment)
            if now is None or now.digest != content.digest:
                raise ToolFailedError(
                    "what this folder brings along has changed since a person trusted it, so its "
                    f"skills are not used; the person can run: keryx trust {workspace}"
                )
            return now.skills

        trusted = TrustedWorkspace(
            content,
            self._open_servers(content.workspace) if earlier is None else earlier.servers,
            cache(partial(skill_tool, others=read_again)) if content.skills else None,
        )
        self._trusted[workspace] = trusted
        return trusted

    async def _drop(self, workspace: str) -> None:
        trusted = self._trusted.pop(workspace, None)
        if trusted is not None:
            await trusted.servers.close()

    async def close(self) -> None:
        """End the programs of all workspaces."""
        for workspace in tuple(self._trusted):
            await self._drop(workspace)


def _not_used(content: WorkspaceContent, *, is_known: bool) -> Decision:
    command = f"keryx trust {content.workspace}"
    if is_known:
        text = (
            f"this folder has {content.summary} that changed since you trusted it and are not used "
            f"until you trust it again: {command}"
        )
        return Decision(warnings=(text,))
    text = f"this folder has {content.summary} that are not used until you trust it: {command}"
    return Decision(at_start=(text,))
