"""Sessions at rest are let go, and nobody notices: neither who talks to them nor who watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.app.host import idle_sessions
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.ports.model import ModelRequest
from tests.app.hosts import PATIENCE, check_log, result_of

pytestmark = pytest.mark.promise("mended.20")
MANY = 12


def script(request: ModelRequest) -> ScriptedReply:
    if "Sum up" in request.system:
        return ScriptedReply(text="So far.")
    return ScriptedReply(text="word " * 50)


@asynccontextmanager
async def hosting(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[tuple[Keryx, ScriptedModel]]:
    """A host that keeps hardly any session open."""
    monkeypatch.setattr(idle_sessions, "MOST_SESSIONS", 2)
    monkeypatch.setattr(idle_sessions, "LEAST_SESSIONS", 1)
    model = ScriptedModel(script)
    async with Keryx(model=model, tools=[], home=home, workspace=home) as app:
        yield app, model


async def turns(app: Keryx, sessions: list[SessionHandle], text: str) -> None:
    for session in sessions:
        assert (await result_of(await session.send(text))).outcome == "completed"


async def test_sessions_that_were_let_go_take_up_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(tmp_path, monkeypatch) as (app, model):
        sessions = [await app.open() for _ in range(MANY)]
        for text in ("one", "two", "three"):
            await turns(app, sessions, text)
        assert b"one" in b"".join(model.asked[-1].history)
        for session in sessions:
            check_log(await app.store.events(session.session_id))
            assert (await session.view()).turn is None


async def test_who_watches_a_session_that_is_let_go_hears_of_it_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(tmp_path, monkeypatch) as (app, _), AsyncExitStack() as stack:
        sessions = [await app.open() for _ in range(MANY)]
        readers = [
            await stack.enter_async_context(aclosing(await session.follow(0)))
            for session in sessions
        ]
        for text in ("one", "two"):
            await turns(app, sessions, text)
        for session, reader in zip(sessions, readers, strict=True):
            log = await app.store.events(session.session_id)
            events: list[ev.Event] = []
            async with asyncio.timeout(PATIENCE):
                while len(events) < len(log):
                    event = await anext(reader)
                    if hasattr(event, "seq"):
                        events.append(event)
            assert events == log


async def test_who_watches_a_session_does_not_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(tmp_path, monkeypatch) as (app, _):
        session = await app.open()
        await turns(app, [session], "one")
    async with hosting(tmp_path, monkeypatch) as (app, _):
        row = await app.store.session(session.session_id)
        assert row is not None
        async with aclosing(await app.host_client.follow(session.session_id, after=0)) as events:
            seen = [await anext(events) for _ in range(row.last_seq)]
            assert seen == await app.store.events(session.session_id)
            again = await app.open(session.session_id)
            await turns(app, [again], "two")
            assert isinstance(await anext(events), ev.MessageAccepted)


async def test_what_was_summed_up_is_read_again_if_a_turn_of_it_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(tmp_path, monkeypatch) as (app, model):
        session = await app.open()
        first = await session.send("first " * 50)
        await result_of(first)
        second = await session.send("second " * 50)
        await result_of(second)
        await session.compact()
        await turns(app, [session], "third")
        sent = b"".join(model.asked[-1].history)
        assert b"So far." in sent
        assert b"first " * 50 not in sent
        await session.undo(second.turn_id)
        await turns(app, [session], "fourth")
        sent = b"".join(model.asked[-1].history)
        assert b"first " * 50 in sent
        assert b"second" not in sent
        assert b"So far." not in sent
    async with hosting(tmp_path, monkeypatch) as (app, model):
        await turns(app, [await app.open(session.session_id)], "fifth")
        assert b"first " * 50 in b"".join(model.asked[-1].history)


async def test_a_session_that_is_asked_for_is_not_let_go_while_all_others_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_there, go_on, count = asyncio.Event(), asyncio.Event(), 0

    async def hold() -> None:
        nonlocal count
        count += 1
        if count == MANY:
            all_there.set()
        await go_on.wait()

    monkeypatch.setattr(idle_sessions, "MOST_SESSIONS", 2)
    monkeypatch.setattr(idle_sessions, "LEAST_SESSIONS", 1)
    model = ScriptedModel([ScriptedReply(text="so", hold=hold)] * MANY)
    async with Keryx(model=model, tools=[], home=tmp_path, workspace=tmp_path) as app:
        running = [await (await app.open()).send("go") for _ in range(MANY)]
        async with asyncio.timeout(PATIENCE):
            await all_there.wait()
        go_on.set()
        for turn in running:
            assert (await result_of(turn)).outcome == "completed"
