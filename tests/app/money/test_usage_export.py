"""The export of usage elsewhere: off by default, and no turn ever notices that it fails."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from keryx import Keryx
from keryx import events as ev
from keryx.aio.scope import Scope
from keryx.app.money.usage_export import MOST_WAITING, UsageExport
from keryx.config import ConfigurationError, load
from keryx.engine.log.fold import Fold
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.testing.event_factory import EventFactory
from tests.app.hosts import PATIENCE

pytestmark = pytest.mark.promise("004.10")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(handler: Handler) -> AsyncGenerator[str]:
    app = web.Application()
    app.router.add_post("/usage", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}/usage"
    finally:
        await runner.cleanup()


def absent() -> str:
    """An address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/usage"


async def turns(home: Path, url: str | None, count: int = 2) -> list[ev.TurnFinished]:
    home.mkdir(exist_ok=True)  # noqa: ASYNC240 (a test with one loop)
    text = "" if url is None else f'[usage.export]\nurl = "{url}"\n'
    (home / "config.toml").write_text(text)
    usage = ev.Usage(input_tokens=7, output_tokens=3)
    reply = ScriptedReply(text="A secret answer.", usage=usage, cost=0.5)
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=ScriptedModel(lambda _: reply), home=home, workspace=home) as app,
    ):
        session = await app.open()
        for _ in range(count):
            result = await (await session.send("A secret question.")).result()
            assert result.outcome == "completed"
        log = await app.store.events(session.session_id)
    return [event for event in log if isinstance(event, ev.TurnFinished)]


async def test_finished_turns_are_posted_and_nothing_of_what_was_said(tmp_path: Path) -> None:
    bodies: list[Any] = []

    async def take(request: web.Request) -> web.Response:
        bodies.append(json.loads(await request.text()))
        return web.Response(status=204)

    async with server(take) as url:
        finished = await turns(tmp_path / "home", url)
    assert [body["turn_id"] for body in bodies] == [turn.turn_id for turn in finished]
    first = bodies[0]
    assert (first["cost"], first["usage"]["input_tokens"], first["outcome"]) == (
        0.5,
        7,
        "completed",
    )
    assert "secret" not in json.dumps(bodies)


async def test_nothing_is_posted_unless_an_address_is_configured(tmp_path: Path) -> None:
    finished = await turns(tmp_path / "home", None)
    assert len(finished) == 2


@pytest.mark.parametrize("fault", ["hangs", "refuses", "breaks off", "redirects", "absent"])
async def test_a_turn_does_not_notice_a_server_that(fault: str, tmp_path: Path) -> None:
    reached, over = asyncio.Event(), asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        reached.set()
        if fault == "hangs":
            await over.wait()
        if fault == "breaks off":
            assert request.transport is not None
            request.transport.close()
        if fault == "redirects":
            raise web.HTTPTemporaryRedirect("/elsewhere")
        return web.Response(status=500)

    if fault == "absent":
        finished = await turns(tmp_path / "home", absent())
    else:
        async with server(handle) as url:
            finished = await turns(tmp_path / "home", url)
            assert reached.is_set()
            over.set()
    assert [turn.outcome for turn in finished] == ["completed", "completed"]


async def test_what_cannot_be_posted_is_bounded_and_counted() -> None:
    scope = Scope("test")

    async def no_client() -> Any:
        await asyncio.Event().wait()  # cancelled by `close`

    export = UsageExport(lambda: "http://127.0.0.1:1/", no_client, scope)
    facts, fold = EventFactory(), Fold("s")
    fold.apply(facts.opened())
    for number in range(MOST_WAITING + 50):
        export.add(fold, facts.finished(f"t{number}"))
    assert export.dropped == 50
    await export.close()
    assert (export.sent, export.dropped) == (0, MOST_WAITING + 50)
    scope.close()


def test_a_wrong_address_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[usage.export]\nurl = "nowhere"\n')
    with pytest.raises(ConfigurationError, match="nowhere"):
        load(tmp_path, {})
    (tmp_path / "config.toml").write_text('[usage.export]\nurll = "http://a/"\n')
    with pytest.raises(ConfigurationError, match="url"):
        load(tmp_path, {})
