"""Messages over HTTP: durable once accepted, one for each key, changed and withdrawn in time."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest

from keryx.models.scripted import ScriptedModel, ScriptedReply
from tests.server.served_host import Gate, ServedHost, scripted, served_host


def holding(gate: Gate) -> ScriptedModel:
    """Holds its first reply until it is let go."""

    def reply(text: str) -> ScriptedReply:
        return ScriptedReply(text=f"You said: {text}", hold=gate.wait if text == "hold" else None)

    return scripted(reply)


async def transcript(here: ServedHost, session_id: str) -> list[tuple[str, str]]:
    page = await here.client.get(f"/api/sessions/{session_id}/messages")
    return [
        (row["event"]["type"], row["event"]["text"])
        for row in page["rows"]
        if row["event"]["type"] in ("message.accepted", "step.replied")
    ]


async def test_a_message_is_accepted_and_answered(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        sent = await here.client.say(name, "Hello")
        finished = await here.client.finished(name, sent["turn_id"])
        assert finished["outcome"] == "completed"
        assert await transcript(here, name) == [
            ("message.accepted", "Hello"),
            ("step.replied", "You said: Hello"),
        ]
        facts = await here.client.until(name, "message.accepted")
        assert facts[-1].data["message_id"] == sent["message_id"]
        assert (facts[-1].data["by"], facts[-1].id) == ("test", sent["seq"])


async def test_the_same_key_is_one_message_whoever_asks_again(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        path = f"/api/sessions/{name}/messages"
        first = await here.client.say(name, "Once", key="one")
        async with asyncio.TaskGroup() as group:
            again = [group.create_task(here.client.say(name, "Once", key="one")) for _ in range(5)]
        assert {task.result()["message_id"] for task in again} == {first["message_id"]}
        header = {"Idempotency-Key": "one"}
        by_header = await here.client.post(path, {"text": "Once"}, status=202, headers=header)
        assert by_header == first
        other = await here.client.ask("POST", path, json={"text": "Other", "key": "one"})
        other.problem(409, "key_reused")
        await here.client.finished(name, first["turn_id"])
        assert [text for _, text in await transcript(here, name)] == ["Once", "You said: Once"]


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({}, 422, "refused"),
        ({"text": "   "}, 422, "refused"),
        ({"text": 7}, 400, "bad_request"),
        ({"text": "x", "mode": "shout"}, 400, "bad_request"),
        ({"text": "x", "key": ""}, 400, "bad_request"),
        ({"text": "x", "attachments": [{"upload_id": "../etc/passwd"}]}, 400, "bad_request"),
        ({"text": "x" * 1_000_001}, 400, "bad_request"),
        ({"text": "x", "workspace": "/not/there"}, 422, "refused"),
    ],
)
async def test_a_wrong_message_leaves_nothing(
    tmp_path: Path, body: Any, status: int, kind: str
) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        answer = await here.client.ask("POST", f"/api/sessions/{name}/messages", json=body)
        answer.problem(status, kind)
        assert (await here.client.get(f"/api/sessions/{name}"))["seq"] == 1


async def test_too_large_a_body_is_refused(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        body = io.BytesIO(b'{"text": "' + b"x" * 9_000_000 + b'"}')
        answer = await here.client.ask("POST", f"/api/sessions/{name}/messages", data=body)
        answer.problem(413, "too_large")


async def test_what_waits_can_be_changed_reordered_and_withdrawn(tmp_path: Path) -> None:
    gate = Gate()
    async with served_host(tmp_path, model=holding(gate)) as here:
        name = await here.client.open()
        held = await here.client.say(name, "hold")
        await gate.reached.wait()
        one, two, three = [await here.client.say(name, text) for text in ("one", "two", "three")]
        path = f"/api/sessions/{name}/messages"
        changed = await here.client.ask(
            "PATCH",
            f"{path}/{two['message_id']}",
            json={"text": "TWO", "before": one["message_id"]},
        )
        assert (changed.status, changed.body) == (200, {"changed": True})
        withdrawn = await here.client.ask("DELETE", f"{path}/{three['message_id']}")
        assert (withdrawn.status, withdrawn.body) == (200, {"withdrawn": True})
        view = await here.client.get(f"/api/sessions/{name}")
        assert [message["text"] for message in view["queue"]] == ["TWO", "one"]
        assert view["turn"] == {"turn_id": held["turn_id"], "cancelling": False}
        gate.opened.set()
        await here.client.finished(name, one["turn_id"])
        again = await here.client.ask("PATCH", f"{path}/{two['message_id']}", json={"text": "x"})
        again.problem(409, "conflict")
        too_late = await here.client.ask("DELETE", f"{path}/{three['message_id']}")
        assert too_late.body == {"withdrawn": False}
        said = [text for kind, text in await transcript(here, name) if kind == "message.accepted"]
        assert said == ["hold", "TWO", "one"]


async def test_a_draft_is_kept_for_every_screen(tmp_path: Path) -> None:
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        path = f"/api/sessions/{name}/draft"
        answer = await here.client.ask("PUT", path, json={"text": "half a sent"})
        assert (answer.status, answer.raw) == (204, b"")
        view = await here.client.get(f"/api/sessions/{name}")
        assert view["draft"] == {"text": "half a sent", "attachments": []}
        (await here.client.ask("PUT", path, json={})).problem(400, "bad_request")


async def test_attachments_are_named_by_their_upload(tmp_path: Path) -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
    async with served_host(tmp_path) as here:
        name = await here.client.open()
        headers = {"Content-Type": "image/png"}
        picture = await here.client.post(
            "/api/uploads?name=a.png", status=201, data=png, headers=headers
        )
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        note = await here.client.post(
            "/api/uploads?name=n.txt", status=201, data=b"note", headers=headers
        )
        both = [{"upload_id": upload["upload_id"]} for upload in (picture, note)]
        draft = await here.client.ask(
            "PUT", f"/api/sessions/{name}/draft", json={"text": "", "attachments": both}
        )
        assert draft.status == 204
        sent = await here.client.say(name, "Look", attachments=both)
        await here.client.finished(name, sent["turn_id"])
        accepted = (await here.client.until(name, "message.accepted"))[-1].data["attachments"]
        assert [(upload["type"], upload["media_type"], upload["name"]) for upload in accepted] == [
            ("image", "image/png", "a.png"),
            ("file", "text/plain", "n.txt"),
        ]
        shown = await here.client.ask("GET", f"/api/sessions/{name}/blobs/{picture['upload_id']}")
        assert (shown.raw, shown.headers["content-type"]) == (png, "image/png")
        missing = {"text": "x", "attachments": [{"upload_id": "0" * 64}]}
        answer = await here.client.ask("POST", f"/api/sessions/{name}/messages", json=missing)
        answer.problem(422, "refused")
