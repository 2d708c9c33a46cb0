"""A provider that cannot be created misses nothing: once it is mended, it has all, and once."""

from __future__ import annotations

import pytest

from keryx.models.scripted import ScriptedModel, ScriptedReply
from tests.memory.broken_memory import BOOM, WORKING, configure, install_second, second_file
from tests.memory.memory_home import MemoryHome
from tests.memory.shelf import Shelf
from tests.memory.taught_sessions import (
    BROKEN,
    CAKE,
    CHESS,
    TEA,
    check_stored,
    delivered,
    home,
    provided,
    teach,
    teaching,
    warnings,
)
from tests.memory.test_sessions import ask, call, remembering, said
from tests.server.served_host import in_thread

assert home  # a fixture

pytestmark = pytest.mark.promise("003.1", "003.3")


@pytest.mark.parametrize("name", ["second", "another"])
@pytest.mark.parametrize("is_known", [True, False], ids=["known_before", "new"])
async def test_what_a_left_out_provider_missed_it_gets_when_it_is_mended(
    home: MemoryHome, name: str, is_known: bool
) -> None:
    configure(home, "shelf", "second", name=name)
    await in_thread(install_second, home, WORKING if is_known else BROKEN)
    async with remembering(teaching(TEA), home.path) as app:
        session_id = (session := await app.open()).session_id
        await teach(app, session, TEA)
    await provided(home, BROKEN)
    async with remembering(teaching(CAKE, CHESS), home.path) as app:
        session = await app.open(session_id)
        await teach(app, session, CAKE, CHESS)
        assert BOOM in "".join((await warnings(app, session))[-1])
        (left_out,) = [state for state in await app.memory.states() if state.left_out]
        assert (left_out.name, left_out.lag.waiting > 0) == ("second", True)
        assert "[memory.settings.second]" in str(left_out.left_out)
        await delivered(app, but="second")
    await in_thread(check_stored, home.stored, session_id, TEA, CAKE, CHESS)
    await provided(home, WORKING)
    async with remembering(ScriptedModel([]), home.path) as app:
        states = {state.name: state for state in await app.memory.states()}
        assert set(states) == {"shelf", name}
        assert {state.left_out for state in states.values()} == {None}
        await delivered(app)
    await in_thread(check_stored, second_file(home), session_id, TEA, CAKE, CHESS)


async def test_forgotten_memories_reach_a_left_out_provider_as_forgotten(home: MemoryHome) -> None:
    configure(home, "shelf", "second")
    await in_thread(install_second, home, WORKING)
    async with remembering(ScriptedModel([]), home.path) as app:
        tea, cake = await app.memory.add(TEA), await app.memory.add(CAKE)
    await provided(home, BROKEN)
    async with remembering(ScriptedModel([]), home.path) as app:
        chess = await app.memory.add(CHESS)
        forgotten = await app.memory.forget([tea.id, chess.id])
        assert forgotten.remaining == {"second": (tea.id,)}, "what it never got is not there"
    await provided(home, WORKING)
    async with remembering(ScriptedModel([]), home.path) as app:
        await delivered(app)
    assert list(Shelf(second_file(home)).active()) == [cake.id]


async def test_what_a_left_out_provider_got_after_it_was_brought_back_is_still_there(
    home: MemoryHome,
) -> None:
    configure(home, "shelf", "second")
    await in_thread(install_second, home, BROKEN)
    async with remembering(ScriptedModel([]), home.path) as app:
        await app.memory.add(CAKE)
    await provided(home, BROKEN)
    replies: list[ScriptedReply] = []
    async with remembering(ScriptedModel(replies), home.path) as app:
        tea = await app.memory.add(TEA)
        replies += [call("memory", action="remove", id=tea.id), said()]
        await ask(await app.open(), "Drop the tea.")
        assert await app.memory.undo(tea.id)
    await provided(home, WORKING)
    async with remembering(ScriptedModel([]), home.path) as app:
        await delivered(app)
    assert tea.id in Shelf(second_file(home)).active()
    await provided(home, BROKEN)
    async with remembering(ScriptedModel([]), home.path) as app:
        forgotten = await app.memory.forget([tea.id])
        assert forgotten.remaining == {"second": (tea.id,)}
