"""What a provider did not store: nothing of it comes back that was withdrawn or forgotten since."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.models.scripted import ScriptedModel
from keryx.ports.memory import Delivery, ItemRefusedError, Memory, TurnMemory
from tests.memory import shelf
from tests.memory.test_sessions import answers, ask, call, facts, home, remembering, said
from tests.server.served_host import in_thread

assert home  # a fixture

pytestmark = pytest.mark.promise("003.3")
TEA, COFFEE, CODE = "The user drinks tea.", "The user drinks coffee.", "The door code is 4711."


class Refusing(list[shelf.Misbehave]):
    """Refuses items of one kind until it is cleared."""

    def __init__(self, kind: type[Memory | TurnMemory]) -> None:
        super().__init__([self._refuse])
        self._kind = kind

    def pop(self, index: object = -1, /) -> shelf.Misbehave:
        del index
        return self[0]

    def _refuse(self, deliveries: Sequence[Delivery]) -> Exception | None:
        items = [delivery.item for delivery in deliveries]
        refused = next((item for item in items if isinstance(item, self._kind)), None)
        return None if refused is None else ItemRefusedError(refused.id, "not this one")


async def until_refused(app: Keryx) -> None:
    """Wait until the provider has refused an item, and nothing waits any more."""
    while True:
        (state,) = await app.memory.states()
        if state.lag.refused == 1 and state.lag.waiting == 0:
            return


def content(home: Path) -> bytes:
    """Everything that the files of the memory say."""
    return b"".join(path.read_bytes() for path in home.glob("memory.db*"))


async def test_a_refused_memory_that_is_removed_is_not_sent_again(home: Path) -> None:
    replies = [call("memory", action="add", text=TEA), said()]
    async with remembering(ScriptedModel(replies), home) as app:
        shelf.OPENED[-1].before = Refusing(Memory)
        session = await app.open()
        await ask(session, "I drink tea")
        (added,) = await facts(app, session, ev.MemoryChanged)
        await until_refused(app)
        replies += [call("memory", action="remove", id=added.memory_id), said()]
        await ask(session, "No more")
        assert await app.memory.failures() == []
        shelf.OPENED[-1].before = []
        assert await app.memory.retry() == 0
    assert not [item for item in shelf.OPENED[-1].lines() if isinstance(item, Memory)]


async def test_nothing_stays_of_a_memory_that_came_back_was_refused_and_is_forgotten(
    home: Path,
) -> None:
    replies = [call("memory", action="add", text=CODE), said()]
    async with remembering(ScriptedModel(replies), home) as app:
        session = await app.open()
        await ask(session, "The code is 4711")
        (added,) = await facts(app, session, ev.MemoryChanged)
        replies += [call("memory", action="remove", id=added.memory_id), said()]
        turn = await answers(session, "Forget the code")
        shelf.OPENED[-1].before = Refusing(Memory)
        await session.undo(turn)
        await until_refused(app)
        await app.memory.forget([added.memory_id])
        assert await app.memory.failures() == []
        assert b"4711" not in await in_thread(content, home)


async def test_a_refused_turn_of_a_deleted_session_is_forgotten(home: Path) -> None:
    async with remembering(ScriptedModel([said("4711, I see.")]), home) as app:
        shelf.OPENED[-1].before = Refusing(TurnMemory)
        session = await app.open()
        await ask(session, "The code is 4711")
        await until_refused(app)
        await app.delete(session.session_id)
        assert await app.memory.failures() == []
        shelf.OPENED[-1].before = []
        assert await app.memory.retry() == 0
    assert shelf.OPENED[-1].turns() == []
    assert b"4711" not in content(home)


async def test_a_provider_that_was_off_gets_what_changed_meanwhile(home: Path) -> None:
    replies = [call("memory", action="add", text=text) for text in (TEA, CODE)] + [said()]
    config = (home / "config.toml").read_text()
    async with remembering(ScriptedModel(replies), home) as app:
        session = await app.open()
        await ask(session, "Remember")
        tea, code = [change.memory_id for change in await facts(app, session, ev.MemoryChanged)]
    assert set(shelf.OPENED[-1].active()) >= {tea, code}
    (home / "config.toml").write_text(config.replace('["shelf"]', '["notes"]'))
    async with remembering(ScriptedModel([]), home) as app:
        forgotten = await app.memory.forget([code])
        assert forgotten.remaining == {"shelf": (code,)}
        coffee = await app.memory.edit(tea, COFFEE)
    (home / "config.toml").write_text(config.replace('["shelf"]', '["notes", "shelf"]'))
    model = ScriptedModel([call("recall", words="code drinks"), said()])
    async with remembering(model, home) as app:
        await ask(await app.open(), "What is the code, and what do I drink?")
        assert not any(b"4711" in data for data in model.asked[-1].history)
    stored = [item.id for item in shelf.OPENED[-1].active().values() if isinstance(item, Memory)]
    assert stored == [coffee.id]
