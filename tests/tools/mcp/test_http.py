"""Servers with an address: streamable HTTP, with headers, with OAuth, gone and back again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from aiohttp import web

from keryx.config import load, secrets_of
from keryx.tools.mcp.settings import LoginSettings, ServerSettings, parse_servers
from keryx.tools.mcp.wire import http
from tests.tools.mcp.mcp_session import ALL, PATIENCE, ROOT, session, until

pytestmark = pytest.mark.promise("kit.6")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def serving(module: str, port: int) -> AsyncGenerator[None]:
    """The server in a process of its own, until it is left."""
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        str(port),
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await until(lambda: _answers(port))
        yield
    finally:
        server.kill()
        await server.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def test_a_server_with_an_address_works_goes_and_comes_back(tmp_path: Path) -> None:
    port = free_port()
    settings = ServerSettings(url=f"http://127.0.0.1:{port}/mcp")
    async with session(tmp_path, web=settings) as mcp:
        async with serving("tests.tools.mcp.example_server", port):
            await mcp.connect()
            assert mcp.server("web").state == "ready", mcp.server("web").fault
            assert "3" in (await mcp.run("mcp_web_add", a=1, b=2)).text
            assert (await mcp.run("mcp_web_count", to=2)).text == "counted"
            assert len(mcp.person.notes) == 2
            mcp.person.answers.extend(["Rex", "7"])
            assert (await mcp.run("mcp_web_ask_pet")).text == "Rex is 7"
            call = mcp.call("mcp_web_hang", folder=str(tmp_path))
            batch = await mcp.start(call)
            await mcp.person.until(lambda: "hanging" in {note[2] for note in mcp.person.notes})
            batch.cancel(call.call_id, "interrupt")
            (outcome,) = await batch.outcomes()
            assert (outcome.outcome, outcome.left_over) == ("unknown", ())
            await until(lambda: mcp.runtime.bridge.to_thread((tmp_path / "cancelled").exists))
        failure = await mcp.run("mcp_web_add", a=1, b=2)
        assert failure.outcome == "failed"
        assert "web" in failure.text
        async with serving("tests.tools.mcp.example_server", port):
            back = await mcp.run("mcp_web_add", a=2, b=2)
            assert "4" in back.text, back.text


async def test_an_address_where_nobody_answers_is_a_missing_server(tmp_path: Path) -> None:
    settings = ServerSettings(url=f"http://127.0.0.1:{free_port()}/mcp")
    async with session(tmp_path, web=settings) as mcp:
        await mcp.connect()
        notes = await mcp.servers.prepare(ALL)
        assert mcp.server("web").tools == []
        assert "web: " in notes.text


async def test_a_person_logs_in_once_and_the_tokens_are_private(tmp_path: Path) -> None:
    port = free_port()
    settings = ServerSettings(url=f"http://127.0.0.1:{port}/mcp")
    async with serving("tests.tools.mcp.login_server", port):
        async with session(tmp_path, web=settings) as mcp:
            server = mcp.server("web")
            server.start_listing()
            async with asyncio.timeout(PATIENCE):
                await server.wait_listed()
            assert server.login is not None, server.fault
            notes = await mcp.servers.prepare(ALL)
            assert any(server.login in warning for warning in notes.warnings)
            # The browser of the person: it follows the redirects to the listener of the host.
            async with aiohttp.ClientSession() as browser, browser.get(server.login) as page:
                assert "You are logged in" in await page.text()
            await until(lambda: server.state == "ready")
            assert (await mcp.run("mcp_web_secret")).text == "42"
        login = tmp_path / "mcp" / "logins" / "web.json"
        assert stat.S_IMODE(os.stat(login).st_mode) == 0o600  # noqa: PTH116 (same)
        async with session(tmp_path, web=settings) as mcp:
            await mcp.connect()
            assert mcp.server("web").login is None
            assert (await mcp.run("mcp_web_secret")).text == "42"


async def test_a_client_that_was_registered_by_hand_logs_in_as_itself(tmp_path: Path) -> None:
    port = free_port()
    who = LoginSettings(client_id="by-hand", client_secret="given-by-hand")
    settings = ServerSettings(url=f"http://127.0.0.1:{port}/mcp", oauth=who)
    async with (
        serving("tests.tools.mcp.login_server", port),
        session(tmp_path, web=settings) as mcp,
    ):
        server = mcp.server("web")
        server.start_listing()
        async with asyncio.timeout(PATIENCE):
            await server.wait_listed()
        assert server.login is not None, server.fault
        assert parse_qs(urlsplit(server.login).query)["client_id"] == ["by-hand"]
        async with aiohttp.ClientSession() as browser, browser.get(server.login) as page:
            assert "You are logged in" in await page.text()
        await until(lambda: server.state == "ready")
        assert (await mcp.run("mcp_web_secret")).text == "42"


@pytest.mark.parametrize(
    ("oauth", "reason"),
    [
        ({"client_secret": "s"}, "`client_secret` needs `client_id`"),
        ({"person": False, "client_id": "c"}, "needs `client_id` and `client_secret`"),
        ({"metadata_url": "http://a.example/b"}, "must be an https address with a path"),
        ({"metadata_url": "https://a.example"}, "must be an https address with a path"),
        ({"metadata_url": "https://["}, "must be an https address with a path"),
        ({"client": "c"}, "client"),
        ({"client_id": "${ABSENT}"}, "the variable ABSENT is not set"),
    ],
)
def test_a_login_that_cannot_work_is_refused_with_what_to_do(
    oauth: dict[str, Any], reason: str
) -> None:
    servers = parse_servers({"web": {"url": "http://a.example", "oauth": oauth}}, "here", {})
    assert servers.servers == {}
    assert reason in servers.problems[0]


def test_the_secret_of_a_login_comes_from_the_environment_and_is_removed_from_texts(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.toml").write_text(
        '[mcp.servers.web]\nurl = "http://a.example"\n'
        '[mcp.servers.web.oauth]\nclient_id = "c"\nclient_secret = "${TRACKER}"\n'
    )
    config = load(tmp_path, {"TRACKER": "very-secret"})
    oauth = config.mcp.servers["web"].oauth
    assert oauth == LoginSettings(client_id="c", client_secret="very-secret")
    assert "very-secret" in secrets_of(config).values()


async def test_a_login_that_is_refused_is_a_missing_server(tmp_path: Path) -> None:
    port = free_port()
    async with (
        serving("tests.tools.mcp.login_server", port),
        session(tmp_path, web=ServerSettings(url=f"http://127.0.0.1:{port}/mcp")) as mcp,
    ):
        server = mcp.server("web")
        server.start_listing()
        async with asyncio.timeout(PATIENCE):
            await server.wait_listed()
        assert server.login is not None
        fields = parse_qs(urlsplit(server.login).query)
        answer = f"{fields['redirect_uri'][0]}?error=access_denied&state={fields['state'][0]}"
        async with aiohttp.ClientSession() as browser, browser.get(answer) as page:
            assert page.status == 200
        await until(lambda: server.state == "failed")
        assert "the login was refused: access_denied" in server.fault


async def test_an_answer_that_never_ends_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LARGEST_EVENT", 1_000_000)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        with contextlib.suppress(OSError):
            while True:
                await response.write(b"[" * 100_000)
        return response

    app = web.Application()
    app.router.add_post("/mcp", endless)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        settings = ServerSettings(url=f"http://127.0.0.1:{port}/mcp")
        async with session(tmp_path, web=settings) as mcp:
            await mcp.connect()
            assert mcp.server("web").state == "failed"
            assert "more than 1000000 bytes" in mcp.server("web").fault
    finally:
        await runner.cleanup()
