"""A key stands for one body: the same body is the same command, another body is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.log.state import Settings
from keryx.engine.session import Session
from keryx.engine.session_context import PromptParts
from keryx.errors import KeyReusedError
from keryx.models.scripted import ScriptedReply
from keryx.ports.dispatch import Done, Sent
from keryx.ports.model import ModelRequest
from tests.engine.sessions import SessionHost, until

pytestmark = pytest.mark.promise("mended.2")
TRIES = 50


def hello(request: ModelRequest) -> ScriptedReply:
    return ScriptedReply(text="hello")


async def prompt_parts(settings: Settings, workspace: str) -> PromptParts:
    """Lets others go on while it is read, as one on a disk does."""
    await asyncio.sleep(0)
    return PromptParts()


@pytest_asyncio.fixture
async def session_host() -> AsyncIterator[SessionHost]:
    new_world = SessionHost(hello)
    new_world.services.prompt_parts = prompt_parts
    yield new_world
    await new_world.close()


async def accepted(session_host: SessionHost, session: Session) -> list[str]:
    return [e.text for e in await session_host.log(session) if isinstance(e, ev.MessageAccepted)]


async def test_of_two_texts_with_one_key_at_once_one_is_refused(session_host: SessionHost) -> None:
    session = await session_host.open()
    for number in range(TRIES):
        key = f"key {number}"
        answers = await asyncio.gather(
            session_host.send(session, "first", key=key),
            session_host.send(session, "second", key=key),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers] == [Sent, KeyReusedError]
    assert await accepted(session_host, session) == ["first"] * TRIES


async def test_the_same_message_twice_at_once_is_one(session_host: SessionHost) -> None:
    session = await session_host.open()
    for number in range(TRIES):
        sending = (session_host.send(session, "hello", key=f"key {number}") for _ in range(3))
        assert len(set(await asyncio.gather(*sending))) == 1
    assert await accepted(session_host, session) == ["hello"] * TRIES


async def test_a_delivery_that_was_given_up_leaves_its_key_to_the_next(
    session_host: SessionHost,
) -> None:
    session = await session_host.open()
    first = asyncio.ensure_future(session_host.send(session, "hello", key="k"))
    await asyncio.sleep(0)
    first.cancel()
    sent = await session_host.send(session, "hello", key="k")
    assert await accepted(session_host, session) == ["hello"]
    assert (await until(session, ev.TurnFinished)).turn_id == sent.turn_id


async def test_a_fork_begins_with_no_keys(session_host: SessionHost) -> None:
    session = await session_host.open()
    sent = await session_host.send(session, "hello", key="k")
    await until(session, ev.TurnFinished)
    fork = cm.ForkSession(
        command_id="fork", session_id="s1", by="tester", new_session_id="s2", turn_id=sent.turn_id
    )
    assert await session.tell(fork) == Done(True)
    other = await session_host.open("s2")
    request_count = len(session_host.model.asked)
    again = await session_host.send(other, "hello", key="k")
    assert again.turn_id != sent.turn_id
    await until(other, ev.TurnFinished, after=again.seq)
    assert len(session_host.model.asked) == request_count + 1
