"""Turns and calls over HTTP: cancelled at any instant, exactly once; answers; calls by hand."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from tests.server.served_host import LINGER, Gate, ServedHost, scripted, served_host, waiting_tool

pytestmark = pytest.mark.promise("004.2", "server.4")


def holding(gate: Gate) -> ScriptedModel:
    def reply(text: str) -> ScriptedReply:
        return ScriptedReply(text=f"You said: {text}", hold=gate.wait if text == "hold" else None)

    return scripted(reply)


def calling(call: ScriptedCall) -> ScriptedModel:
    """Asks for the call when a person says `call`, and speaks otherwise."""

    def reply(text: str) -> ScriptedReply:
        return ScriptedReply(calls=[call]) if text == "call" else ScriptedReply(text="Well.")

    return scripted(reply)


async def cancel(here: ServedHost, session_id: str, turn_id: str) -> tuple[int, Any]:
    path = f"/api/sessions/{session_id}/turns/{turn_id}/cancel"
    answer = await here.client.ask("POST", path)
    return answer.status, answer.body


async def facts(here: ServedHost, session_id: str) -> list[dict[str, Any]]:
    exported = await here.client.ask("GET", f"/api/sessions/{session_id}/export")
    assert exported.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in exported.raw.splitlines()]


async def check_one_end(here: ServedHost, session_id: str, turn_id: str) -> dict[str, Any]:
    """Exactly one terminal event, and nothing of the turn after it."""
    log = await facts(here, session_id)
    assert [fact["seq"] for fact in log] == list(range(1, len(log) + 1))
    of_turn = [fact for fact in log if fact.get("turn_id") == turn_id]
    ends = [fact for fact in of_turn if fact["type"] == "turn.finished"]
    assert len(ends) == 1
    assert of_turn[-1] is ends[0]
    return ends[0]


async def second_message_works(here: ServedHost, session_id: str) -> None:
    sent = await here.client.say(session_id, "and now?")
    assert (await here.client.finished(session_id, sent["turn_id"]))["outcome"] == "completed"


async def test_a_cancel_before_the_start_leaves_the_running_turn_alone(tmp_path: Path) -> None:
    gate = Gate()
    async with served_host(tmp_path, model=holding(gate)) as here:
        name = await here.client.open()
        held = await here.client.say(name, "hold")
        await gate.reached.wait()
        queued = await here.client.say(name, "later")
        assert await cancel(here, name, queued["turn_id"]) == (202, {"cancelled": True})
        end = await check_one_end(here, name, queued["turn_id"])
        assert (end["outcome"], end["started"]) == ("cancelled", False)
        gate.opened.set()
        assert (await here.client.finished(name, held["turn_id"]))["outcome"] == "completed"
        assert await cancel(here, name, queued["turn_id"]) == (200, {"cancelled": False})
        await second_message_works(here, name)


async def test_a_cancel_during_the_model_keeps_what_was_visible(tmp_path: Path) -> None:
    gate = Gate()
    async with served_host(tmp_path, model=holding(gate)) as here:
        name = await here.client.open()
        sent = await here.client.say(name, "hold")
        await gate.reached.wait()
        assert await cancel(here, name, sent["turn_id"]) == (202, {"cancelled": True})
        assert (await here.client.finished(name, sent["turn_id"]))["outcome"] == "cancelled"
        await check_one_end(here, name, sent["turn_id"])
        gate.opened.set()
        await second_message_works(here, name)


async def test_a_cancel_during_tools_ends_the_call_too(tmp_path: Path) -> None:
    gate = Gate()
    model = calling(LINGER)
    async with served_host(tmp_path, model=model, tools=[waiting_tool(gate)]) as here:
        name = await here.client.open()
        sent = await here.client.say(name, "call")
        await gate.reached.wait()
        assert await cancel(here, name, sent["turn_id"]) == (202, {"cancelled": True})
        end = await here.client.finished(name, sent["turn_id"])
        assert (end["outcome"], end["left_over"]) == ("cancelled", [])
        outcomes = [
            fact["outcome"] for fact in await facts(here, name) if fact["type"] == "call.finished"
        ]
        assert outcomes == ["cancelled"]
        await check_one_end(here, name, sent["turn_id"])
        await second_message_works(here, name)


async def test_two_cancels_are_one(tmp_path: Path) -> None:
    gate = Gate()
    async with served_host(tmp_path, model=holding(gate)) as here:
        name = await here.client.open()
        sent = await here.client.say(name, "hold")
        await gate.reached.wait()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(cancel(here, name, sent["turn_id"])) for _ in range(2)]
        answers = sorted(task.result()[0] for task in tasks)
        assert answers in ([202, 202], [200, 202])
        await here.client.finished(name, sent["turn_id"])
        await check_one_end(here, name, sent["turn_id"])
        assert await cancel(here, name, sent["turn_id"]) == (200, {"cancelled": False})
        assert await cancel(here, name, "t-nobody") == (200, {"cancelled": False})


async def test_one_call_is_cancelled_and_its_turn_goes_on(tmp_path: Path) -> None:
    gate = Gate()
    async with served_host(tmp_path, model=calling(LINGER), tools=[waiting_tool(gate)]) as here:
        name = await here.client.open()
        sent = await here.client.say(name, "call")
        started = (await here.client.until(name, "call.started"))[-1].data
        await gate.reached.wait()
        path = f"/api/sessions/{name}/calls/{started['call_id']}/cancel"
        answer = await here.client.ask("POST", path)
        assert (answer.status, answer.body) == (202, {"cancelled": True})
        assert (await here.client.finished(name, sent["turn_id"]))["outcome"] == "completed"
        again = await here.client.ask("POST", path)
        assert (again.status, again.body) == (200, {"cancelled": False})


@pytest.mark.promise("001.5")
async def test_a_steer_joins_the_running_turn_and_an_interrupt_ends_it(tmp_path: Path) -> None:
    gate = Gate()
    async with served_host(tmp_path, model=holding(gate)) as here:
        name = await here.client.open()
        first = await here.client.say(name, "hold")
        await gate.reached.wait()
        steer = await here.client.say(name, "rather this", mode="steer", turn_id=first["turn_id"])
        assert steer["turn_id"] == first["turn_id"]
        assert (await here.client.finished(name, first["turn_id"]))["outcome"] == "completed"
        gate.reached.clear()
        second = await here.client.say(name, "hold")
        await gate.reached.wait()
        third = await here.client.say(name, "stop", mode="interrupt", turn_id=second["turn_id"])
        assert (await here.client.finished(name, second["turn_id"]))["outcome"] == "cancelled"
        assert (await here.client.finished(name, third["turn_id"]))["outcome"] == "completed"


# -- answers

WRITE = ScriptedCall("write_file", {"path": "notes.txt", "content": "written"})
ASK = ScriptedCall("clarify", {"question": "Which?", "choices": ["this", "that"]})


@pytest.mark.promise("004.14")
async def test_the_first_answer_to_an_approval_counts(tmp_path: Path) -> None:
    async with served_host(tmp_path, model=calling(WRITE)) as here:
        name = await here.client.open(approvals="ask")
        sent = await here.client.say(name, "call")
        await here.client.until(name, "approval.asked")
        view = await here.client.get(f"/api/sessions/{name}")
        assert view["summary"]["state"] == "waiting"
        (approval,) = view["approvals"]
        path = f"/api/sessions/{name}/approvals/{approval['approval_id']}"
        (await here.client.ask("POST", path, json={"decision": "no"})).problem(400, "bad_request")
        assert await here.client.post(path, {"decision": "once"}) == {}
        late = await here.client.ask("POST", path, json={"decision": "deny"})
        late.problem(409, "already_taken")
        assert (await here.client.finished(name, sent["turn_id"]))["outcome"] == "completed"
        assert (here.workspace / "notes.txt").read_text() == "written"
        answered = (await here.client.until(name, "approval.answered"))[-1].data
        assert (answered["by"], answered["where"]) == ("test", "api")
        unknown = f"/api/sessions/{name}/approvals/a-nobody"
        answer = await here.client.ask("POST", unknown, json={"decision": "once"})
        answer.problem(404, "not_found")


async def test_a_question_is_answered_once(tmp_path: Path) -> None:
    async with served_host(tmp_path, model=calling(ASK)) as here:
        name = await here.client.open()
        sent = await here.client.say(name, "call")
        question = (await here.client.until(name, "question.asked"))[-1].data
        assert question["text"] == "Which?"
        path = f"/api/sessions/{name}/questions/{question['question_id']}"
        (await here.client.ask("POST", path, json={"answer": 1})).problem(400, "bad_request")
        assert await here.client.post(path, {"answer": "that"}) == {}
        late = await here.client.ask("POST", path, json={"answer": "this"})
        late.problem(409, "already_taken")
        assert (await here.client.finished(name, sent["turn_id"]))["outcome"] == "completed"
        unknown = f"/api/sessions/{name}/questions/q-nobody"
        (await here.client.ask("POST", unknown, json={"answer": "x"})).problem(404, "not_found")


# -- calls by hand


async def test_a_person_runs_a_tool_with_no_model(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        path = f"/api/sessions/{name}/calls"
        body = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "A"}, "key": "k"}
        first = await here.client.post(path, body, status=202)
        events = await here.client.until(name, "call.finished", call_id=first["call_id"])
        assert events[-1].data["outcome"] == "completed"
        assert (here.workspace / "a.txt").read_text() == "A"
        assert await here.client.post(path, body, status=202) == first
        other = await here.client.ask("POST", path, json={**body, "tool": "read_file"})
        other.problem(409, "key_reused")
        started = [fact for fact in await facts(here, name) if fact["type"] == "call.started"]
        assert len(started) == 1
        wrongs: tuple[Any, ...] = ({}, {"tool": "x", "arguments": []}, {"tool": ""})
        for wrong in wrongs:
            (await here.client.ask("POST", path, json=wrong)).problem(400, "bad_request")
