"""The settings over HTTP: shown without secrets, changed with care, in force at the next turn."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from keryx import Keryx
from keryx.server.access.tokens import Tokens
from keryx.server.serve import Settings, serving
from keryx.testing.modelserver import MODEL, ModelServer, Reply
from tests.server.served_host import PATIENCE, Client, in_thread

pytestmark = pytest.mark.promise("page20.12")

KEY = "sk-right-0123"
TEXT = f"""\
# My settings.

model = "mine:{MODEL}"  # fast

[providers.mine]
base_url = "URL"
api_key = "{KEY}"  # of the team

[limits]
steps = 200
"""


@asynccontextmanager
async def settings_server(tmp_path: Path, text: str = TEXT) -> AsyncGenerator[tuple[Client, Path]]:
    """A server with this configuration, and a model server behind it."""
    home = tmp_path / "home"
    home.mkdir()
    async with (
        asyncio.timeout(2 * PATIENCE),
        ModelServer(lambda _: Reply(text="."), key=KEY) as models,
    ):
        (home / "config.toml").write_text(text.replace("URL", models.url))
        async with (
            Keryx(home=home, workspace=tmp_path) as app,
            serving(app.host_client, Settings(port=0, workspace=tmp_path)) as server,
        ):
            token = await in_thread(Tokens(home).make, "test")
            async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
                yield Client(server.url, http), home


async def patch(client: Client, revision: str, *changes: dict[str, Any]) -> Any:
    body = {"revision": revision, "changes": changes}
    return await client.ask("PATCH", "/api/settings", json=body)


async def test_a_change_keeps_the_file_and_holds_at_the_next_turn(tmp_path: Path) -> None:
    async with settings_server(tmp_path) as (client, home):
        settings = await client.get("/api/settings")
        assert settings["document"]["limits"] == {"steps": 200}
        assert settings["defaults"]["limits"]["steps"] == 200
        assert (settings["problem"], settings["fixed"]) == (None, [])
        before = (home / "config.toml").read_text()
        change = {"path": ["limits", "steps"], "before": 200, "value": 7}
        answer = await patch(client, settings["revision"], change)
        assert answer.status == 200, answer
        assert (home / "config.toml").read_text() == before.replace("200", "7")
        nothing = {"path": ["limits", "tokens_per_session"], "value": 0}
        answer = await patch(client, answer.body["revision"], nothing)
        name = await client.open()
        sent = await client.say(name, "hi")
        events = await client.until(name, "turn.finished", turn_id=sent["turn_id"])
        assert events[-1].data["outcome"] == "failed", "no token is allowed any more"
        removals = ({"path": ["limits", "steps"], "before": 7}, nothing | {"before": 0})
        del removals[1]["value"]
        answer = await patch(client, answer.body["revision"], *removals)
        assert answer.body["document"]["limits"] == {}
        assert "# My settings." in (home / "config.toml").read_text()


@pytest.mark.promise("page20.15")
async def test_no_answer_holds_a_key(tmp_path: Path) -> None:
    async with settings_server(tmp_path) as (client, home):
        shown = await client.ask("GET", "/api/settings")
        listed = await client.ask("GET", "/api/settings/providers")
        assert KEY.encode() not in shown.raw + listed.raw
        mark = shown.body["document"]["providers"]["mine"]["api_key"]
        assert mark.keys() == {"$secret"}
        (provider,) = listed.body["providers"]
        assert (provider["source"], provider["has_key"]) == ("config.toml", True)
        # A whole table is written back, and the secret in it stays.
        table = shown.body["document"]["providers"]["mine"]
        change = {"path": ["providers", "mine"], "before": table}
        value = {**table, "images": ["*"]}
        answer = await patch(client, shown.body["revision"], {**change, "value": value})
        assert answer.status == 200, answer
        assert KEY.encode() not in answer.raw
        assert f'api_key = "{KEY}"  # of the team\n' in (home / "config.toml").read_text()
        stale = {"$secret": "0" * 32}
        change = {"path": ["providers", "mine", "api_key"], "value": stale, "before": mark}
        (await patch(client, answer.body["revision"], change)).problem(422, "refused")


async def test_a_change_by_hand_is_merged_or_shown_as_a_conflict(tmp_path: Path) -> None:
    async with settings_server(tmp_path) as (client, home):
        revision = (await client.get("/api/settings"))["revision"]
        by_hand = (home / "config.toml").read_text().replace("steps = 200", "steps = 7  # mine")
        (home / "config.toml").write_text(by_hand)
        other = {"path": ["limits", "seconds"], "value": 60}
        merged = await patch(client, revision, other)
        assert merged.status == 200, merged
        text = (home / "config.toml").read_text()
        assert text == by_hand.replace("# mine\n", "# mine\nseconds = 60\n")
        same = {"path": ["limits", "steps"], "before": 200, "value": 9}
        problem = (await patch(client, revision, same)).problem(409, "changed_meanwhile")
        assert "limits.steps" in problem["detail"]
        assert (home / "config.toml").read_text() == text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"path": ["limits", "stepz"], "value": 1}, 'did you mean "steps"'),
        ({"path": ["limits", "steps"], "value": "many"}, "Expected `int | null`"),
        ({"path": ["limits", "steps"], "value": None}, "TOML has no null"),
        ({"path": ["limits", "steps"], "value": 10**30}, "at most 64 bits"),
        ({"path": ["model", "name"], "value": "x"}, "is no table"),
        ({"path": ["models", "fallback"], "value": ["other:x"]}, "no provider 'other'"),
        ({"path": ["toolsets", "reading"], "value": ["read_fil"]}, "did you mean 'read_file'"),
        ({"path": ["mcp", "servers", "x"], "value": {"comand": "x"}}, 'did you mean "command"'),
    ],
)
async def test_what_could_not_be_read_back_is_not_written(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    async with settings_server(tmp_path) as (client, home):
        settings = await client.get("/api/settings")
        before = (home / "config.toml").read_text()
        answer = await patch(client, settings["revision"], {"before": None, **change})
        problem = answer.problem(422, "refused")
        assert words in f"{problem['detail']}; {problem['hint']}"
        assert (home / "config.toml").read_text() == before


async def test_a_file_that_is_broken_is_shown_with_its_line(tmp_path: Path) -> None:
    async with settings_server(tmp_path) as (client, home):
        good = (home / "config.toml").read_text()
        (home / "config.toml").write_text(f"{good}[limits\n")
        settings = await client.get("/api/settings")
        assert (settings["document"], settings["problem"]["line"]) == (None, 11)
        change = {"path": ["limits", "steps"], "value": 9}
        problem = (await patch(client, settings["revision"], change)).problem(422, "refused")
        assert "line 11" in problem["detail"]
        (home / "config.toml").write_text(f"{good}token = 5\nseconds = 60\n")
        settings = await client.get("/api/settings")
        assert settings["problem"]["line"] == 11
        assert 'did you mean "tokens"' in settings["problem"]["detail"]
        # A change that makes the file right again is welcome.
        fix = {"path": ["limits", "token"], "before": 5}
        answer = await patch(client, settings["revision"], fix)
        assert (answer.status, answer.body["problem"]) == (200, None)


@pytest.mark.parametrize(
    "text",
    [
        "providers = 3",
        "providers = []",
        "providers = { mine = 3 }",
        "providers = { mine = [] }",
        "mcp = 3",
        "mcp = { servers = 3 }",
        "mcp = { servers = { x = 3 } }",
        "personalities = 3",
        "profiles = { default = 3 }",
        "approvals = 3",
        "model = 3",
    ],
)
async def test_a_value_of_the_wrong_type_breaks_no_part_of_the_screen(
    tmp_path: Path, text: str
) -> None:
    async with settings_server(tmp_path) as (client, home):
        (home / "config.toml").write_text(f"{text}\n")
        settings = await client.get("/api/settings")
        assert settings["problem"]["detail"]
        for part in ("providers", "mcp", "skills", "tokens"):
            answer = await client.ask("GET", f"/api/settings/{part}")
            assert answer.status == 200, answer.raw
        answer = await patch(
            client, settings["revision"], {"path": ["limits", "steps"], "value": 5}
        )
        answer.problem(422, "refused")
        (await client.ask("DELETE", "/api/settings/providers/mine")).problem(422, "refused")
        for path in ("/api/setup", "/api/approvals/rules", "/api/models", "/api/profiles"):
            assert (await client.ask("GET", path)).status == 200
        assert (home / "config.toml").read_text() == f"{text}\n"


async def test_what_a_variable_sets_is_shown_and_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERYX_MODEL", f"mine:{MODEL}")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    async with settings_server(tmp_path) as (client, _):
        settings = await client.get("/api/settings")
        fixed = {"path": ["model"], "by": "KERYX_MODEL", "value": f"mine:{MODEL}"}
        assert fixed in settings["fixed"]
        change = {"path": ["model"], "value": "mine:other"}
        problem = (await patch(client, settings["revision"], change)).problem(409, "conflict")
        assert "KERYX_MODEL" in problem["detail"]
        listed = (await client.get("/api/settings/providers"))["providers"]
        (openai,) = [provider for provider in listed if provider["name"] == "openai"]
        assert (openai["source"], openai["variable"]) == ("environment", "OPENAI_API_KEY")
        answer = await client.ask("DELETE", "/api/settings/providers/openai")
        answer.problem(422, "refused")


@pytest.mark.promise("page20.15")
async def test_a_provider_is_tested_changed_and_removed(tmp_path: Path) -> None:
    async with settings_server(tmp_path) as (client, home):
        address = "/api/settings/providers/mine"
        assert (await client.post(f"{address}/test"))["model"] == MODEL
        wrong = await client.ask("PUT", address, json={"api_key": "sk-wrong-0123"})
        wrong.problem(422, "auth")
        assert b"sk-wrong" not in wrong.raw
        elsewhere = await client.ask("PUT", address, json={"base_url": "http://127.0.0.1:9/v1"})
        assert "not sent to another server" in elsewhere.problem(422, "refused")["detail"]
        before = (home / "config.toml").read_text()
        same = await client.ask("PUT", address, json={"api_key": KEY})
        assert (same.status, same.body["model"]) == (200, MODEL)
        assert (home / "config.toml").read_text() == before
        used = await client.ask("DELETE", address)
        assert "default model" in used.problem(422, "refused")["detail"]
        url = (await client.get("/api/settings/providers"))["providers"][0]["base_url"]
        await client.post("/api/setup", {"name": "two", "base_url": url, "api_key": KEY})
        listed = (await client.get("/api/settings/providers"))["providers"]
        assert {entry["name"]: entry["source"] for entry in listed} == {
            "mine": "config.toml",
            "two": "page",
        }
        changed = await client.ask("PUT", "/api/settings/providers/two", json={"api_key": KEY})
        assert changed.status == 200, changed
        # The default model is in config.toml, and is changed there.
        chosen = await client.post("/api/setup/model", {"model": f"two:{MODEL}"})
        assert chosen["model"] == f"two:{MODEL}"
        assert f'model = "two:{MODEL}"  # fast\n' in (home / "config.toml").read_text()
        assert (await client.ask("DELETE", address)).status == 204
        assert "[providers" not in (home / "config.toml").read_text()
        (await client.ask("DELETE", address)).problem(404, "not_found")


async def test_the_states_of_mcp_servers(tmp_path: Path) -> None:
    servers = f"""
[mcp.servers.broken]
command = "{sys.executable}"
args = ["-c", "raise SystemExit('no such thing')"]

[mcp.servers.off]
command = "x"
enabled = false
"""
    async with settings_server(tmp_path, TEXT + servers) as (client, _):
        answer = await client.get("/api/settings/mcp")
        states = {server["name"]: server["state"] for server in answer["servers"]}
        assert states == {"broken": "unused", "off": "off"}
        answer = await client.post("/api/settings/mcp/broken/connect")
        broken = answer["servers"][0]
        assert broken["state"] in ("failed", "waiting")
        assert "no such thing" in broken["fault"]
        answer = await client.ask("POST", "/api/settings/mcp/off/connect")
        answer.problem(404, "not_found")


async def test_skills_are_listed_and_broken_ones_say_why(tmp_path: Path) -> None:
    async with settings_server(tmp_path) as (client, home):
        for name, text in (
            ("good", "---\nname: good\ndescription: Does good.\n---\nDo good."),
            ("bad", "no front matter"),
        ):
            (home / "skills" / name).mkdir(parents=True)
            (home / "skills" / name / "SKILL.md").write_text(text)
        answer = await client.get("/api/settings/skills")
        (home / "profiles" / "default" / "skills").mkdir(parents=True)
        (home / "skills" / "good").rename(home / "profiles" / "default" / "skills" / "good")
        of_profile = await client.get("/api/settings/skills")
        places = [
            (skill["name"], skill["workspace"], skill["profile"])
            for skill in (*answer["skills"], *of_profile["skills"])
        ]
        assert places == [("good", None, None), ("good", None, "default")]
        (problem,) = answer["problems"]
        assert "bad" in problem


@pytest.mark.promise("page20.15")
async def test_a_token_is_shown_once_works_and_is_revoked(tmp_path: Path) -> None:
    async with settings_server(tmp_path) as (client, _):
        new_token = await client.post("/api/settings/tokens", {"name": "ci"}, status=201)
        own = {"Authorization": f"Bearer {new_token['token']}"}
        answer = await client.ask("GET", "/api/settings/tokens", headers=own)
        assert [token["name"] for token in answer.body["tokens"]] == ["test", "ci"]
        assert new_token["token"].encode() not in answer.raw
        again = await client.ask("POST", "/api/settings/tokens", json={"name": "ci"})
        again.problem(422, "refused")
        assert (await client.ask("DELETE", "/api/settings/tokens/ci")).status == 204
        repeated = await client.ask("DELETE", "/api/settings/tokens/ci")
        repeated.problem(404, "not_found")
        later = await client.ask("GET", "/api/settings/tokens", headers=own)
        assert later.status == 401
