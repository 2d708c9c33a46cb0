"""MCP servers in whole sessions: what a model is sent, what it is told, and what a crash leaves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.config import load, reload, secrets_of
from keryx.messages import text_of
from keryx.testing.modelserver import Call, ModelServer, Reply
from keryx.tools.mcp.listing import ListedTool, Listing, identity
from keryx.tools.mcp.settings import ServerSettings
from tests.app.hosts import PATIENCE, Answers, configure, result_of
from tests.tools.mcp.mcp_session import raw, until
from tests.tools.mcp.raw_server import many_tool

pytestmark = pytest.mark.promise("kit.6")


def store_listing(home: Path, name: str, settings: ServerSettings, tools: Sequence[Any]) -> None:
    """As if the server had been connected before."""
    listed = tuple(
        ListedTool(
            name=tool["name"], description=tool.get("description", ""), schema=tool["inputSchema"]
        )
        for tool in tools
    )
    folder = home / "mcp" / "listings"
    folder.mkdir(parents=True, exist_ok=True)
    listing = Listing(server=identity(settings), tools=listed)
    (folder / f"{name}.json").write_bytes(msgspec.json.encode(listing))


@asynccontextmanager
async def talking(
    home: Path, server: ModelServer, /, **servers: ServerSettings
) -> AsyncGenerator[tuple[Keryx, SessionHandle]]:
    configure(home, server.url)
    entries = {
        name: {"command": settings.command, "args": settings.args}
        for name, settings in servers.items()
    }
    (home / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
    async with Keryx(model="openai:test-model", workspace=home, home=home) as app:
        yield app, await app.open()


def names_of(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request.body.get("tools", ())]


def tool_bytes(request: Any) -> int:
    return len(msgspec.json.encode(request.body["tools"]))


@pytest.mark.promise("kit.13")
async def test_of_500_tools_at_most_5_percent_of_the_bytes_are_sent(tmp_path: Path) -> None:
    settings, tools = raw("many", "500"), [many_tool(number) for number in range(500)]
    home = tmp_path / "home"
    store_listing(home, "big", settings, tools)
    answers = Answers(
        Reply(calls=(Call("tool_search", {"query": "create ticket", "limit": 2}),)),
        Reply(calls=(Call("mcp_big_create_ticket_11", {"field_0": "x"}),)),
        Reply(text="Done."),
        always=Reply(text="Again."),
    )
    async with (
        ModelServer(answers) as server,
        talking(home, server, big=settings) as (app, session),
    ):
        result = await result_of(await session.send("go"))
        assert result.outcome == "completed"
        first, second, third = server.asked
        assert "tool_search" in names_of(first)
        assert not any(name.startswith("mcp_") for name in names_of(first))
        whole = len(msgspec.json.encode([{"type": "function", "function": tool} for tool in tools]))
        assert max(map(tool_bytes, server.asked)) <= whole * 0.05
        # What was found is described from the next step on, and stays.
        loaded = {name for name in names_of(second) if name.startswith("mcp_big_create_ticket_")}
        assert len(loaded) == 2
        assert set(names_of(third)) == set(names_of(second))
        # All can be called, loaded or not: the server is started with the first call.
        assert result.calls[1].outcome == "completed"
        fork = await session.fork()
        await result_of(await fork.send("go"))
        assert loaded <= set(names_of(server.asked[-1]))
        session_id = session.session_id
        del app
    async with ModelServer(answers) as server:
        configure(home, server.url)
        async with Keryx(model="openai:test-model", workspace=home, home=home) as app:
            await result_of(await (await app.open(session_id)).send("go"))
            assert loaded <= set(names_of(server.asked[-1]))


async def test_few_tools_are_described_at_once_and_a_missing_server_is_told(
    tmp_path: Path,
) -> None:
    home, settings = tmp_path / "home", raw("plain")
    store_listing(home, "one", settings, [{"name": "echo", "inputSchema": {"type": "object"}}])
    answers = Answers(
        Reply(calls=(Call("mcp_one_echo", {"text": "hi"}),)), always=Reply(text="Done.")
    )
    servers = {"one": settings, "gone": ServerSettings(command="/nonexistent")}
    async with ModelServer(answers) as server, talking(home, server, **servers) as (app, session):
        await result_of(await session.send("go"))
        assert "mcp_one_echo" in names_of(server.asked[0])
        assert "tool_search" not in names_of(server.asked[0])
        await until(lambda: _has_failed(app, session))
        turn = await session.send("again")
        await result_of(turn)
        system = server.asked[-1].body["messages"][0]["content"]
        assert "gone: cannot start '/nonexistent'" in system
        assert any("gone" in warning for warning in await _last_warnings(app, session))


async def test_a_child_agent_gets_the_tools_of_servers_that_its_parent_names(
    tmp_path: Path,
) -> None:
    home, settings = tmp_path / "home", raw("plain")
    store_listing(home, "one", settings, [{"name": "echo", "inputSchema": {"type": "object"}}])
    tasks = [{"task": "Say it", "tools": [name]} for name in ("mcp_one_echo", "mcp_one_gone")]
    answers = Answers(
        Reply(calls=(Call("delegate", {"tasks": tasks}),)), always=Reply(text="Done.")
    )
    async with (
        ModelServer(answers) as server,
        talking(home, server, one=settings) as (app, session),
    ):
        del app
        result = await result_of(await session.send("go"))
        (call,) = result.calls
        assert "cannot get mcp_one_gone" in text_of(call.result)
        assert text_of(call.result).count('"outcome":"completed"') == 1
        of_child = [names_of(request) for request in server.asked if len(names_of(request)) == 1]
        assert of_child == [["mcp_one_echo"]]


async def test_two_servers_with_tools_of_one_name_are_reported_and_a_request_is_valid(
    tmp_path: Path,
) -> None:
    home, settings = tmp_path / "home", raw("plain")
    schema = {"type": "object"}
    store_listing(home, "a", settings, [{"name": "b_c", "inputSchema": schema}])
    other = [{"name": "c", "inputSchema": schema}, {"name": "d", "inputSchema": schema}]
    store_listing(home, "a_b", settings, other)
    async with (
        ModelServer(Answers(always=Reply(text="Done."))) as server,
        talking(home, server, a=settings, a_b=settings) as (app, session),
    ):
        await result_of(await session.send("go"))
        names = [name for name in names_of(server.asked[0]) if name.startswith("mcp_")]
        assert names == ["mcp_a_b_c", "mcp_a_b_d"]
        warnings = await _last_warnings(app, session)
        assert any("'c' is left out" in text and "the server a;" in text for text in warnings)


async def _has_failed(app: Keryx, session: SessionHandle) -> bool:
    """Whether a turn is told that the server failed, not only that it is starting."""
    await result_of(await session.send("are you there?"))
    return any("cannot start" in warning for warning in await _last_warnings(app, session))


async def _last_warnings(app: Keryx, session: SessionHandle) -> tuple[str, ...]:
    log = await app.store.events(session.session_id)
    return [event for event in log if isinstance(event, ev.TurnStarted)][-1].warnings


async def test_a_session_without_the_grant_has_no_tools_of_servers(tmp_path: Path) -> None:
    home, settings = tmp_path / "home", raw("plain")
    store_listing(home, "one", settings, [{"name": "echo", "inputSchema": {"type": "object"}}])
    async with (
        ModelServer(Answers(always=Reply(text="Done."))) as server,
        talking(home, server, one=settings) as (app, _),
    ):
        for grant, expected in (
            (["read_file"], []),
            (["mcp_one"], ["mcp_one_echo"]),
            (["mcp_one_echo"], ["mcp_one_echo"]),
            (["mcp"], ["mcp_one_echo"]),
        ):
            session = await app.open(tools=grant)
            await result_of(await session.send("go"))
            names = [name for name in names_of(server.asked[-1]) if name != "read_file"]
            assert names == expected


HOST = """
import asyncio, sys
from keryx import Keryx

async def main():
    async with Keryx(model="openai:test-model", workspace=sys.argv[1], home=sys.argv[1]) as app:
        session = await app.open()
        turn = await session.send("go")
        async for event in turn.events():
            if type(event).__name__ == "CallProgress":
                print("hanging", flush=True)

asyncio.run(main())
"""


async def test_a_killed_host_leaves_no_server_behind(tmp_path: Path) -> None:
    home, mark = tmp_path / "home", str(tmp_path / "mark-of-this-test")
    settings = raw("hangs", mark)
    store_listing(home, "one", settings, [{"name": "echo", "inputSchema": {"type": "object"}}])
    answers = Answers(always=Reply(calls=(Call("mcp_one_echo", {"text": "hi"}),)))
    async with ModelServer(answers) as server:
        configure(home, server.url)
        entry = {"command": settings.command, "args": settings.args}
        (home / "mcp.json").write_text(json.dumps({"mcpServers": {"one": entry}}))
        host = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOST, str(home), stdout=asyncio.subprocess.PIPE
        )
        assert host.stdout is not None
        async with asyncio.timeout(PATIENCE * 3):
            assert await host.stdout.readline() == b"hanging\n"
        assert processes_with(mark)
        host.send_signal(signal.SIGKILL)
        await host.wait()
        await until(lambda: not processes_with(mark))


def processes_with(mark: str) -> list[int]:
    """The processes that have the mark among their arguments."""
    pids: list[int] = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 (a process may end meanwhile)
        if entry.isdigit():
            try:
                arguments = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in arguments:
                pids.append(int(entry))
    return pids


def test_servers_of_both_files_are_used_and_their_secrets_are_known(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[mcp.servers.both]\ncommand = "mine"\n'
        'env = { API_KEY = "${KEY_OF_MINE}", LEVEL = "info" }\n'
        '[mcp.servers.wrong]\ncomand = "x"\n'
    )
    servers = {
        "both": {"command": "other"},
        "web": {"url": "http://h/", "headers": {"Authorization": "Bearer abcdefgh"}},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    config = load(tmp_path, {"KEY_OF_MINE": "12345678"})
    assert set(config.mcp.servers) == {"both", "web"}
    assert config.mcp.servers["both"].command == "mine"
    (problem,) = config.mcp.problems
    assert 'did you mean "command"?' in problem
    values = set(secrets_of(config).values())
    assert {"12345678", "abcdefgh"} <= values
    assert "info" not in values
    # A change of the file is noticed at the next turn's start.
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}}')
    assert set(reload(config).mcp.servers) == {"both"}


WITHOUT = """
import asyncio, sys
from keryx import Keryx

async def main():
    async with Keryx(model="scripted:demo", workspace=sys.argv[1], home=sys.argv[1]) as app:
        await (await (await app.open()).send("go")).result()

asyncio.run(main())
print(*sorted({"mcp", "mcp_types", "anyio", "httpx2", "pydantic", "jsonschema"} & set(sys.modules)))
"""


@pytest.mark.promise("kit.13")
def test_a_session_that_uses_no_server_does_not_import_the_package(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x", "enabled": false}}}')
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""
