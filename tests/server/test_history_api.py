"""What was said and done, over HTTP: paged, exported, forked, undone, reverted, searched."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from keryx.errors import ModelError
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.model import ModelRequest
from tests.server.served_host import ServedHost, scripted, served_host


def writing() -> ScriptedModel:
    """Writes what it is told to, then rests."""

    def reply(text: str) -> ScriptedReply:
        if not text:
            return ScriptedReply(text="Written.")
        arguments = {"path": "notes.txt", "content": text, "overwrite": True}
        return ScriptedReply(calls=[ScriptedCall("write_file", arguments)])

    return scripted(reply)


async def said(here: ServedHost, session_id: str, text: str) -> str:
    sent = await here.client.say(session_id, text)
    finished = await here.client.finished(session_id, sent["turn_id"])
    assert finished["outcome"] == "completed"
    turn_id: str = sent["turn_id"]
    return turn_id


async def test_the_transcript_is_paged_from_the_end_without_gaps(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        for number in range(4):
            await said(here, name, f"message {number}")
        path = f"/api/sessions/{name}/messages"
        whole = (await here.client.get(f"{path}?limit=500"))["rows"]
        assert len(whole) == 8
        paged = (page := await here.client.get(f"{path}?limit=3"))["rows"]
        while page["next"] is not None:
            page = await here.client.get(f"{path}?limit=3&before={page['next']}")
            paged = page["rows"] + paged
        assert paged == whole
        onward = (page := await here.client.get(f"{path}?limit=3&after=0"))["rows"]
        while page["next"] is not None:
            page = await here.client.get(f"{path}?limit=3&after={page['next']}")
            onward = onward + page["rows"]
        assert onward == whole
        assert page["seq"] == (await here.client.get(f"/api/sessions/{name}"))["seq"]
        both = await here.client.ask("GET", f"{path}?before=3&after=1")
        both.problem(422, "refused")
        for query in ("limit=0", "before=x", "limit=501"):
            (await here.client.ask("GET", f"{path}?{query}")).problem(400, "bad_request")


async def test_the_export_is_the_log_and_the_view_goes_up_to_its_end(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        await said(here, name, "Hello")
        exported = await here.client.ask("GET", f"/api/sessions/{name}/export")
        facts = [json.loads(line) for line in exported.raw.splitlines()]
        assert [fact["seq"] for fact in facts] == list(range(1, len(facts) + 1))
        assert (await here.client.get(f"/api/sessions/{name}"))["seq"] == len(facts)
        assert "attachment" in exported.headers["content-disposition"]


async def test_the_context_tells_what_the_model_is_told(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        (here.workspace / "AGENTS.md").write_text("Speak softly.")
        name = await here.client.open(tools=["files"])
        await said(here, name, "Hello")
        context = await here.client.get(f"/api/sessions/{name}/context")
        assert "read_file" in context["tools"]
        assert context["context"] == {
            "window": None,
            "compact_at": None,
            "last_prompt_tokens": None,
        }
        assert all(part["part"] and part["text"] for part in context["parts"])


async def test_changes_of_files_are_shown_and_taken_back(tmp_path: Path) -> None:
    async with served_host(tmp_path, model=writing()) as here:
        (here.workspace / "notes.txt").write_text("old\n")
        name = await here.client.open()
        await here.client.post(
            f"/api/sessions/{name}/calls",
            {"tool": "read_file", "arguments": {"path": "notes.txt"}},
            status=202,
        )
        await here.client.until(name, "call.finished")
        turn = await said(here, name, "new")
        shown = await here.client.get(f"/api/sessions/{name}/changes")
        (change,) = shown["changes"]
        assert "-old" in shown["diff"]
        assert "+new" in shown["diff"]
        assert (Path(change["path"]).name, change["turn_id"]) == ("notes.txt", turn)
        path = f"/api/sessions/{name}/changes/revert"
        wrongs: tuple[Any, ...] = ({"changes": []}, {"changes": [0]}, {"changes": ["x"]}, {})
        for wrong in wrongs:
            (await here.client.ask("POST", path, json=wrong)).problem(400, "bad_request")
        (await here.client.ask("POST", path, json={"changes": [1]})).problem(409, "conflict")
        (here.workspace / "notes.txt").write_text("edited by hand")
        stands = await here.client.ask("POST", path, json={"changes": [change["seq"]]})
        stands.problem(409, "conflict")
        (here.workspace / "notes.txt").write_text("new")
        assert await here.client.post(path, {"changes": [change["seq"]]}) == {}
        assert (here.workspace / "notes.txt").read_text() == "old\n"


async def test_a_turn_is_undone_with_its_files(tmp_path: Path) -> None:
    async with served_host(tmp_path, model=writing()) as here:
        name = await here.client.open()
        turn = await said(here, name, "first")
        path = f"/api/sessions/{name}/undo"
        (await here.client.ask("POST", path, json={"turn_id": "t-nobody"})).problem(409, "conflict")
        assert await here.client.post(path, {"turn_id": turn}) == {"undone": True}
        assert not (here.workspace / "notes.txt").exists()
        rows = (await here.client.get(f"/api/sessions/{name}/messages"))["rows"]
        assert rows == []


async def test_a_fork_shares_the_past_and_is_one_however_often_asked_for(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open(title="root")
        first = await said(here, name, "one")
        await said(here, name, "two")
        path = f"/api/sessions/{name}/fork"
        body = {"turn_id": first, "session_id": "s-fork"}
        view = await here.client.post(path, body, status=201)
        assert view["summary"]["session_id"] == "s-fork"
        await here.client.post(path, body, status=201)
        rows = (await here.client.get("/api/sessions/s-fork/messages"))["rows"]
        assert [row["event"]["text"] for row in rows] == ["one", "You said: one"]
        answer = await here.client.ask("POST", path, json={"session_id": name})
        answer.problem(409, "conflict")
        (await here.client.ask("POST", path, json={"turn_id": "t-no"})).problem(409, "conflict")


@pytest.mark.promise("004.12")
async def test_a_session_is_summed_up_by_hand(tmp_path: Path) -> None:
    def reply(request: ModelRequest) -> ScriptedReply:
        is_summing = request.system.startswith("Sum up")
        return ScriptedReply(text="Tea is liked." if is_summing else "Noted. " * 100)

    async with served_host(tmp_path, model=ScriptedModel(reply)) as here:
        name = await here.client.open()
        path = f"/api/sessions/{name}/compact"
        problem = (await here.client.ask("POST", path)).problem(409, "conflict")
        assert (problem["detail"], problem["hint"]) == (
            "there is nothing to summarize yet",
            "send a message first",
        )
        await said(here, name, "I like tea")
        assert await here.client.post(path, {}, status=200) == {}
        rows = (await here.client.get(f"/api/sessions/{name}/messages"))["rows"]
        fact = rows[-1]["event"]
        assert (fact["type"], fact["summary"]) == ("context.compacted", "Tea is liked.")
        assert fact["tokens_before"] > fact["tokens_after"]
        context = await here.client.get(f"/api/sessions/{name}/context")
        assert (context["summary"], context["summary_tokens"]) == ("Tea is liked.", 4)
        view = await here.client.get(f"/api/sessions/{name}")
        assert view["context"]["last_prompt_tokens"] == fact["tokens_after"]
        assert "I like tea" in str(rows)


@pytest.mark.promise("004.12")
async def test_a_model_that_cannot_sum_up_is_told_with_what_to_do(tmp_path: Path) -> None:
    def reply(request: ModelRequest) -> ScriptedReply:
        if not request.system.startswith("Sum up"):
            return ScriptedReply(text="Noted. " * 100)
        return ScriptedReply(error=ModelError("auth", "who are you?", "give a key"))

    async with served_host(tmp_path, model=ScriptedModel(reply)) as here:
        name = await here.client.open()
        await said(here, name, "I like tea")
        answer = await here.client.ask("POST", f"/api/sessions/{name}/compact")
        problem = answer.problem(422, "auth")
        assert (problem["detail"], problem["hint"]) == ("who are you?", "give a key")
        assert (await here.client.ask("POST", "/api/sessions/s-no/compact")).status == 404


async def test_words_are_found_in_all_sessions(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        await said(here, name, "the <b>pangolin</b> sleeps")
        other = await here.client.open()
        await said(here, other, "nothing of the kind")
        results = await here.client.get("/api/sessions?search=pangolin")
        assert {hit["session"]["session_id"] for hit in results["hits"]} == {name}
        assert {hit["kind"] for hit in results["hits"]} == {"message", "reply"}
        marked = [
            piece["text"] for hit in results["hits"] for piece in hit["snippet"] if piece["found"]
        ]
        assert set(marked) == {"pangolin"}
        assert (await here.client.get("/api/sessions?search=%20"))["hits"] == []
        assert "sessions" not in results
        too_long = await here.client.ask("GET", f"/api/sessions?search={'x' * 501}")
        too_long.problem(400, "bad_request")


@pytest.mark.promise("004.10")
async def test_usage_adds_up(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        await said(here, name, "one")
        rows = (await here.client.get(f"/api/usage?session_id={name}"))["rows"]
        assert all(row["session_id"] == name for row in rows)
        view = await here.client.get(f"/api/sessions/{name}")
        assert view["usage"].keys() >= {"input_tokens", "output_tokens", "cost"}
        today = (await here.client.get("/api/usage?since=0"))["rows"]
        assert today == (await here.client.get("/api/usage"))["rows"]
        later = time.time() + 86_400
        assert (await here.client.get(f"/api/usage?since={later}"))["rows"] == []
        (await here.client.ask("GET", "/api/usage?since=then")).problem(400, "bad_request")


@pytest.mark.promise("kit.4")
async def test_the_newest_plan_is_returned_and_an_undone_one_is_not(tmp_path: Path) -> None:
    def reply(text: str) -> ScriptedReply:
        if not text:
            return ScriptedReply(text="Planned.")
        items = {"items": [{"text": text, "status": "doing"}]}
        return ScriptedReply(calls=[ScriptedCall("todo", items)])

    async with served_host(tmp_path, model=scripted(reply)) as here:
        name = await here.client.open()
        path = f"/api/sessions/{name}/plan"
        assert (await here.client.get(path))["items"] == []
        await said(here, name, "First")
        turn_id = await said(here, name, "Second")
        newest = await here.client.get(path)
        assert newest["items"] == [{"text": "Second", "status": "doing"}]
        await here.client.post(f"/api/sessions/{name}/undo", {"turn_id": turn_id})
        before = await here.client.get(path)
        assert before["items"] == [{"text": "First", "status": "doing"}]
        assert 0 < before["seq"] < newest["seq"]
        (await here.client.ask("GET", "/api/sessions/s-none/plan")).problem(404, "not_found")
