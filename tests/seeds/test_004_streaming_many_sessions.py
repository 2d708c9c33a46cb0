"""hermes-webui `api/streaming.py` at 4422a87de9, in our code: its stories, over the real server.

There, each turn changed the environment of the whole process under one lock, and held that lock
until it was over; so the second message of a session waited for ever. A cancel was a flag in a
table of streams, and late events were dropped one by one, as far as anyone remembered to.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from keryx.events import Usage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.model import ModelRequest
from tests.server.served_host import PATIENCE, Gate, StreamedEvent, scripted, served_host


async def test_the_second_message_of_a_session_is_answered(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), served_host(tmp_path) as here:
        name = await here.client.open()
        for text in ("one", "two", "three"):
            sent = await here.client.say(name, text)
            done = await here.client.finished(name, sent["turn_id"])
            assert done["outcome"] == "completed"


async def test_a_message_in_another_session_waits_for_nobody(tmp_path: Path) -> None:
    gate = Gate()

    def reply(text: str) -> ScriptedReply:
        return ScriptedReply(text=text, hold=gate.wait if text == "for ever" else None)

    async with asyncio.timeout(PATIENCE), served_host(tmp_path, model=scripted(reply)) as here:
        held = await here.client.open()
        await here.client.say(held, "for ever")
        await gate.reached.wait()
        for _ in range(3):
            other = await here.client.open()
            sent = await here.client.say(other, "at once")
            done = await here.client.finished(other, sent["turn_id"])
            assert done["outcome"] == "completed"
        gate.opened.set()


@pytest.mark.promise("004.12")
async def test_a_session_that_is_summed_up_keeps_its_id_and_its_readers(tmp_path: Path) -> None:
    """There, compression gave the session another id in the middle of its turn."""
    full = Usage(input_tokens=900, output_tokens=10)

    def reply(request: ModelRequest) -> ScriptedReply:
        if request.system.startswith("Sum up"):
            return ScriptedReply(text="Tea is liked.")
        return ScriptedReply(text="Noted. " * 100, usage=full)

    model = ScriptedModel(reply, window=1_000)
    async with asyncio.timeout(PATIENCE), served_host(tmp_path, model=model) as here:
        name = await here.client.open()
        first = await here.client.say(name, "I like tea")
        await here.client.finished(name, first["turn_id"])
        async with here.client.follow(name) as events:
            second = await here.client.say(name, "And now?")
            seen: list[StreamedEvent] = []
            async for event in events:
                seen.append(event)
                if event.type == "turn.finished" and event.data["turn_id"] == second["turn_id"]:
                    break
        assert {event.data["session_id"] for event in seen} == {name}
        (line,) = (event.data for event in seen if event.type == "context.compacted")
        assert line["tokens_before"] >= 800 > line["tokens_after"]
        numbers = [event.id for event in seen if event.id is not None]
        assert numbers == list(range(1, len(numbers) + 1))
        sessions = (await here.client.get("/api/sessions"))["sessions"]
        assert [row["session_id"] for row in sessions] == [name]
        rows = (await here.client.get(f"/api/sessions/{name}/messages"))["rows"]
        assert "I like tea" in str(rows)


async def test_turns_at_once_share_no_environment(tmp_path: Path) -> None:
    look = ScriptedCall("terminal", {"command": 'echo "at $KERYX_WORKSPACE"; pwd'})

    def reply(text: str) -> ScriptedReply:
        return ScriptedReply(text="Seen.") if not text else ScriptedReply(calls=[look])

    before = dict(os.environb), Path.cwd()
    async with asyncio.timeout(PATIENCE), served_host(tmp_path, model=scripted(reply)) as here:
        turns = dict[str, tuple[str, str]]()
        for number in range(10):
            workspace = tmp_path / f"work-{number}"
            workspace.mkdir()
            name = await here.client.open(workspace=str(workspace), approvals="never")
            sent = await here.client.say(name, "look")
            turns[name] = (sent["turn_id"], str(workspace))
        assert (dict(os.environb), Path.cwd()) == before
        for name, (turn_id, workspace) in turns.items():
            events = await here.client.until(name, "turn.finished", turn_id=turn_id)
            (call,) = [event.raw for event in events if event.type == "call.finished"]
            assert call.count(workspace.encode()) == 2
    assert (dict(os.environb), Path.cwd()) == before


async def test_a_cancelled_turn_says_so_once_and_nothing_after_it(tmp_path: Path) -> None:
    gate = Gate()
    model = scripted(lambda text: ScriptedReply(text=f"You said {text}", hold=gate.wait))
    async with asyncio.timeout(PATIENCE), served_host(tmp_path, model=model) as here:
        name = await here.client.open()
        running = await here.client.say(name, "one")
        waiting = await here.client.say(name, "two")
        await gate.reached.wait()
        for sent in (waiting, running):
            path = f"/api/sessions/{name}/turns/{sent['turn_id']}/cancel"
            assert await here.client.post(path, status=202) == {"cancelled": True}
            await here.client.finished(name, sent["turn_id"])
            assert await here.client.post(path) == {"cancelled": False}
        events = await here.client.until(name, "turn.finished", turn_id=running["turn_id"])
        before_start = next(event.data for event in events if event.type == "turn.finished")
        assert (before_start["turn_id"], before_start["started"]) == (waiting["turn_id"], False)
        later = await here.client.say(name, "three")
        gate.opened.set()
        all_of_it = await here.client.until(name, "turn.finished", turn_id=later["turn_id"])
        for sent in (running, waiting):
            of_turn = [e.type for e in all_of_it if e.data.get("turn_id") == sent["turn_id"]]
            assert of_turn.count("turn.finished") == 1
            assert of_turn[-1] == "turn.finished"


async def test_an_unknown_stream_says_so(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), served_host(tmp_path) as here:
        answer = await here.client.ask("GET", "/api/sessions/nobody/events")
        answer.problem(404, "not_found")
        name = await here.client.open()
        missing = await here.client.ask("POST", f"/api/sessions/{name}/turns/t_none/cancel")
        assert (missing.status, missing.body) == (200, {"cancelled": False})
