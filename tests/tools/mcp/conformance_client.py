"""The client for `@modelcontextprotocol/conformance`: `python -m ... URL`. See `make conformance`.

It uses a server as a session would: it lists the tools and calls each of them. A person accepts
what is asked, and a browser follows the address of a login.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

import aiohttp

from keryx.aio.loops import run_loop
from keryx.engine.calls.call_hooks import CallView
from keryx.tools.mcp.server import McpServer
from keryx.tools.mcp.settings import LoginSettings, ServerSettings
from tests.tools.mcp.mcp_session import ALL, McpSession, session

DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The client id metadata document that the suite expects; nobody reads it."""
WAIT = float(os.environ.get("CONFORMANCE_WAIT", "20"))


async def browse(server: McpServer) -> None:
    """Open every address at which the person is asked to log in."""
    last: str | None = None
    async with aiohttp.ClientSession() as browser:
        while True:
            if server.login is not None and server.login != last:
                last = server.login
                async with browser.get(last) as page:
                    await page.read()
            await asyncio.sleep(0.02)


async def use(mcp: McpSession, server: McpServer) -> int:
    await server.list()
    sys.stderr.write(f"{server.state}: {server.fault}\n")
    failed = server.state != "ready"
    for tool in mcp.servers.granted(ALL):
        names = tool.parameters.get("required", ())
        outcome = await mcp.run(tool.name, **dict.fromkeys(names, 5))
        sys.stderr.write(f"{tool.name}: {outcome.outcome} {outcome.text[:200]}\n")
        failed = failed or outcome.outcome != "completed"
    return int(failed)


def who() -> LoginSettings:
    """Return who the client is: the suite says so for some scenarios."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    return LoginSettings(
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        metadata_url=DOCUMENT if scenario == "auth/basic-cimd" else None,
        person=scenario != "auth/client-credentials-basic",
    )


async def main(url: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        async with session(Path(folder), it=ServerSettings(url=url, oauth=who())) as mcp:
            mcp.person.ask = accept
            server = mcp.server("it")
            browsing = asyncio.create_task(browse(server))
            try:
                async with asyncio.timeout(WAIT):
                    return await use(mcp, server)
            finally:
                browsing.cancel()


async def accept(call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
    return "done" if "done" in choices else ""


if __name__ == "__main__":
    sys.exit(run_loop(main(sys.argv[-1])))
