"""The MCP servers of a host: which of their tools a session may use, and which servers are missing.

Grants: `tool_search` stands for the tools of all servers, `mcp_SERVER` for those of one server, and
`mcp_SERVER_TOOL` for one tool.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from keryx.errors import KeryxError
from keryx.tools.mcp.deferral import SEARCH, is_large
from keryx.tools.mcp.listing import Listing, read_listing
from keryx.tools.mcp.server import McpServer, Surroundings
from keryx.tools.mcp.settings import ServerList
from keryx.tools.mcp.tool import PREFIX, McpTool

LISTING_PATIENCE: Final = 10.0
"""Seconds that a turn waits for servers that were never listed before it starts without them."""
MOST_PROBLEMS: Final = 10


def missing() -> str | None:
    """Return what must be installed to use MCP servers; None if nothing must."""
    if importlib.util.find_spec("mcp") is None:
        return "pip install 'keryx[mcp]'"
    return None


def report_defect(name: str, error: BaseException) -> None:
    """Report what went wrong in a task of the servers, unless it is the fault of a server."""
    if not isinstance(error, KeryxError):
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"{name} failed", "exception": error}
        )


class ServerNotes(msgspec.Struct, frozen=True):
    """What a turn is told about servers: a text for the model, and warnings for the person."""

    text: str = ""
    warnings: tuple[str, ...] = ()


class McpServers:
    """All servers of a host. Belongs to its loop."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        self._servers: dict[str, McpServer] = {}
        self._problems: tuple[str, ...] = ()
        self._closing: set[asyncio.Task[None]] = set()
        self._has_loaded = False

    def __len__(self) -> int:
        return len(self._servers)

    @property
    def servers(self) -> tuple[McpServer, ...]:
        return tuple(self._servers.values())

    def retry_in(self, server: McpServer) -> float:
        """Return the seconds until a server may be connected again; 0: it may at once."""
        seconds = server.retry_at - self._around.clock.monotonic()
        return max(0.0, seconds) if server.state == "failed" else 0.0

    def configure(self, configured: ServerList) -> None:
        """Use these servers from now on. A server whose settings stay the same stays connected."""
        servers: dict[str, McpServer] = {}
        for name, settings in configured.servers.items():
            server = self._servers.pop(name, None)
            if server is not None and server.settings != settings:
                self._close_soon(server)
                server = None
            if settings.enabled:
                servers[name] = server or McpServer(name, settings, self._around)
                self._has_loaded = self._has_loaded and server is not None
            elif server is not None:
                self._close_soon(server)
        for server in self._servers.values():
            self._close_soon(server)
        self._servers, self._problems = servers, configured.problems

    async def load(self) -> None:
        """Read the stored listings, so that tools are known before a server is connected."""
        if self._has_loaded:
            return
        self._has_loaded = True
        unlisted = [server for server in self._servers.values() if not server.is_listed]
        if unlisted:
            listings = await self._around.bridge.to_thread(self._read, unlisted)
            for server, listing in zip(unlisted, listings, strict=True):
                if listing is not None and not server.is_listed:
                    server.use_listing(listing)

    def _read(self, servers: Iterable[McpServer]) -> list[Listing | None]:
        folder = self._around.folder / "listings"
        return [read_listing(folder, server.name, server.settings) for server in servers]

    def is_granted(self, names: Collection[str]) -> bool:
        """Return whether a session with these grants may use any server."""
        return bool(self._servers or self._problems) and (
            SEARCH in names or any(name.startswith(PREFIX) for name in names)
        )

    def granted(self, names: Collection[str]) -> list[McpTool]:
        """Return the tools that a session with these grants may use."""
        return [*self._by_name(names)[0].values()]

    def _by_name(self, names: Collection[str]) -> tuple[dict[str, McpTool], list[str]]:
        """Return the granted tools by name, and a problem for each whose name is taken already."""
        tools: dict[str, McpTool] = {}
        problems: list[str] = []
        for server in self._granted_servers(names):
            for tool in server.tools:
                if not _is_granted(names, server, tool.name):
                    continue
                first = tools.setdefault(tool.name, tool)
                if first is not tool:
                    problems.append(
                        f"the MCP server {server.name}: the tool {tool.listed.name!r} is left "
                        f"out: models would call it {tool.name!r}, like {first.listed.name!r} of "
                        f"the server {first.server}; rename one of the servers"
                    )
        return tools, problems

    async def prepare(self, names: Collection[str]) -> ServerNotes:
        """List the servers that were never listed, for a bounded time, and say what is missing."""
        await self.load()
        servers = self._granted_servers(names)
        unlisted = [server for server in servers if not server.is_listed]
        for server in unlisted:
            server.start_listing()
        waiting = [server for server in unlisted if server.state == "connecting"]
        if waiting:
            tasks = [
                self._around.group.start(server.wait_listed(), name=f"wait for {server.name}")
                for server in waiting
            ]
            await asyncio.wait(tasks, timeout=LISTING_PATIENCE)
            for task in tasks:
                task.cancel()
        return self._notes(servers, names)

    async def close(self) -> None:
        """End all connections."""
        for server in self._servers.values():
            self._close_soon(server)
        self._servers = {}
        if self._closing:
            await asyncio.wait(self._closing)
        await self._around.group.leave()
        self._around.group.scope.close()

    def _close_soon(self, server: McpServer) -> None:
        task = self._around.group.start(server.close(), name=f"close mcp {server.name}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _granted_servers(self, names: Collection[str]) -> list[McpServer]:
        return [
            server
            for server in self._servers.values()
            if SEARCH in names or any(name.startswith(f"{PREFIX}{server.name}") for name in names)
        ]

    def _notes(self, servers: Iterable[McpServer], names: Collection[str]) -> ServerNotes:
        missing = [_missing(server) for server in servers if not server.is_listed]
        broken = [
            f"{server.name}: {server.fault} (its tools fail until it works again)"
            for server in servers
            if server.is_listed and server.state == "failed"
        ]
        logins = tuple(
            f"the MCP server {server.name} needs a login: open {server.login}"
            for server in servers
            if server.login is not None
        )
        lines: list[str] = []
        tools, clashes = self._by_name(names)
        if is_large(tools.values()):
            counts = [f"{server.name} ({len(server.tools)})" for server in servers if server.tools]
            lines.append(
                "MCP servers with more tools than are described to you; find them with "
                f"tool_search: {', '.join(counts)}."
            )
        if missing or broken:
            lines.append(
                "MCP servers that are not available now. If you need one, say so rather than doing "
                "without: " + "; ".join([*missing, *broken])
            )
        problems = [
            *(
                f"the MCP server {server.name}: {problem}"
                for server in servers
                for problem in server.problems
            ),
            *clashes,
        ]
        warnings = (
            *self._problems,
            *(f"the MCP server {text}" for text in missing),
            *logins,
            *_shortened(problems),
        )
        return ServerNotes("\n".join(lines), warnings)


def _is_granted(names: Collection[str], server: McpServer, tool: str) -> bool:
    return SEARCH in names or f"{PREFIX}{server.name}" in names or tool in names


def _missing(server: McpServer) -> str:
    if server.login is not None:
        return f"{server.name}: the person must log in to it first"
    if server.state == "connecting":
        return f"{server.name}: it is still starting; its tools come with a later turn"
    return f"{server.name}: {server.fault or 'it has not been listed yet'}"


def _shortened(problems: list[str]) -> list[str]:
    if len(problems) <= MOST_PROBLEMS:
        return problems
    left_out = len(problems) - MOST_PROBLEMS
    return [*problems[:MOST_PROBLEMS], f"and {left_out} more problems with tools of MCP servers"]
