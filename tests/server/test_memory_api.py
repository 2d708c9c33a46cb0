"""The memory over HTTP: read, added, edited, confirmed, forgotten; its providers and failures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from keryx.models.scripted import ScriptedCall, ScriptedReply
from keryx.tools.memory.memory_tools import memory_tools
from tests.memory import shelf
from tests.memory.memory_home import MemoryHome
from tests.server.served_host import Client, in_thread, scripted, served_host

pytestmark = pytest.mark.promise("003.5")

MEMORY = "/api/memory"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryHome:
    home = MemoryHome(tmp_path)
    monkeypatch.setattr(sys, "path", [str(home.packages), *sys.path])
    return home


def remember(text: str) -> ScriptedReply:
    """Remember what the person says; a result is answered with words."""
    if not text:
        return ScriptedReply(text="Done.")
    return ScriptedReply(calls=[ScriptedCall("conclude", {"text": text})])


async def said(client: Client, text: str) -> str:
    session_id = await client.open(title="Drinks")
    sent = await client.say(session_id, text)
    await client.finished(session_id, sent["turn_id"])
    return session_id


async def texts(client: Client, query: str = "") -> list[str]:
    return [item["text"] for item in (await client.get(MEMORY + query))["memories"]]


async def test_what_is_remembered_is_read_edited_confirmed_and_forgotten(
    home: MemoryHome, tmp_path: Path
) -> None:
    async with served_host(tmp_path, model=scripted(remember), tools=memory_tools()) as here:
        client = here.client
        session_id = await said(client, "The user likes green tea.")
        (item,) = (await client.get(MEMORY))["memories"]
        (source,) = item["sources"]
        assert (source["session_id"], source["title"]) == (session_id, "Drinks")
        assert (item["trust"], item["state"]) == ("person", "active")
        path = f"{MEMORY}/{item['id']}"
        edited = await client.ask("PATCH", path, json={"text": "The user likes black tea."})
        newest = edited.body
        assert (newest["replaces"], newest["sources"]) == (item["id"], [])
        late = await client.ask("PATCH", path, json={"text": "The user likes coffee."})
        assert late.problem(409, "changed_meanwhile")["newest"] == newest
        assert await texts(client) == ["The user likes black tea."]
        assert await texts(client, "?ended=true") == ["The user likes green tea."]
        (await client.ask("POST", f"{MEMORY}/mem_0/confirm")).problem(404, "not_found")
        confirmed = await client.post(f"{MEMORY}/{newest['id']}/confirm")
        assert confirmed["trust"] == "person"
        forgotten = await client.ask("DELETE", f"{MEMORY}/{newest['id']}")
        assert set(forgotten.body["erased"]) == {newest["id"], item["id"]}
        assert forgotten.body["remaining"] == {}
        (await client.ask("DELETE", f"{MEMORY}/{newest['id']}")).problem(404, "not_found")
        assert await texts(client) == await texts(client, "?ended=true") == []


async def test_it_says_whose_a_memory_is(home: MemoryHome, tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        client = here.client
        own = await client.post(MEMORY, {"text": "I drink coffee."}, status=201)
        of_ann = {"text": "Ann drinks tea.", "profile": "default/telegram:42"}
        item = await client.post(MEMORY, of_ann, status=201)
        assert (own["person"], item["person"]) == (None, "telegram:42")
        assert await texts(client, "?profile=default/telegram:42") == ["Ann drinks tea."]
        assert await texts(client, "?profile=default") == ["I drink coffee."]


async def test_the_list_has_pages_scopes_and_a_search(home: MemoryHome, tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        client = here.client
        for number in range(5):
            await client.post(MEMORY, {"text": f"Fact {number}."}, status=201)
        work = {"text": "Tests run with make.", "about": "work", "workspace": "."}
        assert (await client.post(MEMORY, work, status=201))["workspace"] == str(here.workspace)
        first = await client.get(f"{MEMORY}?limit=4")
        rest = await client.get(f"{MEMORY}?limit=4&before={first['next']}")
        pages = [item["text"] for item in (*first["memories"], *rest["memories"])]
        assert pages == ["Tests run with make.", *(f"Fact {number}." for number in (4, 3, 2, 1, 0))]
        assert rest["next"] is None
        assert await texts(client, "?q=fact%203") == ["Fact 3."]
        assert "Tests run with make." not in await texts(client, "?workspace=/elsewhere")
        assert await texts(client, "?profile=other") == []
        assert {item["person"] for item in (*first["memories"], *rest["memories"])} == {None}
        body: dict[str, Any]
        for body in ({"text": ""}, {"text": "x" * 2_001}, {}):
            (await client.ask("POST", MEMORY, json=body)).problem(400, "bad_request")
        (await client.ask("POST", MEMORY, json={"text": " "})).problem(422, "refused")
        nowhere = {"text": "x", "about": "work"}
        (await client.ask("POST", MEMORY, json=nowhere)).problem(422, "refused")
        assert len(await texts(client)) == 6


async def test_the_state_tells_lag_and_failures_and_a_retry_sends_again(
    home: MemoryHome, tmp_path: Path
) -> None:
    home.set_up(path=str(home.stored), refuses="tea")
    async with served_host(tmp_path) as here:
        client, provider = here.client, shelf.OPENED[-1]
        await client.post(MEMORY, {"text": "The user likes tea."}, status=201)
        await provider.wait_begun(lambda: provider.requests > 0)
        state = await client.get(f"{MEMORY}/state")
        while not state["failures"]:  # the refusal is written down a moment later
            state = await client.get(f"{MEMORY}/state")
        (failure,) = state["failures"]
        assert (failure["text"], failure["error"]) == ("The user likes tea.", "it is about tea")
        (shown,) = state["providers"]
        assert (shown["name"], shown["refused"], shown["stuck"]) == ("shelf", 1, True)
        provider.before = []
        retried = await client.post(f"{MEMORY}/retry", {"places": [failure["place"]]})
        assert retried == {"retried": 1}
        while "The user likes tea." not in await in_thread(home.texts):
            await provider.wait_stored()
        assert (await client.get(f"{MEMORY}/state"))["failures"] == []


async def test_a_deleted_session_may_leave_what_it_taught(home: MemoryHome, tmp_path: Path) -> None:
    async with served_host(tmp_path, model=scripted(remember), tools=memory_tools()) as here:
        client = here.client
        tea = await said(client, "The user likes tea.")
        cake = await said(client, "The user likes cake.")
        path = "/api/sessions"
        assert (await client.ask("DELETE", f"{path}/{tea}?memory=keep")).status == 204
        assert (await client.ask("DELETE", f"{path}/{cake}")).status == 204
        (item,) = (await client.get(MEMORY))["memories"]
        assert (item["text"], item["sources"][0]["title"]) == ("The user likes tea.", None)


async def test_without_a_provider_the_answer_says_how_to_turn_it_on(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        state = await here.client.get(f"{MEMORY}/state")
        assert state["on"] is False
        assert "providers = [" in state["hint"]
        refused = await here.client.ask("POST", MEMORY, json={"text": "The user likes tea."})
        assert "memory is off" in refused.problem(422, "refused")["detail"]
