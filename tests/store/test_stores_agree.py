"""The two stores do the same with whatever they are given, refusals included."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from keryx.aio.bridge import Bridge
from keryx.errors import KeryxError
from keryx.events import LoggedEvent, Usage
from keryx.messages import File
from keryx.ports.store import (
    Blob,
    Commit,
    InboxRow,
    OutboxRow,
    RecordChange,
    Store,
    blob_hash,
)
from keryx.store.memory import MemoryStore
from keryx.store.sqlite import SqliteStore
from keryx.testing.event_factory import EventFactory
from tests.conftest import SOAK

NAMES = ["a", "b", "c"]
BLOBS = [Blob(blob_hash(bytes([number])), bytes([number])) for number in range(4)]


class World:
    """Makes commands, most right and some not, out of few names, so that they meet."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.epochs = dict.fromkeys(NAMES, 0)
        self.lasts = dict.fromkeys(NAMES, 0)

    def few(self) -> str:
        return str(self.chance.randrange(4))

    def some_events(self, facts: EventFactory) -> list[LoggedEvent]:
        few, chance = self.few, self.chance
        used = Usage(input_tokens=chance.randrange(9), output_tokens=1)
        cost = chance.choice([0.5, 0.25, None])
        makers = [
            lambda: facts.opened(few()),
            lambda: facts.renamed(few()),
            lambda: facts.tagged(*chance.sample(["Tea", "tea", "Ärger", "ärger", "a\nb"], 2)),
            facts.tagged,
            lambda: msgspec.structs.replace(
                facts.renamed(few()), archived=chance.random() < 0.5, model=few()
            ),
            lambda: facts.accepted(few(), few(), few()),
            lambda: facts.accepted(
                few(), few(), few(), (File(chance.choice(BLOBS).hash, "text/plain"),)
            ),
            lambda: facts.changed(few(), few()),
            lambda: facts.withdrawn(few()),
            lambda: facts.delivered(few(), few()),
            lambda: facts.started(few()),
            lambda: facts.resumed(few()),
            lambda: facts.finished(few(), chance.choice(["completed", "failed", "parked"])),
            lambda: facts.undone(few()),
            lambda: facts.restored(few(), few()),
            lambda: facts.step(few()),
            lambda: facts.replied(few(), turn_id=few(), usage=used, cost=cost),
            lambda: facts.call(few(), chance.choice([None, few()])),
            lambda: facts.called(few(), chance.choice([None, few()])),
            lambda: facts.asked(few()),
            lambda: facts.answered(few()),
            lambda: facts.spent(few(), chance.choice([None, used]), cost),
        ]
        return [chance.choice(makers)() for _ in range(chance.randrange(5))]

    def commit(self) -> Commit:
        chance = self.chance
        name = chance.choice(NAMES)
        wrong = chance.random()
        facts = EventFactory(name, last_seq=self.lasts[name] + (wrong < 0.05), at=chance.random())

        def rarely() -> bool:
            return chance.random() < 0.15

        return Commit(
            session_id=name,
            epoch=self.epochs[name] + (wrong > 0.95),
            events=tuple(self.some_events(facts)),
            enters=(InboxRow(self.few() + self.few(), self.few().encode()),) if rarely() else (),
            consumes=(self.few(),) if rarely() else (),
            claims=(self.few() + self.few(),) if rarely() else (),
            blobs=(chance.choice(BLOBS),) if rarely() else (),
            outbox=(OutboxRow(self.few() + self.few(), "t", b""),) if rarely() else (),
            records=(RecordChange(self.few(), chance.randrange(3), b"v"),) if rarely() else (),
        )


async def outcome_of(store: Store, kind: str, commit: Commit, key: str) -> object:
    name = commit.session_id
    try:
        match kind:
            case "claim":
                return await store.claim(name)
            case "delete":
                return await store.delete(name)
            case "enter":
                return await store.enter(name, InboxRow(key, key[:1].encode()))
            case "sent":
                return await store.sent([key])
            case _:
                return await store.append(commit)
    except KeryxError as error:
        return type(error)


async def all_of(store: Store) -> list[object]:
    contents: list[object] = [
        await store.sessions(),
        await store.sessions(archived=True),
        await store.sessions(archived=None, after=20, limit=2),
        await store.tags(),
        await store.sessions(tag="TEA", archived=None),
        await store.sessions(tag="ÄRGER", limit=2),
        sorted(await store.unfinished()),
        sorted(await store.usage(), key=lambda row: (row.session_id, row.model)),
        await store.outbox("t"),
        [await store.blob(blob.hash) for blob in BLOBS],
        [await store.record(str(number)) for number in range(4)],
    ]
    for name in NAMES:
        contents += [await store.events(name), await store.transcript(name, limit=1000)]
        contents += [await store.pending(name), await store.session(name)]
        contents += [await store.names_blob(name, blob.hash) for blob in BLOBS]
    contents += [
        await store.search(words, limit=1000) for words in ("1", "2 ", "ech", "don", "1 2")
    ]
    return contents


@pytest.mark.timeout(60 + 600 * SOAK)
@pytest.mark.parametrize("seed", range(200 if SOAK else 8))
async def test_any_sequence_of_commands_has_the_same_outcome(
    tmp_path: Path, bridge: Bridge, seed: int
) -> None:
    world = World(seed)
    memory = MemoryStore()
    sqlite = await SqliteStore.open(tmp_path / "store.db", bridge)
    kinds = ["append"] * 20 + ["claim", "enter", "enter", "sent"] + ["delete"] * (seed % 2)
    for number in range(150):
        kind = world.chance.choice(kinds) if number > 3 else "claim"
        commit, key = world.commit(), world.few()
        expected = await outcome_of(memory, kind, commit, key)
        assert await outcome_of(sqlite, kind, commit, key) == expected
        if kind == "claim" and isinstance(expected, int):
            world.epochs[commit.session_id] = expected
        for name in NAMES:
            world.lasts[name] = len(await memory.events(name))
        if number % 10 == 0:
            assert await all_of(sqlite) == await all_of(memory)
    assert await all_of(sqlite) == await all_of(memory)
    await sqlite.close()
