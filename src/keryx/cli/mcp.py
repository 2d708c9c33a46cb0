"""List the MCP servers: connect to each of them, and show its tools, or why it does not work."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Final

from keryx.aio.loops import run_loop
from keryx.app import Runtime
from keryx.app.host.homes.host_address import new_tmp
from keryx.app.services.mcp_servers import open_servers
from keryx.app.services.places import Places
from keryx.cli.chatting.pieces import one_line
from keryx.config import Config, load
from keryx.tools.mcp.server import McpServer

LONGEST_LINE: Final = 4_000
"""Characters of a server's text. An address for a login is long."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    verbs.add_parser("list", help="connect to all servers, and show their tools")


def run(options: argparse.Namespace) -> int:
    config = load(options.home)
    for problem in config.mcp.problems:
        print(f"keryx: {problem}", file=sys.stderr)
    if not config.mcp.servers:
        print(f"there are no MCP servers; name some in {config.home / 'mcp.json'}")
        return 0
    return run_loop(_list(config))


async def _list(config: Config) -> int:
    async with Runtime() as runtime:
        places = Places(runtime, config, config.home, new_tmp())
        servers = open_servers(runtime, places, config)
        try:
            for server in servers.servers:
                server.start_listing()
            codes = [await _show(server) for server in servers.servers]
        finally:
            await servers.close()
            await places.close()
    for name, settings in config.mcp.servers.items():
        if not settings.enabled:
            print(f"{name}: not enabled")
    return max(codes, default=0)


async def _show(server: McpServer) -> int:
    """Wait for one server, and print what it offers."""
    await server.wait_listed()
    if server.login is not None:
        print(f"keryx: {server.name} needs a login: open {_shown(server.login)}", file=sys.stderr)
        sys.stderr.flush()
        while server.state == "connecting":
            await server.list()
            await asyncio.sleep(0)
    if server.state != "ready":
        print(f"{server.name}: does not work: {_shown(server.fault)}")
        return 1
    print(f"{server.name}: {len(server.tools)} tools")
    for tool in server.tools:
        lines = tool.listed.description.strip().splitlines() or [""]
        print(f"  {tool.name}  {_shown(lines[0])}")
    for problem in server.problems:
        print(f"keryx: {server.name}: {_shown(problem)}", file=sys.stderr)
    return 0


def _shown(text: str) -> str:
    """Return a text of a server without characters that the terminal would obey."""
    return one_line(text, LONGEST_LINE)
