"""The MCP servers of the configuration, and how each of them is doing."""

from __future__ import annotations

from typing import Literal

import msgspec

from keryx.app.host_client import HostClient
from keryx.app.settings.settings_file import written_tables
from keryx.config import Config
from keryx.tools.mcp.server import McpServer
from keryx.tools.mcp.servers import McpServers
from keryx.tools.mcp.settings import ServerSettings

State = Literal["off", "unused", "connecting", "login", "connected", "failed", "waiting", "unknown"]


class ServerState(msgspec.Struct, frozen=True, kw_only=True):
    """One server. `waiting`: it failed so often that it is left alone for `retry_in` seconds.

    `unknown`: another process runs the servers.
    """

    name: str
    source: Literal["config.toml", "mcp.json"]
    transport: Literal["program", "http"]
    state: State
    fault: str = ""
    login: str | None = None
    tools: int | None = None
    retry_in: float = 0.0
    problems: tuple[str, ...] = ()


async def server_states(client: HostClient) -> tuple[ServerState, ...]:
    """Return all servers that are configured. Connects to none."""
    names = await client.to_thread(lambda: _names_in_file(client.config))
    host = client.local_host
    servers = None if host is None else host.mcp
    return tuple(
        _state(name, settings, servers, is_in_file=name in names)
        for name, settings in client.config.mcp.servers.items()
    )


async def connect(client: HostClient, name: str) -> bool:
    """Connect to a server now. False: there is no such server here."""
    host = client.local_host
    if host is None:
        return False
    host.mcp.configure(client.config.mcp)
    server = next((server for server in host.mcp.servers if server.name == name), None)
    if server is None:
        return False
    server.start_listing()
    await server.wait_listed()
    return True


def _names_in_file(config: Config) -> frozenset[str]:
    return frozenset(written_tables(config, "mcp", "servers"))


def _state(
    name: str, settings: ServerSettings, servers: McpServers | None, *, is_in_file: bool
) -> ServerState:
    running = () if servers is None else servers.servers
    server = next((server for server in running if server.name == name), None)
    state = ServerState(
        name=name,
        source="config.toml" if is_in_file else "mcp.json",
        transport="program" if settings.url is None else "http",
        state="off" if not settings.enabled else "unknown" if servers is None else "unused",
    )
    # A server with other settings runs until the next turn; it says nothing of the new ones.
    if servers is None or server is None or server.settings != settings:
        return state
    retry_in = servers.retry_in(server)
    return msgspec.structs.replace(
        state,
        state=_word(server, retry_in),
        fault=server.fault if server.state == "failed" else "",
        login=server.login,
        tools=len(server.tools) if server.is_listed else None,
        retry_in=retry_in,
        problems=server.problems,
    )


def _word(server: McpServer, retry_in: float) -> State:
    if server.login is not None:
        return "login"
    match server.state:
        case "ready":
            return "connected"
        case "connecting":
            return "connecting"
        case "failed":
            return "waiting" if retry_in > 0 else "failed"
        case "idle":
            return "unused"
