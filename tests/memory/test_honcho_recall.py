"""What Honcho gives back: with its label, of its scope only, and nothing that was withdrawn."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from keryx import Keryx
from keryx.memory.providers.honcho.names import MAX_LENGTH, remote_name, session_name
from keryx.memory.providers.honcho.provider import HonchoProvider
from keryx.models.scripted import ScriptedModel
from keryx.ports.memory import Delivery, MemoryScope, TurnMemory, Withdrawal
from keryx.testing import memory_contract as contract
from keryx.testing.memory_contract import SCOPE, store
from keryx.tools.memory.memory_tools import memory_tools
from tests.memory.honcho_home import WORKSPACE, honcho_server, memories_of, provider_of
from tests.memory.honcho_server.process import HonchoServer
from tests.memory.remembering_store import remembering_store

pytestmark = pytest.mark.promise("003.1")

PATIENCE = 20.0


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[tuple[HonchoServer, HonchoProvider]]:
    with honcho_server(folder) as server:
        async with memories_of(folder) as (file, bridge):
            provider = provider_of(server, file, bridge)
            try:
                yield server, provider
            finally:
                await provider.close()
        assert (await server.state())["refusals"] == []


def elsewhere(turn: TurnMemory) -> TurnMemory:
    return msgspec.structs.replace(turn, workspace="/elsewhere")


async def test_what_honcho_derived_is_trusted_like_a_tool_and_stays_in_its_workspace(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as (server, provider):
        await store(provider, contract.turn(1, "I live in Athens.", "Noted.", session_id="s1"))
        other = elsewhere(contract.turn(2, "The port is 2000.", "Noted.", session_id="s2"))
        await store(provider, other)
        await server.derive(WORKSPACE, "s1", "The user lives in Athens, Greece.")
        await server.derive(WORKSPACE, "s2", "The user's port is 2000, not in Athens.")
        results = await provider.recall(SCOPE, "Athens", 10)
        assert {memory.text: memory.trust for memory in results} == {
            "The user lives in Athens, Greece.": "tool",
            "I live in Athens.": "tool",
        }
        assert {memory.provider for memory in results} == {"honcho"}
        context = await provider.context(SCOPE, "Athens", 10)
        assert "lives in Athens, Greece" in context[0].text
        assert not any("2000" in memory.text for memory in context)
        # A server that does not take the request still gives what else there is.
        await server.misbehave(("POST .*/representation$", "refuse"))
        assert list(await provider.context(SCOPE, "Athens", 10)) == results
        assert list(await provider.context(MemoryScope("", ""), "Athens", 10)) == []


async def test_a_long_representation_is_cut(tmp_path: Path) -> None:
    async with opened(tmp_path) as (server, provider):
        await store(provider, contract.turn(1, "Hello", "Good morning"))
        for number in range(30):
            await server.derive(WORKSPACE, "s1", f"Fact {number}: {'word ' * 40}")
        first, *_ = await provider.context(SCOPE, "word", 25)
        assert len(first.text) <= 1_500
        assert first.trust == "tool"


async def test_a_withdrawn_turn_is_not_recalled_and_said_to_remain_until_it_counts_again(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as (server, provider):
        turn = contract.turn(1, "The door code is 4711.", "Noted.")
        await store(provider, turn)
        await server.derive(WORKSPACE, "s1", "The user's door code is 4711.")
        assert len(await provider.recall(SCOPE, "door code", 10)) == 2
        await store(provider, Withdrawal(id="w1", session_id="s1", items=("t1",)))
        assert list(await provider.recall(SCOPE, "door code", 10)) == []
        assert list(await provider.context(SCOPE, "door code", 10)) == []
        assert list(await provider.remaining(["t1", "mem_other"])) == ["t1"]
        await store(provider, turn)
        assert len(await provider.recall(SCOPE, "door code", 10)) == 2
        contents = [row["content"] for row in (await server.state())["messages"]]
        assert contents == ["The door code is 4711.", "Noted."], "it was there all along"


async def test_a_session_that_a_person_deleted_is_deleted_at_honcho(tmp_path: Path) -> None:
    async with opened(tmp_path) as (server, provider):
        said = contract.turn(1, "The door code is 4711.", "Noted.")
        secret = contract.memory(1, "The user's door code is 4711.")
        await store(provider, said, secret)
        await store(provider, contract.turn(2, "Hello", "Good morning", session_id="s2"))
        items = (secret.id, "s1")
        await store(provider, Withdrawal(id="w1", session_id="s1", items=items, erase=True))
        async with asyncio.timeout(PATIENCE):
            await server.wait_until(lambda state: len(state["messages"]) == 2)
        assert list(await provider.remaining([*items, "t1"])) == []
        assert list(await provider.remaining(["s2"])) == ["s2"]
        state = await server.state()
        assert [row["content"] for row in state["messages"]] == ["Hello", "Good morning"]
        assert state["conclusions"] == []


async def test_what_honcho_still_has_of_a_deleted_session_is_said(tmp_path: Path) -> None:
    with honcho_server(tmp_path) as server:
        async with remembering_store(
            tmp_path, lambda file, bridge: provider_of(server, file, bridge), budget=1.0
        ) as memory:
            await memory.sync_turn("s1", "The door code is 4711.", "Noted.")
            (code,) = await memory.conclude("s1", "The user's door code is 4711.")
            assert await memory.service.wait_delivered(PATIENCE)
            await server.misbehave(("DELETE .*/sessions/s1", "hold"))
            forgotten = await memory.service.forget_session("s1")
            assert forgotten.erased == (code,)
            assert forgotten.remaining == {"honcho": ("s1",)}
            await server.misbehave()
            assert await memory.service.wait_delivered(PATIENCE)
        async with asyncio.timeout(PATIENCE):
            await server.wait_until(lambda state: state["messages"] == [])
        assert (await server.state())["conclusions"] == []


async def test_a_memory_that_a_person_confirmed_is_trusted_and_a_replaced_one_is_not_recalled(
    tmp_path: Path,
) -> None:
    with honcho_server(tmp_path) as server:
        async with remembering_store(
            tmp_path, lambda file, bridge: provider_of(server, file, bridge), budget=5.0
        ) as memory:
            (tea,) = await memory.conclude("s1", "The user drinks tea.")
            assert await memory.service.wait_delivered(PATIENCE)
            assert await memory.service.curation.confirm(tea)
            recall = await memory.service.recall(SCOPE, "what drinks", 10)
            assert [(m.memory_id, m.trust) for m in recall.memories] == [(tea, "person")]
            assert recall.late == ()


def test_names_keep_to_the_letters_that_honcho_takes_and_stay_different() -> None:
    names = ["a b", "a-b", "a/b", "ä", "", "x" * 600, "x" * 601, remote_name("a b"), "a b "]
    remote = [remote_name(name) for name in names]
    assert len(set(remote)) == len(names)
    for name in remote:
        assert 1 <= len(name) <= MAX_LENGTH
        assert name.isascii()
        assert name.replace("-", "").replace("_", "").isalnum()
    assert remote_name("session_01-x") == "session_01-x"
    assert session_name("") not in remote


async def test_a_missing_package_is_said_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "honcho", None)
    (tmp_path / "config.toml").write_text('[memory]\nproviders = ["honcho"]\n')
    async with Keryx(model=ScriptedModel([]), home=tmp_path, tools=memory_tools()) as app:
        (state,) = await app.memory.states()
    assert "pip install 'keryx[honcho]'" in str(state.left_out)


def test_the_client_is_imported_when_it_is_first_used() -> None:
    program = (
        "import sys, keryx.memory.providers.honcho.provider as provider;"
        "provider.require_package();"
        "assert not {'honcho', 'httpx', 'pydantic'} & set(sys.modules), 'imported early'"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


async def test_deliveries_of_another_profile_go_to_a_workspace_of_their_own(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as (server, provider):
        item = contract.memory(1, "The user drinks tea.", profile="work & play")
        await provider.store("s1", [Delivery(item)])
        state = await server.state()
        (workspace,) = (row["id"] for row in state["workspaces"])
        assert workspace == remote_name("keryx-work & play")
        await provider.close()
        # A provider that is used again after it was closed opens a new connection.
        results = await provider.recall(MemoryScope("work & play", ""), "tea", 10)
        assert [memory.text for memory in results] == ["The user drinks tea."]
