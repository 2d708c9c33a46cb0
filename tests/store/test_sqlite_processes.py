"""Several processes on one file, and processes that die: nothing acknowledged is lost."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from keryx.aio.bridge import Bridge
from keryx.ports.store import Commit, InboxRow
from keryx.store.sqlite import SqliteStore
from keryx.testing.event_factory import EventFactory
from tests.conftest import SOAK
from tests.store.store_process import child
from tests.store.store_program import ROUNDS

pytestmark = pytest.mark.promise("sessions.1", "sessions.2")

KILLS = 1000 if SOAK else 50


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def race(action: str, path: Path, count: int = 2) -> list[Any]:
    """What each of them says that did the same at the same time."""
    with ExitStack() as stack:
        children = [stack.enter_context(child(action, path)) for _ in range(count)]
        for process in children:
            assert process.hear() == "ready"
        for process in children:
            process.go()
        return [process.hear() for process in children]


async def make(path: Path, bridge: Bridge) -> None:
    store = await SqliteStore.open(path, bridge)
    await store.claim("s")
    await store.close()


async def test_of_two_processes_that_enter_the_same_command_one_is_first(
    path: Path, bridge: Bridge
) -> None:
    await make(path, bridge)
    one, two = race("enter_the_same", path)
    assert [a ^ b for a, b in zip(one, two, strict=True)] == [True] * ROUNDS
    store = await SqliteStore.open(path, bridge)
    assert await store.pending("s") == [InboxRow(str(n), b"same") for n in range(ROUNDS)]
    await store.close()


async def test_of_two_processes_that_take_the_same_name_one_gets_it(
    path: Path, bridge: Bridge
) -> None:
    await make(path, bridge)
    one, two = race("take_the_same", path)
    assert [a ^ b for a, b in zip(one, two, strict=True)] == [True] * ROUNDS


async def test_no_two_owners_ever_have_the_same_epoch_and_the_log_has_no_gap(
    path: Path, bridge: Bridge
) -> None:
    one, two = race("claim_and_append", path)
    assert sorted([*one, *two]) == list(range(1, 2 * ROUNDS + 1))
    store = await SqliteStore.open(path, bridge)
    events = await store.events("s")
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    await store.close()


def test_processes_that_make_the_same_new_file_all_get_to_use_it(path: Path) -> None:
    with ExitStack() as stack:
        children = [stack.enter_context(child("open_only", path, "race")) for _ in range(3)]
        for process in children:
            assert process.hear() == "ready"
        for process in children:
            process.go()
        assert [process.hear() for process in children] == [[], [], []]


async def test_an_owner_that_was_fenced_by_another_process_writes_nothing(
    path: Path, bridge: Bridge
) -> None:
    store = await SqliteStore.open(path, bridge)
    epoch = await store.claim("s")
    with child("append_for_ever", path) as other:
        seen = other.hear()
        with pytest.raises(Exception, match="epoch 2"):
            await store.append(
                Commit(session_id="s", epoch=epoch, events=(EventFactory(last_seq=seen).opened(),))
            )
    await store.close()


@pytest.mark.timeout(60 + KILLS)
async def test_every_acknowledged_event_survives_a_kill_at_any_moment(
    path: Path, bridge: Bridge
) -> None:
    chance = random.Random(17)
    before = 0
    for _ in range(KILLS):
        with child("append_for_ever", path) as victim:
            heard = [victim.hear() for _ in range(chance.randrange(1, 40))]
            victim.process.kill()
            heard += victim.hear_all()
        store = await SqliteStore.open(path, bridge)
        seqs = [event.seq for event in await store.events("s", after=before)]
        row = await store.session("s")
        read = [entry.seq for entry in await store.transcript("s", limit=len(seqs))]
        await store.close()
        assert heard[0] == before + 3
        # Whole commits, without a gap: all that were said, and at most the one under way.
        assert seqs == list(range(before + 1, seqs[-1] + 1))
        assert seqs[-1] in (heard[-1], heard[-1] + 3)
        assert row is not None
        assert row.last_seq == seqs[-1]
        assert read == seqs
        before = seqs[-1]
