"""What was accepted is at Honcho once and in order, whatever the server does meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from keryx.memory.deliveries import ProviderState
from keryx.memory.providers.honcho.conclusions import MAX_FAILED_READS
from keryx.ports.memory import (
    Delivery,
    FateUnknownError,
    Memory,
    MemoryItem,
    ProviderUnavailableError,
)
from keryx.testing import memory_contract as contract
from tests.memory.honcho_home import honcho_server, memories_of, provider_of
from tests.memory.honcho_server.faults import Fault
from tests.memory.honcho_server.process import HonchoServer
from tests.memory.remembering_store import RememberingStore, remembering_store
from tests.server.served_host import in_thread

pytestmark = pytest.mark.promise("003.3")

PATIENCE = 30.0
CONCLUDING = "POST .*/conclusions$"
LISTING = "POST .*/conclusions/list$"
SYNCING = "POST .*/messages$"


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Generator[HonchoServer]:
    with honcho_server(tmp_path_factory.mktemp("honcho")) as server:
        yield server


@pytest.fixture
def server(process: HonchoServer) -> HonchoServer:
    """A server that has nothing."""
    process.reset()
    return process


@asynccontextmanager
async def remembering(
    server: HonchoServer, folder: Path, **settings: Any
) -> AsyncGenerator[RememberingStore]:
    async with remembering_store(
        folder, lambda file, bridge: provider_of(server, file, bridge, **settings), drain=1.0
    ) as memory:
        yield memory


async def failing(memory: RememberingStore) -> ProviderState:
    """Wait until the provider has failed; return its state."""
    while True:
        (state,) = await memory.service.states()
        if state.lag.breaker.failures:
            return state
        await memory.service.wait_delivered(0.05)


async def stored(server: HonchoServer) -> tuple[list[str], list[str]]:
    """Return the conclusions and the messages, in order."""
    state = await server.state()
    return tuple([row["content"] for row in state[name]] for name in ("conclusions", "messages"))  # type: ignore[return-value]


FAULTS: list[Fault] = [
    "slow",
    "error",
    "error_after",
    "drop",
    "drop_after",
    "hang",
    "hang_after",
    "late",
    "busy",
    "odd",
]


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_item_is_stored_once_after(
    server: HonchoServer, tmp_path: Path, fault: Fault
) -> None:
    await server.misbehave((CONCLUDING, fault), (SYNCING, fault))
    texts = ["one", "The build is red.", "The build is red.", "two"]
    async with remembering(server, tmp_path, timeout=0.5) as memory:
        await memory.conclude("s1", *texts)
        await memory.sync_turn("s1", "Hello", "Good morning")
        await memory.conclude("s1", "three")
        assert await memory.service.wait_delivered(PATIENCE)
        assert await memory.service.failures() == []
    conclusions, messages = await stored(server)
    assert conclusions == [*texts, "three"]
    assert messages == ["Hello", "Good morning"]


@pytest.fixture
def mortal_server(tmp_path: Path) -> Generator[HonchoServer]:
    """A server of one test, which may kill it."""
    with honcho_server(tmp_path) as server:
        yield server


async def test_a_server_that_is_killed_gets_everything_when_it_is_back(
    mortal_server: HonchoServer, tmp_path: Path
) -> None:
    server = mortal_server
    async with remembering(server, tmp_path) as memory:
        await memory.conclude("s1", "before")
        assert await memory.service.wait_delivered(PATIENCE)
        await in_thread(server.kill)
        await memory.conclude("s1", "meanwhile")
        await memory.sync_turn("s2", "Hello", "Good morning")
        state = await failing(memory)
        assert "cannot be reached" in state.lag.breaker.error
        await in_thread(server.start)
        await memory.service.retry()  # on a busy machine the pause has become long meanwhile
        assert await memory.service.wait_delivered(PATIENCE)
    assert await stored(server) == (["before", "meanwhile"], ["Hello", "Good morning"])


@pytest.mark.timeout(120)
async def test_a_host_that_is_killed_loses_nothing_and_stores_nothing_twice(
    server: HonchoServer, tmp_path: Path
) -> None:
    program = [sys.executable, "-m", "tests.memory.doomed_host", str(tmp_path), server.url]

    def live_and_die(lines: int) -> Sequence[str]:
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as host:
            assert host.stdout is not None
            accepted = [host.stdout.readline() for _ in range(lines)]
            host.kill()
            rest = host.stdout.read()
            return " ".join([*accepted, rest[: rest.rfind("\n") + 1]]).split()

    accepted: list[str] = []
    for lines in (5, 20, 60):
        accepted += await in_thread(live_and_die, lines)
    await in_thread(lambda: subprocess.run([*program, "finish"], check=True, timeout=60))
    state = await server.state()
    counts = Counter(row["session_id"] for row in state["conclusions"])
    sessions = {name.partition("/")[0] for name in accepted}
    for session in sessions:
        numbers = [int(name.partition("/")[2]) for name in accepted if name.startswith(session)]
        # One that was accepted and not printed any more may be there too.
        assert counts[session] in range(len(numbers), len(numbers) + 7), session
        texts = [r["content"] for r in state["conclusions"] if r["session_id"] == session]
        attempts = [text for text in texts if text.startswith("Attempt")]
        assert texts.count("The build is red.") == len(attempts)
        # Each of the lives counts its attempts from zero.
        assert max(Counter(attempts).values()) <= 3
    assert state["refusals"] == []


async def test_an_item_that_honcho_refuses_is_shown_and_the_others_go_on(
    server: HonchoServer, tmp_path: Path
) -> None:
    async with remembering(server, tmp_path) as memory:
        first, long, last = await memory.conclude("s1", "one", "x" * 70_000, "two")
        assert await memory.service.wait_delivered(PATIENCE)
        (failure,) = await memory.service.failures()
        assert (failure.item.id, failure.state) == (long, "refused")
        assert "at most 65535 characters" in failure.error
        assert "xxx" not in failure.error
    assert first != last
    assert (await stored(server))[0] == ["one", "two"]


async def test_a_batch_that_is_refused_without_a_name_is_sent_one_by_one(
    server: HonchoServer, tmp_path: Path
) -> None:
    await server.misbehave((CONCLUDING, "refuse"))
    async with remembering(server, tmp_path) as memory:
        await memory.conclude("s1", "one", "two", "three")
        assert await memory.service.wait_delivered(PATIENCE)
        assert await memory.service.failures() == []
    assert (await stored(server))[0] == ["one", "two", "three"]


async def test_a_wrong_key_is_said_and_nothing_is_lost(
    server: HonchoServer, tmp_path: Path
) -> None:
    async with remembering(server, tmp_path, api_key="wrong") as memory:
        await memory.conclude("s1", "one")
        state = await failing(memory)
        assert "set HONCHO_API_KEY" in state.lag.breaker.error
        assert state.lag.waiting == 1
    async with remembering(server, tmp_path) as memory:
        await memory.service.retry()
        assert await memory.service.wait_delivered(PATIENCE)
    assert (await stored(server))[0] == ["one"]


async def test_a_pause_that_honcho_asks_for_is_kept(server: HonchoServer, tmp_path: Path) -> None:
    await server.misbehave((CONCLUDING, "busy"), retry_after=600)
    async with remembering(server, tmp_path) as memory:
        await memory.conclude("s1", "one")
        state = await failing(memory)
        assert state.lag.breaker.retry_at > time.time() + 500
        await memory.service.retry()
        assert await memory.service.wait_delivered(PATIENCE)
    assert (await stored(server))[0] == ["one"]


async def test_a_conclusion_that_cannot_be_read_back_is_shown_as_unknown(
    server: HonchoServer, tmp_path: Path
) -> None:
    await server.misbehave((CONCLUDING, "drop_after"), (LISTING, "refuse"))
    async with remembering(server, tmp_path) as memory:
        (lost,) = await memory.conclude("s1", "The door code is 4711.")
        assert await memory.service.wait_delivered(PATIENCE)
        await memory.conclude("s1", "another")
        assert await memory.service.wait_delivered(PATIENCE)
        (failure,) = await memory.service.failures()
        assert (failure.item.id, failure.state) == (lost, "unknown")
        # It is there, although nobody knew: forgetting it deletes it.
        assert sorted((await stored(server))[0]) == ["The door code is 4711.", "another"]
        assert (await memory.service.forget([lost])).erased == (lost,)
        assert await memory.service.wait_delivered(PATIENCE)
        assert (await stored(server))[0] == ["another"]
        assert await memory.service.failures() == []


@pytest.mark.parametrize("fault", ["error", "odd"])
async def test_reading_back_is_tried_often_before_a_fate_is_unknown(
    server: HonchoServer, tmp_path: Path, fault: Fault
) -> None:
    script: list[tuple[str, Fault]] = [(LISTING, fault)] * MAX_FAILED_READS
    await server.misbehave((CONCLUDING, "drop_after"), *script)
    item = contract.memory(1, "one")
    async with memories_of(tmp_path) as (file, bridge):
        provider = provider_of(server, file, bridge)
        for attempts in range(MAX_FAILED_READS):
            with pytest.raises(ProviderUnavailableError):
                await provider.store("s1", [Delivery(item, attempts)])
        with pytest.raises(FateUnknownError):
            await provider.store("s1", [Delivery(item, MAX_FAILED_READS)])
        await provider.store("s1", [Delivery(item, MAX_FAILED_READS + 1)])
        await provider.close()
    assert (await stored(server))[0] == ["one"]


async def test_a_turn_that_cannot_be_read_back_is_unknown_and_may_remain(
    server: HonchoServer, tmp_path: Path
) -> None:
    await server.misbehave((SYNCING, "drop_after"), ("POST .*/messages/list$", "refuse"))
    turn = contract.turn(1, "Hello", "Good morning")
    async with memories_of(tmp_path) as (file, bridge):
        provider = provider_of(server, file, bridge)
        with pytest.raises(ProviderUnavailableError):
            await provider.store("s1", [Delivery(turn)])
        with pytest.raises(FateUnknownError):
            await provider.store("s1", [Delivery(turn, 1)])
        assert list(await provider.remaining([turn.id])) == [turn.id]
        await provider.store("s1", [Delivery(turn, 2)])
        await provider.close()
    assert (await stored(server))[1] == ["Hello", "Good morning"]


async def test_a_conclusion_that_was_unknown_is_found_when_a_person_retries(
    server: HonchoServer, tmp_path: Path
) -> None:
    await server.misbehave((CONCLUDING, "drop_after"), (LISTING, "refuse"))
    async with remembering(server, tmp_path) as memory:
        await memory.conclude("s1", "one")
        assert await memory.service.wait_delivered(PATIENCE)
        assert await memory.service.retry() == 1
        assert await memory.service.wait_delivered(PATIENCE)
        assert await memory.service.failures() == []
    assert (await stored(server))[0] == ["one"]


async def test_a_copy_that_comes_later_than_anybody_expects_is_removed_again(
    server: HonchoServer, tmp_path: Path
) -> None:
    await server.misbehave((CONCLUDING, "late"), late=1.0)
    async with remembering(server, tmp_path, settle=0.05) as memory:
        await memory.conclude("s1", "one")
        assert await memory.service.wait_delivered(PATIENCE)
        async with asyncio.timeout(PATIENCE):
            await server.wait_until(lambda state: len(state["conclusions"]) == 2)
        await memory.conclude("s1", "two")
        assert await memory.service.wait_delivered(PATIENCE)
    assert (await stored(server))[0] == ["one", "two"]


@pytest.mark.promise("003.2")
async def test_simultaneous_first_users_make_one_remote_session(
    server: HonchoServer, tmp_path: Path
) -> None:
    await server.misbehave(("POST .*/sessions$", "error"))
    async with memories_of(tmp_path) as (file, bridge):
        provider = provider_of(server, file, bridge)

        async def store(item: MemoryItem) -> Exception | None:
            try:
                await provider.store("s1", [Delivery(item)])
            except ProviderUnavailableError as error:
                return error
            return None

        async with asyncio.TaskGroup() as group:
            items = [contract.memory(number, f"Conclusion {number}.") for number in range(20)]
            turn = contract.turn(50, "Hi", "Yes?")
            tasks = [group.create_task(store(item)) for item in (*items, turn)]
        errors = [task.result() for task in tasks if task.result() is not None]
        assert len(errors) == 1, "the one whose request failed; all others share the next"
        await provider.close()
    state = await server.state()
    assert [row["id"] for row in state["sessions"]] == ["s1"]
    assert state["requests"]["POST /v3/workspaces/{workspace}/sessions"] == 2
    assert len(state["conclusions"]) + len(state["messages"]) / 2 == 20


async def test_long_turns_are_split_in_order_and_stored_once(
    server: HonchoServer, tmp_path: Path
) -> None:
    listing = "POST .*/messages/list$"
    await server.misbehave((SYNCING, "drop_after"), (SYNCING, "drop_after"), (listing, "odd"))
    said = "".join(f"{number:08d}" for number in range(330_000))
    async with remembering(server, tmp_path) as memory:
        turn = await memory.sync_turn("s1", f"A nul: \0.{said}", "Short.")
        assert await memory.service.wait_delivered(PATIENCE)
    messages = (await server.state())["messages"]
    first, last = messages[:-1], messages[-1]
    assert "".join(row["content"] for row in first) == f"A nul: .{said}"
    assert all(len(row["content"]) <= 25_000 for row in first)
    assert [row["metadata"]["part"] for row in first] == list(range(1, len(first) + 1))
    assert {row["metadata"]["event_id"] for row in first} == {turn.texts[0].id}
    assert {row["metadata"]["parts"] for row in first} == {len(first)}
    assert (last["content"], last["peer_id"]) == ("Short.", "agent")


async def test_memories_of_people_outside_of_sessions_are_stored_too(
    server: HonchoServer, tmp_path: Path
) -> None:
    async with remembering(server, tmp_path) as memory:
        item = contract.memory(1, "The user drinks tea.")
        alone = Memory(
            id=item.id,
            text=item.text,
            kind=item.kind,
            about=item.about,
            trust=item.trust,
            profile=item.profile,
            workspace="",
            created_at=item.created_at,
        )
        await memory.service.curation.add(alone)
        assert await memory.service.wait_delivered(PATIENCE)
    assert (await stored(server))[0] == ["The user drinks tea."]
