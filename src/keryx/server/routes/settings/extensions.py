"""What extends an agent: MCP servers with their states, and skills."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.params import PathParameter

from keryx.app.settings.server_states import ServerState, connect, server_states
from keryx.app.settings.skill_list import SkillList, list_skills
from keryx.app.trust.trusted_folders import read_folders
from keryx.server.problems import not_found
from keryx.server.routes.params import TheService

Name = Annotated[str, PathParameter(min_length=1, max_length=200, description="An MCP server.")]


class ServerStates(msgspec.Struct, frozen=True):
    """`problems` names entries that cannot be used, and why."""

    servers: tuple[ServerState, ...]
    problems: tuple[str, ...]


@get("/api/settings/mcp")
async def list_servers(service: TheService) -> ServerStates:
    """The MCP servers and their states. Connects to none."""
    client = service.host_client
    return ServerStates(await server_states(client), client.config.mcp.problems)


@post("/api/settings/mcp/{name:str}/connect", status_code=200)
async def connect_server(service: TheService, name: Name) -> ServerStates:
    """Connect to a server now, and return all states."""
    client = service.host_client
    await client.reconfigure()
    if not await connect(client, name):
        raise not_found(
            f"No MCP server {name!r} can be connected here",
            "GET /api/settings/mcp lists the servers; one that is off must be enabled first",
        )
    return ServerStates(await server_states(client), client.config.mcp.problems)


@get("/api/settings/skills")
async def skills(service: TheService) -> SkillList:
    """The skills of the home and of trusted folders, and those that cannot be used."""
    client = service.host_client
    folders = [folder.workspace for folder in await read_folders(client.store)]
    return await client.to_thread(lambda: list_skills(client.config, folders))


ROUTES = (list_servers, connect_server, skills)
