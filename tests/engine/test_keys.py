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
from tests.engine.sessions import World, until

pytestmark = pytest.mark.promise("mended.2")
TRIES = 50


def hello(request: ModelRequest) -> ScriptedReply:
    return ScriptedReply(text="hello")


async def prompt_parts(settings: Settings, workspace: str) -> PromptParts:
    """Lets others go on while it is read, as one on a disk does."""
    await asyncio.sleep(0)
    return PromptParts()


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    made = World(hello)
    made.services.prompt_parts = prompt_parts
    yield made
    await made.close()


async def accepted(world: World, session: Session) -> list[str]:
    return [e.text for e in await world.log(session) if isinstance(e, ev.MessageAccepted)]


async def test_of_two_texts_with_one_key_at_once_one_is_refused(world: World) -> None:
    session = await world.open()
    for number in range(TRIES):
        key = f"key {number}"
        answers = await asyncio.gather(
            world.send(session, "first", key=key),
            world.send(session, "second", key=key),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers] == [Sent, KeyReusedError]
    assert await accepted(world, session) == ["first"] * TRIES


async def test_the_same_message_twice_at_once_is_one(world: World) -> None:
    session = await world.open()
    for number in range(TRIES):
        sending = (world.send(session, "hello", key=f"key {number}") for _ in range(3))
        assert len(set(await asyncio.gather(*sending))) == 1
    assert await accepted(world, session) == ["hello"] * TRIES


async def test_a_delivery_that_was_given_up_leaves_its_key_to_the_next(world: World) -> None:
    session = await world.open()
    first = asyncio.ensure_future(world.send(session, "hello", key="k"))
    await asyncio.sleep(0)
    first.cancel()
    sent = await world.send(session, "hello", key="k")
    assert await accepted(world, session) == ["hello"]
    assert (await until(session, ev.TurnFinished)).turn_id == sent.turn_id


async def test_a_fork_begins_with_no_keys(world: World) -> None:
    session = await world.open()
    sent = await world.send(session, "hello", key="k")
    await until(session, ev.TurnFinished)
    fork = cm.ForkSession(
        command_id="fork", session_id="s1", by="tester", new_session_id="s2", turn_id=sent.turn_id
    )
    assert await session.tell(fork) == Done(True)
    other = await world.open("s2")
    asked = len(world.model.asked)
    again = await world.send(other, "hello", key="k")
    assert again.turn_id != sent.turn_id
    await until(other, ev.TurnFinished, after=again.seq)
    assert len(world.model.asked) == asked + 1
