"""Describes what a folder brings along, for people who decide whether to trust it.

The texts are somebody else's: characters that a terminal obeys or does not show are written as
escapes, and the value of a secret that a file refers to is not shown, only which one it is.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec

from keryx.app.host_client import HostClient
from keryx.app.trust.content import WorkspaceContent, read_content
from keryx.app.trust.trusted_folders import trusted_digest
from keryx.config import secrets_of
from keryx.engine.redaction import Redactor
from keryx.tools.hooks.settings import HookSettings
from keryx.tools.mcp.settings import ServerSettings


class DescribedServer(msgspec.Struct, frozen=True):
    """An MCP server: its name, and the command line or the address."""

    name: str
    runs: str


class DescribedHook(msgspec.Struct, frozen=True):
    """A hook: when it runs, for which tools, and its command line."""

    name: str
    event: str
    match: tuple[str, ...]
    runs: str


class DescribedSkill(msgspec.Struct, frozen=True):
    name: str
    description: str


class DescribedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder brings along. An empty digest: nothing. Trust it by this digest."""

    workspace: str
    digest: str = ""
    trusted: bool = False
    summary: str = ""
    servers: tuple[DescribedServer, ...] = ()
    hooks: tuple[DescribedHook, ...] = ()
    skills: tuple[DescribedSkill, ...] = ()
    problems: tuple[str, ...] = ()


async def describe(host_client: HostClient, workspace: str) -> DescribedFolder:
    """Return what this folder brings along now, and whether a person trusts it."""
    environment = host_client.config.environment
    content = await host_client.to_thread(lambda: read_content(Path(workspace), environment))
    if content is None:
        return DescribedFolder(workspace=workspace)
    digest = await trusted_digest(host_client.store, workspace)
    redactor = Redactor(secrets_of(host_client.config))
    return _described(
        content, lambda text: _visible(redactor.text(text)), trusted=digest == content.digest
    )


def _described(
    content: WorkspaceContent, shown: Callable[[str], str], *, trusted: bool
) -> DescribedFolder:
    return DescribedFolder(
        workspace=str(content.workspace),
        digest=content.digest,
        trusted=trusted,
        summary=content.summary,
        servers=tuple(
            DescribedServer(name, shown(_server_text(server)))
            for name, server in content.servers.servers.items()
        ),
        hooks=tuple(
            DescribedHook(
                shown(hook.label),
                hook.event,
                tuple(map(shown, hook.patterns)),
                shown(_hook_text(hook)),
            )
            for hook in content.hooks
        ),
        skills=tuple(
            DescribedSkill(skill.name, shown(skill.description)) for skill, _ in content.skills
        ),
        problems=tuple(map(shown, content.problems)),
    )


def _server_text(server: ServerSettings) -> str:
    """Return the command line with its variables, or the address with its headers."""
    if server.url is not None:
        headers = [f"{name}: {value}" for name, value in server.headers.items()]
        return "; ".join((server.url, *headers))
    variables = [f"{name}={shlex.quote(value)}" for name, value in server.env.items()]
    line = " ".join((*variables, shlex.join((server.command or "", *server.args))))
    return line if server.cwd is None else f"{line} (in {server.cwd})"


def _hook_text(hook: HookSettings) -> str:
    return hook.command if isinstance(hook.command, str) else shlex.join(hook.command)


def _visible(text: str) -> str:
    """Return the text with escapes for all characters that a person would not see."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
