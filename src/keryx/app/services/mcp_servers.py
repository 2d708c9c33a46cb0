"""Creates the MCP servers of a host: where their programs run, and with which environment."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from keryx.aio.capture import OutputSink
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app.runtime import Runtime
from keryx.app.services.places import Places
from keryx.app.tools import DEFAULT_PATH, PASSED_ON
from keryx.config import Config, user_home
from keryx.messages import Needs
from keryx.ports.place import Process
from keryx.ports.store import blob_hash
from keryx.tools.mcp.server import Surroundings
from keryx.tools.mcp.servers import McpServers, report_defect
from keryx.tools.mcp.settings import ServerSettings

FOLDER: Final = "mcp"
PLACE: Final = ".mcp"
"""The folder of the servers beside those of the sessions; no session has this name."""


def open_servers(
    runtime: Runtime, places: Places, config: Config, workspace: Path | None = None
) -> McpServers:
    """Create the servers of the user, or of a workspace; none is connected yet.

    The programs of a workspace run there, and are confined to it.
    """
    passed = {name: config.environment[name] for name in PASSED_ON if name in config.environment}
    # A scope tree of its own: connections are closed in order, before the host's scope is.
    group = Group(Scope("mcp", clock=runtime.scope.clock), on_error=report_defect)

    async def spawn(name: str, settings: ServerSettings, output: OutputSink) -> Process:
        """Start the program of a server. It ends with the host, whatever happens."""
        assert settings.command is not None
        confined = settings.is_confined or workspace is not None
        folder = settings.cwd or str(workspace or user_home(config.environment) or "/")
        if confined and settings.cwd is None and workspace is None:
            # The walls let it write in its folder: not in the user's own.
            private = await runtime.bridge.to_thread(places.private, f"{PLACE}-{name}")
            folder = str(private)
        label = name if workspace is None else f"{_hash(workspace)}-{name}"
        place = places.of_server(f"{PLACE}-{label}", workspace or Path(folder), confined=confined)
        return await place.spawn(
            (settings.command, *settings.args),
            env={"PATH": DEFAULT_PATH, **passed, **settings.env},
            cwd=folder,
            scope=runtime.scope,
            output=output,
            stdin=True,
            granted=Needs(network=True),
        )

    servers = McpServers(
        Surroundings(
            bridge=runtime.bridge,
            group=group,
            clock=runtime.scope.clock,
            spawn=spawn,
            folder=config.home / FOLDER if workspace is None else _folder_of(config, workspace),
        )
    )
    if workspace is None:
        servers.configure(config.mcp)
    return servers


def _folder_of(config: Config, workspace: Path) -> Path:
    """Return where the listings and logins of a workspace's servers are stored."""
    return config.home / FOLDER / "workspaces" / _hash(workspace)


def _hash(workspace: Path) -> str:
    return blob_hash(str(workspace).encode())[:16]
