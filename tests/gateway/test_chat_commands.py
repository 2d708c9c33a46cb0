"""The commands of a chat: /new /stop /steer /queue /model /status /sessions /help."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.testing.modelserver import Call, ReceivedRequest, Reply
from tests.gateway.bot_api import BotApi, Fault, SentMessage
from tests.gateway.chat_home import ANN, GROUP, chatting, echo, last_text

pytestmark = pytest.mark.promise("chat.3")
SLOW = Reply(text="word " * 400, pace=0.05)


class Model:
    """Answers slowly to "slowly", asks to push at "push"; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked_bodies: list[dict[str, Any]] = []

    def __call__(self, request: ReceivedRequest) -> Reply:
        self.asked_bodies.append(request.body)
        match last_text(request):
            case "slowly":
                return SLOW
            case "push":
                return Reply(calls=(Call("terminal", {"command": "git push --force"}),))
            case _:
                return echo(request)


async def replies(api: BotApi, text: str, expected: str, *, chat: int = ANN, **fields: Any) -> str:
    """Say something and wait for a new message that holds what is expected."""
    before = len(api.sent(chat))
    api.say(ANN, text, chat=chat, **fields)
    await api.wait(lambda: any(expected in shown for shown in api.texts(chat)[before:]))
    return next(shown for shown in api.texts(chat)[before:] if expected in shown)


async def begun(api: BotApi, text: str) -> SentMessage:
    """Say something and return the message that shows the turn at work."""
    before = len(api.sent(ANN))
    api.say(ANN, text)
    return await api.wait(
        lambda: next((sent for sent in api.sent(ANN)[before:] if "Stop" in sent.buttons), None)
    )


async def turns_of(app: Keryx) -> list[ev.TurnFinished]:
    rows = await app.store.sessions()
    logs = [await app.store.events(row.session_id) for row in rows]
    return [event for log in logs for event in log if isinstance(event, ev.TurnFinished)]


async def test_steer_joins_the_running_turn(tmp_path: Path) -> None:
    async with chatting(tmp_path, Model()) as (api, _, app):
        status = await begun(api, "slowly")
        api.say(ANN, "/steer faster")
        await api.wait(lambda: "You said: faster" in status.text and not status.buttons)
        assert len(api.sent(ANN)) == 1
        assert [turn.outcome for turn in await turns_of(app)] == ["completed"]
        assert await replies(api, "/steer alone", "You said: alone")
        assert await replies(api, "/steer", "Write the message behind the command: /steer TEXT")


async def test_queue_waits_for_the_running_turn(tmp_path: Path) -> None:
    async with chatting(tmp_path, Model()) as (api, _, app):
        status = await begun(api, "slowly")
        api.say(ANN, "/queue afterwards")
        await replies(api, "/model", "The model is")  # /status passes by what waits
        shown = await replies(api, "/status", "Queued messages: 1")
        assert "Running: the model. /stop stops it." in shown
        api.say(ANN, "/stop")
        await api.wait(lambda: "You said: afterwards" in api.texts(ANN))
        assert status.text.endswith("Stopped.")
        assert [turn.outcome for turn in await turns_of(app)] == ["cancelled", "completed"]


async def test_stop_cancels_an_approval_that_is_open(tmp_path: Path) -> None:
    async with chatting(tmp_path, Model()) as (api, _, app):
        await replies(api, "/stop", "Nothing is running.")
        api.say(ANN, "push")
        asking = (await api.wait(lambda: [m for m in api.sent(ANN) if "Deny" in m.buttons]))[0]
        assert "Waiting for you: 1" in await replies(api, "/status", "Waiting for you")
        allow = asking.buttons["Allow once"]
        await replies(api, "/stop", "Stopped.")
        await api.wait(lambda: asking.text.endswith("Expired") and not asking.buttons)
        api.press(ANN, asking, allow)
        await api.wait(lambda: any("Expired" in toast for toast in api.toasts))
        (turn,) = await turns_of(app)
        assert turn.outcome == "cancelled"


async def test_status_and_stop_pass_by_a_message_that_hangs(tmp_path: Path) -> None:
    """Its file does not arrive, so its chat waits."""

    def fault(method: str, _: dict[str, Any]) -> Fault | None:
        return "hang before" if method == "getFile" else None

    photo = [{"file_id": "p", "file_unique_id": "p", "width": 1, "height": 1, "file_size": 5}]
    async with chatting(tmp_path, Model(), api=BotApi(fault=fault)) as (api, _, _):
        api.say(ANN, "", photo=photo)
        await api.wait(lambda: "getFile" in api.requested)
        api.say(ANN, "/status")
        api.say(ANN, "/stop")
        await api.wait(lambda: len(api.sent(ANN)) == 2)
        assert all("Nothing is running." in text for text in api.texts(ANN))


async def test_model_shows_and_chooses_the_model(tmp_path: Path) -> None:
    model = Model()
    async with chatting(tmp_path, model) as (api, _, _):
        await replies(api, "/model", "The model is openai:test-model.")
        await replies(api, "/model openai:other-model", "openai:other-model from the next message")
        await replies(api, "/model", "The model is openai:other-model.")
        await replies(api, "Hello", "You said: Hello")
        assert model.asked_bodies[-1]["model"] == "other-model"
        await replies(api, "/model nobody:knows", "'nobody:knows' is not configured")
        await replies(api, "/model", "The model is openai:other-model.")


async def test_who_only_looks_leaves_no_session_behind(tmp_path: Path) -> None:
    """Nor does who sends what is not taken."""
    file = {"file_id": "f", "file_unique_id": "f", "file_name": "f.bin", "file_size": 1 << 30}
    async with chatting(tmp_path, Model(), turns_per_day=1) as (api, _, app):
        shown = await replies(api, "/status", "Session: none yet")
        assert "Model: openai:test-model\nNothing is running." in shown
        for text, answer in {
            "/model": "The model is openai:test-model.",
            "/model nobody:knows": "is not configured",
            "/stop": "Nothing is running.",
            "/steer": "Write the message behind the command",
            "/queue": "Write the message behind the command",
            "/sessions": "There are no sessions yet.",
            "/help": "You can talk to me now.",
        }.items():
            await replies(api, text, answer)
        await replies(api, "", "is larger than 20 MB", document=file)
        await replies(api, "", "I can read texts", location={"latitude": 1.0, "longitude": 1.0})
        assert await app.store.sessions() == []
        await replies(api, "Hello", "You said: Hello")
        assert "Session: Hello" in await replies(api, "/status", "Model: openai:test-model")
        (row,) = await app.store.sessions()
        await app.host_client.delete(row.session_id)
        await replies(api, "/status", "Session: none yet")
        await replies(api, "Hello again", "You have used your 1 messages of today")
        assert await app.store.sessions() == []


async def test_new_forgets_and_sessions_go_on(tmp_path: Path) -> None:
    model = Model()
    async with chatting(tmp_path, model) as (api, _, app):
        await replies(api, "the heron lands", "You said: the heron")
        await replies(api, "/new", "This is a new session.")
        await replies(api, "Hello", "You said: Hello")
        assert "heron" not in json.dumps(model.asked_bodies[-1])
        shown = await replies(api, "/sessions", "(this one)")
        codes = [line.split()[0] for line in shown.splitlines()[:2]]
        assert "(this one)" in shown.partition("\n")[0]
        for wrong in ("9", "zzzz", codes[0][:3]):
            await replies(api, f"/sessions {wrong}", "There is no such session")
        await replies(api, f"/sessions {codes[1]}", "Going on with: ")
        await replies(api, "and now?", "You said: and now?")
        assert "heron" in json.dumps(model.asked_bodies[-1])
        assert len(await app.store.sessions()) == 2


async def test_a_group_lists_its_own_sessions_only(tmp_path: Path) -> None:
    command = {"entities": [{"type": "bot_command", "offset": 0, "length": 19}]}
    async with chatting(tmp_path, Model()) as (api, _, app):
        await replies(api, "a private matter", "You said: a private matter")
        await replies(api, "/sessions@keryx_bot", "There are no sessions", chat=GROUP, **command)
        assert len(await app.store.sessions()) == 1, "who only looks leaves no session behind"
        mention = [{"type": "mention", "offset": 0, "length": 10}]
        await replies(api, "@keryx_bot hello", "You said", chat=GROUP, entities=mention)
        shown = await replies(api, "/sessions@keryx_bot", "goes on with one", chat=GROUP, **command)
        assert "(this one)" in shown
        assert "private" not in shown


async def test_help_lists_every_command_and_others_are_refused(tmp_path: Path) -> None:
    async with chatting(tmp_path, Model()) as (api, _, app):
        shown = await replies(api, "/help", "You can talk to me now.")
        for word in ("/new", "/stop", "/steer", "/queue", "/model", "/status", "/sessions"):
            assert f"\n{word} " in shown
        await replies(api, "/start", "You can talk to me now.")
        await replies(api, "/nonsense", "There is no command /nonsense. /help lists all commands.")
        assert await turns_of(app) == []
