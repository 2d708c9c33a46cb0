"""A fork begins as its session is: what was undone, summed up and set after the last turn holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.session import Session
from keryx.models.scripted import ScriptedReply
from keryx.ports.model import ModelRequest
from tests.engine.sessions import SessionHost, until

pytestmark = pytest.mark.promise("mended.3")


def reply(request: ModelRequest) -> ScriptedReply:
    if "Sum up" in request.system:
        return ScriptedReply(text="So far.")
    return ScriptedReply(text="word " * 100)


@pytest_asyncio.fixture
async def session_host() -> AsyncIterator[SessionHost]:
    new_world = SessionHost(reply)
    yield new_world
    await new_world.close()


async def tell(
    session_host: SessionHost, session: Session, kind: type[cm.Command], **fields: Any
) -> None:
    command = kind(
        command_id=session_host.command_id(), session_id=session.session_id, by="tester", **fields
    )
    await session.tell(command)


async def turn(session_host: SessionHost, session: Session, text: str) -> str:
    sent = await session_host.send(session, text)
    await until(session, ev.TurnFinished, after=sent.seq)
    return sent.turn_id


async def forked(
    session_host: SessionHost, session: Session, turn_id: str | None = None
) -> Session:
    await tell(session_host, session, cm.ForkSession, new_session_id="s2", turn_id=turn_id)
    return await session_host.open("s2")


async def test_an_undone_turn_stays_undone(session_host: SessionHost) -> None:
    session = await session_host.open()
    first = await turn(session_host, session, "first")
    undone = await turn(session_host, session, "second")
    await turn(session_host, session, "third")
    await tell(session_host, session, cm.UndoTurn, turn_id=undone)
    fork = await forked(session_host, session)
    await turn(session_host, fork, "fourth")
    request = b"".join(session_host.model.asked[-1].history)
    assert b"first" in request
    assert b"second" not in request
    assert b"third" in request
    assert first not in fork.fold.undone


async def test_settings_that_were_changed_after_the_last_turn_hold(
    session_host: SessionHost,
) -> None:
    session = await session_host.open()
    await turn(session_host, session, "first")
    await tell(
        session_host, session, cm.ChangeSession, effort="high", personality="poet", title="Verses"
    )
    settings = (await forked(session_host, session)).fold.settings
    assert (settings.effort, settings.personality) == ("high", "poet")
    assert settings.title == "Verses (fork)"


async def test_settings_of_later_turns_do_not_reach_back(session_host: SessionHost) -> None:
    session = await session_host.open()
    first = await turn(session_host, session, "first")
    await tell(session_host, session, cm.ChangeSession, effort="low")
    await turn(session_host, session, "second")
    await tell(session_host, session, cm.ChangeSession, effort="high")
    assert (await forked(session_host, session, first)).fold.settings.effort == "low"


async def test_a_summary_that_was_made_by_hand_holds(session_host: SessionHost) -> None:
    session = await session_host.open()
    await turn(session_host, session, "first " * 100)
    await tell(session_host, session, cm.CompactContext)
    fork = await forked(session_host, session)
    await turn(session_host, fork, "second")
    request = b"".join(session_host.model.asked[-1].history)
    assert b"So far." in request
    assert b"first " * 100 not in request
