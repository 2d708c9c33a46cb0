"""The first steps of a person with no key: the tour, and a key that is tried and kept."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from keryx import Keryx
from keryx.config import Provider, keep_key, load
from keryx.server.access.tokens import Tokens
from keryx.server.serve import Settings, serving
from keryx.testing.modelserver import MODEL, ModelServer, ReceivedRequest, RefusedError, Reply
from tests.server.served_host import PATIENCE, Client, in_thread, served_host


async def test_a_pasted_key_is_tried_kept_for_one_pair_of_eyes_and_used(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with (
        asyncio.timeout(PATIENCE),
        ModelServer(lambda _: Reply(text="From the real one."), key="sk-right-0123") as models,
        Keryx(home=home, workspace=tmp_path) as app,
        serving(app.host_client, Settings(port=0, workspace=tmp_path)) as server,
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
            events = await client.until(name, "turn.finished", turn_id=sent["turn_id"])
            (reply,) = [event.data["text"] for event in events if event.type == "step.replied"]
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
        ModelServer(lambda _: Reply(text="."), key="sk-right-0123", models=offered) as models,
        Keryx(home=home, workspace=tmp_path) as app,
        serving(app.host_client, Settings(port=0, workspace=tmp_path)) as server,
    ):
        token = await in_thread(Tokens(home).make, "test")
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
            client = Client(server.url, http)
            body = {"name": "mine", "base_url": models.url, "api_key": "sk-right-0123"}
            done = await client.post("/api/setup", body)
            assert done["model"] == "mine:gpt-small", "the first that talks"
            talking = ["mine:gpt-small", "mine:gpt-large"]
            assert done["models"] == talking, "no model for embeddings"
            listed = await client.get("/api/setup/models")
            assert listed == {"models": talking, "problems": []}
            chosen = await client.post("/api/setup/model", {"model": "mine:gpt-large"})
            assert (chosen["configured"], chosen["model"]) == (True, "mine:gpt-large")
            for wrong in ("mine:gpt-none", "theirs:gpt-large", "gpt-large"):
                answer = await client.ask("POST", "/api/setup/model", json={"model": wrong})
                answer.problem(422, "refused")
                assert answer.body["hint"]
            assert (await client.get("/api/setup"))["model"] == "mine:gpt-large"
            # A server that is gone by now is named, and the others are listed all the same.
            await in_thread(keep_key, home, "gone", Provider("http://127.0.0.1:9/v1"), "x")
            await app.host_client.reconfigure()
            listed = await client.get("/api/setup/models")
            assert listed["models"] == talking
            assert "gone" in listed["problems"][0]
    again = await in_thread(load, home, {})
    assert again.default.providers["mine"].api_key == "sk-right-0123"


async def test_a_model_that_was_named_at_the_start_is_not_changed_from_the_page(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(PATIENCE), served_host(tmp_path) as here:
        answer = await here.client.ask("POST", "/api/setup/model", json={"model": "openai:other"})
        answer.problem(409, "conflict")
        assert "--model" in answer.body["detail"]


async def test_a_server_that_is_none_says_so(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), served_host(tmp_path) as here:
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
    async with asyncio.timeout(3 * PATIENCE), served_host(tmp_path) as here:
        name = await here.client.open(model="scripted:tour")
        sent = await here.client.say(name, "Show me.")
        slow = ""
        async with here.client.follow(name) as events:
            async for event in events:
                nested: dict[str, Any] = event.data.get("nested") or {}
                if "sa-east-1" in nested.get("preview", "") and nested.get("outcome") is None:
                    slow = event.data["call_id"]
                    path = f"/api/sessions/{name}/calls/{slow}/cancel"
                    assert await here.client.post(path, status=202) == {"cancelled": True}
                if event.type == "approval.asked":
                    path = f"/api/sessions/{name}/approvals/{event.data['approval_id']}"
                    await here.client.post(path, {"decision": "once"})
                if event.type == "turn.finished":
                    assert event.data["turn_id"] == sent["turn_id"]
                    assert event.data["outcome"] == "completed"
                    break
        assert slow
        rows = (await here.client.get(f"/api/sessions/{name}/messages"))["rows"]
        calls = [row["event"] for row in rows if row["event"]["type"] == "call.finished"]
        assert [call["outcome"] for call in calls] == ["completed", "completed"]
        assert calls[0]["nested"]["calls"] == 13


@asynccontextmanager
async def newcomer(tmp_path: Path, **config: str) -> AsyncGenerator[tuple[Client, Path]]:
    """Somebody at a server with no model, who brings a token."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    if config:
        (home / "config.toml").write_text(config["text"])
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(home=home, workspace=tmp_path) as app,
        serving(app.host_client, Settings(port=0, workspace=tmp_path)) as server,
    ):
        token = await in_thread(Tokens(home).make, "test")
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
            yield Client(server.url, http), home


def answers(request: ReceivedRequest) -> Reply:
    return Reply(text=".")


@pytest.mark.promise("mended.19")
async def test_two_servers_of_one_host_keep_their_keys_whatever_they_are_called(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(answers, key="sk-one-0123456") as one,
        ModelServer(answers, key="sk-two-0123456") as two,
        newcomer(tmp_path) as (client, home),
    ):
        keys = {one.url: "sk-one-0123456", two.url: "sk-two-0123456"}
        bodies = [
            {"name": "at-127-0-0-1", "base_url": url, "api_key": key} for url, key in keys.items()
        ]
        # At the same time, as two tabs can.
        done = await asyncio.gather(*(client.post("/api/setup", body) for body in bodies))
        names = {item["models"][0].partition(":")[0] for item in done}
        assert names == {"at-127-0-0-1", "at-127-0-0-1-2"}
        again = await client.post("/api/setup", bodies[1])
        assert again["models"][0].partition(":")[0] in names, "the same address has its name"
    providers = (await in_thread(load, home, {})).default.providers
    assert {item.base_url: item.api_key for item in providers.values()} == keys
    assert providers.keys() == names


@pytest.mark.promise("mended.19")
async def test_a_key_is_kept_by_a_name_that_the_configuration_does_not_hide(tmp_path: Path) -> None:
    async with ModelServer(answers, key="sk-mine-0123456") as models:
        text = f'[providers.work]\nbase_url = "{models.url}"\napi_key = "sk-old-0123456"\n'
        async with newcomer(tmp_path, text=text) as (client, home):
            body = {"name": "work", "base_url": models.url, "api_key": "sk-mine-0123456"}
            done = await client.post("/api/setup", body)
            assert done["model"] == f"work-2:{MODEL}"
    providers = (await in_thread(load, home, {})).default.providers
    assert {name: provider.api_key for name, provider in providers.items()} == {
        "work": "sk-old-0123456",
        "work-2": "sk-mine-0123456",
    }


@pytest.mark.promise("mended.19")
async def test_a_wrong_key_is_found_out_also_where_everybody_may_read_the_list(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(answers, key="sk-right-0123", lists_to_all=True) as models,
        newcomer(tmp_path) as (client, home),
    ):
        for wrong in ({"api_key": "sk-wrong-0123"}, {"api_key": "sk-wrong-0123", "model": MODEL}):
            body = {"name": "mine", "base_url": models.url, **wrong}
            refused = await client.ask("POST", "/api/setup", json=body)
            refused.problem(422, "auth")
            assert b"sk-wrong-0123" not in refused.raw
        assert not (home / "keys.json").exists()
        await client.post("/api/setup", {**body, "api_key": "sk-right-0123"})
        last = models.asked[-1].body
        assert (last["max_completion_tokens"], last["model"]) == (1, MODEL)


@pytest.mark.promise("mended.19")
async def test_a_model_that_is_not_there_is_told_apart_from_a_key_that_is_wrong(
    tmp_path: Path,
) -> None:
    def missing(request: ReceivedRequest) -> Reply:
        raise RefusedError("no such model here", 404, "model_not_found")

    async with (
        ModelServer(missing, key="sk-right-0123") as models,
        newcomer(tmp_path) as (
            client,
            home,
        ),
    ):
        body = {"name": "mine", "base_url": models.url, "api_key": "sk-right-0123"}
        refused = await client.ask("POST", "/api/setup", json={**body, "model": "gpt-none"})
        problem = refused.problem(422, "model_not_found")
        assert "accepts the key" in problem["detail"]
        assert MODEL in problem["hint"]
        assert not (home / "keys.json").exists()


def only_old_limits(request: ReceivedRequest) -> Reply:
    if "max_completion_tokens" in request.body:
        raise RefusedError("unknown field max_completion_tokens", 400, "unsupported_parameter")
    return Reply(text=".")


def only_old_models(request: ReceivedRequest) -> Reply:
    raise RefusedError("could not finish within that many tokens", 400, "invalid_request_error")


def busy(request: ReceivedRequest) -> Reply:
    return Reply(status=429, message="slow down", code="rate_limit_exceeded")


@pytest.mark.promise("mended.19")
@pytest.mark.parametrize("script", [only_old_limits, only_old_models, busy])
async def test_a_key_is_kept_if_the_server_only_dislikes_the_question(
    tmp_path: Path, script: Any
) -> None:
    async with (
        ModelServer(script, key="sk-right-0123") as models,
        newcomer(tmp_path) as (client, _),
    ):
        body = {"name": "mine", "base_url": models.url, "api_key": "sk-right-0123"}
        assert (await client.post("/api/setup", body))["model"] == f"mine:{MODEL}"
