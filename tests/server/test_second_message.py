"""The second message of a session, after a turn that ended in whatever way: it always starts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keryx.errors import ModelError
from keryx.models.scripted import ScriptedReply
from tests.server.served_host import PATIENCE, Client, Gate, scripted, served_host
from tests.server.server_process import served

pytestmark = pytest.mark.promise("004.3", "server.4")


async def answered(client: Client, session_id: str, text: str) -> str:
    sent = await client.say(session_id, text)
    events = await client.until(session_id, "turn.finished", turn_id=sent["turn_id"])
    replies = [event.data["text"] for event in events if event.type == "step.replied"]
    return replies[-1] if events[-1].data["outcome"] == "completed" else events[-1].data["outcome"]


@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
async def test_it_starts_after_a_turn_that(tmp_path: Path, ending: str) -> None:
    gate = Gate()

    def reply(text: str) -> ScriptedReply:
        match text:
            case "failed":
                error = ModelError("rate_limit", "too fast", "wait a minute")
                return ScriptedReply(text="Hm", error=error)
            case "cancelled":
                return ScriptedReply(text="Hm", hold=gate.wait)
            case _:
                return ScriptedReply(text=f"You said: {text}")

    async with asyncio.timeout(PATIENCE), served_host(tmp_path, model=scripted(reply)) as here:
        name = await here.client.open()
        sent = await here.client.say(name, ending)
        if ending == "cancelled":
            await gate.reached.wait()
            path = f"/api/sessions/{name}/turns/{sent['turn_id']}/cancel"
            await here.client.post(path, status=202)
        first = await here.client.finished(name, sent["turn_id"])
        assert first["outcome"] == ending
        for number in range(3):
            assert await answered(here.client, name, f"{number}") == f"You said: {number}"


async def test_it_starts_after_a_turn_that_a_crash_cut(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, process):
        name = await client.open()
        await client.say(name, "slowly")
        await client.until(name, "text.delta")
        process.kill()
    async with served(tmp_path) as (client, _):
        sent = await client.say(name, "at once")
        done = await client.finished(name, sent["turn_id"])
        assert done["outcome"] == "completed"
