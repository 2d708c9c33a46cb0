"""The first steps of a person with no key: the tour, and a key that is tried and kept."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import aiohttp

from keryx import Keryx
from keryx.config import Provider, keep_key, load
from keryx.server.access.tokens import Tokens
from keryx.server.serve import Settings, serving
from keryx.testing.modelserver import MODEL, ModelServer, Reply
from tests.server.worlds import PATIENCE, Client, in_thread, world


async def test_a_pasted_key_is_tried_kept_for_one_pair_of_eyes_and_used(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with (
        asyncio.timeout(PATIENCE),
        ModelServer([Reply(text="From the real one.")], key="sk-right-0123") as models,
        Keryx(home=home, workspace=tmp_path) as app,
        serving(app.front, Settings(port=0, workspace=tmp_path)) as server,
    ):
        token = await in_thread(Tokens(home).make, "test")
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
            client = Client(server.url, http)
            before = await client.get("/api/setup")
            body = {"name": "mine", "base_url": models.url, "api_key": "sk-wrong-0123"}
            refused = await client.ask("POST", "/api/setup", json=body)
            refused.problem(422, "auth")
            assert b"sk-wrong-0123" not in refused.raw
            assert not (home / "keys.json").exists()
            done = await client.post("/api/setup", {**body, "api_key": "sk-right-0123"})
            assert done == {"model": f"mine:{MODEL}", "models": [f"mine:{MODEL}"]}
            after = await client.get("/api/setup")
            assert (after["configured"], after["model"]) == (True, f"mine:{MODEL}")
            name = await client.open()
            sent = await client.say(name, "hi")
            told = await client.until(name, "turn.finished", turn_id=sent["turn_id"])
            (reply,) = [each.data["text"] for each in told if each.type == "step.replied"]
            assert reply == "From the real one."
    assert before["tour"] == "scripted:tour"
    mode = stat.S_IMODE((home / "keys.json").stat().st_mode)
    assert mode == 0o600
    again = await in_thread(load, home, {})
    assert again.default.model == f"mine:{MODEL}"


async def test_another_model_of_a_known_server_is_chosen_without_its_key(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    offered = ("text-embedding-3", "gpt-small", "gpt-large")
    async with (
        asyncio.timeout(PATIENCE),
        ModelServer([], key="sk-right-0123", models=offered) as models,
        Keryx(home=home, workspace=tmp_path) as app,
        serving(app.front, Settings(port=0, workspace=tmp_path)) as server,
    ):
        token = await in_thread(Tokens(home).make, "test")
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
            client = Client(server.url, http)
            body = {"name": "mine", "base_url": models.url, "api_key": "sk-right-0123"}
            done = await client.post("/api/setup", body)
            assert done["model"] == "mine:gpt-small", "the first that talks"
            listed = await client.get("/api/setup/models")
            assert listed == {"models": [f"mine:{each}" for each in offered], "problems": []}
            chosen = await client.post("/api/setup/model", {"model": "mine:gpt-large"})
            assert (chosen["configured"], chosen["model"]) == (True, "mine:gpt-large")
            for wrong in ("mine:gpt-none", "theirs:gpt-large", "gpt-large"):
                answer = await client.ask("POST", "/api/setup/model", json={"model": wrong})
                answer.problem(422, "refused")
                assert answer.body["hint"]
            assert (await client.get("/api/setup"))["model"] == "mine:gpt-large"
            # A server that is gone by now is named, and the others are listed all the same.
            await in_thread(keep_key, home, "gone", Provider("http://127.0.0.1:9/v1"), "gone:x")
            await app.front.reconfigure()
            listed = await client.get("/api/setup/models")
            assert listed["models"] == [f"mine:{each}" for each in offered]
            assert "gone" in listed["problems"][0]
    again = await in_thread(load, home, {})
    assert again.default.providers["mine"].api_key == "sk-right-0123"


async def test_a_model_that_was_named_at_the_start_is_not_changed_from_the_page(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(PATIENCE), world(tmp_path) as here:
        asked = await here.client.ask("POST", "/api/setup/model", json={"model": "openai:other"})
        asked.problem(409, "conflict")
        assert "config.toml" in asked.body["hint"]


async def test_a_server_that_is_none_says_so(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), world(tmp_path) as here:
        for body in (
            {"base_url": "http://127.0.0.1:9/v1"},
            {"base_url": here.server.url},
        ):
            answer = await here.client.ask("POST", "/api/setup", json=body)
            assert answer.status == 422, answer
            assert answer.body["hint"]
        odd = await here.client.ask("POST", "/api/setup", json={"base_url": "file:///etc/passwd"})
        assert odd.status == 400


async def test_the_tour_runs_with_real_tools_and_waits_for_a_person(tmp_path: Path) -> None:
    async with asyncio.timeout(3 * PATIENCE), world(tmp_path) as here:
        name = await here.client.open(model="scripted:tour")
        sent = await here.client.say(name, "Show me.")
        slow = ""
        async with here.client.follow(name) as events:
            async for told in events:
                nested: dict[str, Any] = told.data.get("nested") or {}
                if "sa-east-1" in nested.get("preview", "") and nested.get("outcome") is None:
                    slow = told.data["call_id"]
                    path = f"/api/sessions/{name}/calls/{slow}/cancel"
                    assert await here.client.post(path, status=202) == {"cancelled": True}
                if told.type == "approval.asked":
                    path = f"/api/sessions/{name}/approvals/{told.data['approval_id']}"
                    await here.client.post(path, {"decision": "once"})
                if told.type == "turn.finished":
                    assert told.data["turn_id"] == sent["turn_id"]
                    assert told.data["outcome"] == "completed"
                    break
        assert slow
        rows = (await here.client.get(f"/api/sessions/{name}/messages"))["rows"]
        calls = [row["event"] for row in rows if row["event"]["type"] == "call.finished"]
        assert [call["outcome"] for call in calls] == ["completed", "completed"]
        assert calls[0]["nested"]["calls"] == 13
