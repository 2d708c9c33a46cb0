"""Sessions over HTTP: made, listed, shown, changed, deleted; and what the server has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from tests.server.served_host import served_host


async def test_a_session_is_opened_with_what_was_asked_for(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        (here.workspace / "deeper").mkdir()
        body = {
            "session_id": "s-0123456789abcdef",
            "workspace": "deeper",
            "tools": ["files"],
            "approvals": "ask",
            "read_only": True,
            "title": "<b>Bold</b>",
            "effort": "high",
            "unknown": "is tolerated",
        }
        view = await here.client.post("/api/sessions", body, status=201)
        summary, settings = view["summary"], view["settings"]
        assert summary["session_id"] == "s-0123456789abcdef"
        assert (summary["state"], summary["title"]) == ("idle", "<b>Bold</b>")
        assert summary["workspace"] == settings["workspace"] == str(here.workspace / "deeper")
        assert summary["model"] == settings["model"] == "scripted:demo"
        assert (settings["approvals"], settings["read_only"]) == ("ask", True)
        assert settings["effort"] == "high"
        assert "write_file" in settings["tools"]
        assert "terminal" not in settings["tools"]
        assert (view["seq"], view["turn"], view["queue"]) == (1, None, [])
        assert view["usage"]["input_tokens"] == 0
        assert view["draft"] == {"text": "", "attachments": []}


async def test_the_same_session_id_again_is_the_same_session(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        body = {"session_id": "s-abc", "title": "first"}
        await here.client.post("/api/sessions", body, status=201)
        again = {"session_id": "s-abc", "title": "second"}
        view = await here.client.post("/api/sessions", again, status=201)
        assert view["summary"]["title"] == "first"
        keyed = await here.client.ask(
            "POST", "/api/sessions", json={}, headers={"Idempotency-Key": "s-keyed"}
        )
        assert keyed.body["summary"]["session_id"] == "s-keyed"
        assert len((await here.client.get("/api/sessions"))["sessions"]) == 2


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"title": 5}, 400, "bad_request"),
        ({"session_id": "../etc"}, 400, "bad_request"),
        ({"session_id": "s" * 300}, 400, "bad_request"),
        ({"approvals": "perhaps"}, 400, "bad_request"),
        ({"title": "x" * 10_000}, 400, "bad_request"),
        (["no", "object"], 400, "bad_request"),
        ({"tools": ["no such tool"]}, 422, "refused"),
        ({"personality": "nobody"}, 422, "refused"),
        ({"profile": "nobody"}, 422, "refused"),
        ({"workspace": "not/there"}, 422, "refused"),
        ({"workspace": "nul\0"}, 422, "refused"),
    ],
)
async def test_a_session_that_cannot_be_is_refused_with_a_problem(
    tmp_path: Path, body: Any, status: int, kind: str
) -> None:
    async with served_host(tmp_path) as here:
        answer = await here.client.ask("POST", "/api/sessions", json=body)
        answer.problem(status, kind)
        assert (await here.client.get("/api/sessions"))["sessions"] == []


async def test_what_is_no_json_is_a_bad_request(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        for data in (b"{", b"", b"\xff\xfe", b'{"title": "\xff"}', b"[" * 200_000):
            answer = await here.client.ask("POST", "/api/sessions", data=data)
            answer.problem(400, "bad_request")


async def test_the_list_is_paged_from_the_last_change(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        names = [await here.client.open() for _ in range(5)]
        session_ids: list[str] = []
        page = await here.client.get("/api/sessions?limit=2")
        while True:
            session_ids += [row["session_id"] for row in page["sessions"]]
            if page["next"] is None:
                break
            page = await here.client.get(f"/api/sessions?limit=2&before={page['next']}")
        assert session_ids == names[::-1]
        for query in ("limit=0", "limit=9999", "limit=x", "before=-1", "archived=perhaps"):
            (await here.client.ask("GET", f"/api/sessions?{query}")).problem(400, "bad_request")


async def test_a_session_is_changed_and_what_is_absent_stays(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open(title="before", effort="low")
        path = f"/api/sessions/{name}"
        changes = {"title": "after", "pinned": True, "archived": True, "tools": ["shell"]}
        changed = await here.client.ask("PATCH", path, json=changes)
        settings = changed.body["settings"]
        assert (settings["title"], settings["pinned"], settings["effort"]) == ("after", True, "low")
        assert settings["tools"] == ["terminal", "process"]
        assert changed.body["summary"]["archived"]
        assert (await here.client.get("/api/sessions"))["sessions"] == []
        listed = await here.client.get("/api/sessions?archived=true")
        assert [row["session_id"] for row in listed["sessions"]] == [name]
        cleared = await here.client.ask("PATCH", path, json={"effort": None})
        assert cleared.body["settings"]["effort"] is None


async def test_a_wrong_change_of_a_session_changes_nothing(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        for body, status, kind in (
            ({"title": None}, 400, "bad_request"),
            ({"pinned": "yes"}, 400, "bad_request"),
            ({"tools": ["nothing"]}, 422, "refused"),
            ({"workspace": "/not/there"}, 422, "refused"),
            ({"personality": "nobody"}, 422, "refused"),
            ({"effort": "banana"}, 422, "refused"),
        ):
            answer = await here.client.ask("PATCH", f"/api/sessions/{name}", json=body)
            answer.problem(status, kind)
        assert "choose one of none, minimal, low, medium, high" in answer.body["hint"]
        opened = await here.client.ask("POST", "/api/sessions", json={"effort": "banana"})
        opened.problem(422, "refused")
        assert (await here.client.get(f"/api/sessions/{name}"))["seq"] == 1


async def test_a_deleted_session_is_gone(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        path = f"/api/sessions/{name}"
        assert (await here.client.ask("DELETE", path)).status == 204
        (await here.client.ask("DELETE", path)).problem(404, "not_found")
        (await here.client.ask("GET", path)).problem(404, "not_found")
        (await here.client.ask("PATCH", path, json={})).problem(404, "not_found")


SUBPATHS = (
    ("GET", ""),
    ("PATCH", ""),
    ("GET", "/messages"),
    ("POST", "/messages"),
    ("PATCH", "/messages/m-1"),
    ("DELETE", "/messages/m-1"),
    ("POST", "/turns/t-1/cancel"),
    ("POST", "/calls/c-1/cancel"),
    ("POST", "/calls"),
    ("POST", "/approvals/a-1"),
    ("POST", "/questions/q-1"),
    ("PUT", "/draft"),
    ("GET", "/context"),
    ("GET", "/changes"),
    ("POST", "/changes/revert"),
    ("POST", "/fork"),
    ("POST", "/undo"),
    ("POST", "/compact"),
    ("GET", "/export"),
    ("GET", f"/blobs/{'a' * 64}"),
    ("GET", "/files"),
    ("GET", "/events"),
)
BODY: dict[str, Any] = {
    "text": "x",
    "tool": "x",
    "arguments": {},
    "decision": "once",
    "answer": "x",
    "turn_id": "t",
    "changes": [1],
}


async def test_no_route_makes_a_session_of_an_unknown_id(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        for method, path in SUBPATHS:
            unknown = await here.client.ask(method, f"/api/sessions/s-nobody{path}", json=BODY)
            unknown.problem(404, "not_found")
            for bad in ("a%00b", "a%20b", "%3Cscript%3E", "x" * 300):
                refused = await here.client.ask(method, f"/api/sessions/{bad}{path}", json=BODY)
                assert refused.status in (400, 404), refused
                assert refused.headers["content-type"] == "application/problem+json"
                assert b"<script>" not in refused.raw
        assert (await here.client.get("/api/sessions"))["sessions"] == []
        assert await here.host_client.store.unfinished() == []


async def test_the_server_tells_what_it_has(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        health = await here.client.get("/api/health")
        assert (health["status"], bool(health["version"])) == ("ok", True)
        models = await here.client.get("/api/models")
        assert models["default"] == "scripted:demo"
        tools = await here.client.get("/api/tools")
        assert {"files", "shell"} <= set(tools["toolsets"])
        reading = next(item for item in tools["tools"] if item["name"] == "read_file")
        assert (reading["toolset"], bool(reading["description"])) == ("files", True)
        await here.client.open()
        profiles = await here.client.get("/api/profiles")
        assert [item["name"] for item in profiles["profiles"]] == ["default"]
        assert profiles["workspace"] == str(here.workspace)
        assert profiles["workspaces"] == [str(here.workspace)]
        assert await here.client.get("/api/usage") == {"rows": []}
        (await here.client.ask("GET", "/api/usage?session_id=a/b")).problem(400, "bad_request")


async def test_what_is_not_there_and_what_cannot_be_done_are_problems(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        (await here.client.ask("GET", "/api/nothing")).problem(404, "not_found")
        (await here.client.ask("GET", "/api/")).problem(404, "not_found")
        wrong = await here.client.ask("PUT", "/api/sessions")
        wrong.problem(405, "wrong_method")
        assert {"GET", "POST"} <= set(wrong.headers["allow"].split(", "))
        (await here.client.ask("POST", "/api/events")).problem(405, "wrong_method")


@pytest.mark.promise("kit.4")
async def test_child_agents_are_listed_by_their_parent(tmp_path: Path) -> None:
    def reply(request: ModelRequest) -> ScriptedReply:
        history = history_of(request)
        if len(history) == 1 and b"Parent" in request.history[0]:
            tasks = {"tasks": [{"task": "Look"}, {"task": "Listen"}]}
            return ScriptedReply(calls=(ScriptedCall("delegate", tasks),))
        return ScriptedReply(text="Done.")

    async with served_host(tmp_path, model=ScriptedModel(reply)) as here:
        name = await here.client.open()
        async with here.client.follow(name) as events:
            await here.client.say(name, "Parent")
            async for event in events:
                if event.type == "turn.finished":
                    break
        listed = await here.client.get("/api/sessions")
        assert [row["session_id"] for row in listed["sessions"]] == [name]
        children = await here.client.get(f"/api/sessions?parent={name}")
        assert {row["title"] for row in children["sessions"]} == {"Look", "Listen"}
        assert {row["parent"]["session_id"] for row in children["sessions"]} == {name}
