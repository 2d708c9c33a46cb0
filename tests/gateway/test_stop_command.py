"""/stop right after a message that is still joined, downloaded or sent stops it too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keryx import Keryx
from keryx import commands as cm
from keryx.gateway.talk.commands.stop_command import StopCommand
from keryx.gateway.talk.edits import TOO_LATE
from keryx.ports.dispatch import Answer
from keryx.testing.modelserver import Call, ModelServer, ReceivedRequest, Reply
from tests.gateway.bot_api import BotApi, Fault
from tests.gateway.chat_home import (
    ANN,
    BEN,
    EVE,
    GROUP,
    PATIENCE,
    chatting,
    configure,
    echo,
    gateway_processes,
    last_text,
)
from tests.gateway.gateway_program import FAST
from tests.gateway.test_chat_commands import begun, replies, turns_of
from tests.gateway.test_talking import PNG, slow, tool_results
from tests.gateway.test_understanding import MENTION, messages_of
from tests.gateway.test_webhook import posting

pytestmark = pytest.mark.promise("chat.3")

BEFORE = "Nothing is running. Stopped before it began: {}."
# Messages that may have more parts wait for them until the test has ended.
JOINING = msgspec.structs.replace(FAST, join_window=600.0)
WRITES = 8
"""So often the gateway stores something until it has said what is stopped, and a bit more."""


class Downloads:
    """A Bot API server that gives away no file until it is opened: it asks to wait."""

    def __init__(self) -> None:
        self.is_open = False
        self.api = BotApi(fault=self._fault)
        self.api.files["p"] = PNG

    def _fault(self, method: str, _: dict[str, Any]) -> Fault | None:
        return "flood" if method == "getFile" and not self.is_open else None

    def say(self, **fields: Any) -> None:
        """Send a photo."""
        size = {"width": 1, "height": 1, "file_size": len(PNG)}
        photo: Any = [{"file_id": "p", "file_unique_id": "p", **size}]
        self.api.say(ANN, "", photo=photo, **fields)

    async def hold(self, **fields: Any) -> None:
        """Send a photo; return when the gateway tries to download it."""
        before = self.api.requested.count("getFile")
        self.say(**fields)
        await self.api.wait(lambda: self.api.requested.count("getFile") > before)


class GatedHost:
    """Holds messages up on their way to their session."""

    def __init__(self, app: Keryx, monkeypatch: pytest.MonkeyPatch) -> None:
        self.arrived = asyncio.Event()
        self.let_go = asyncio.Event()
        self._tell: Callable[[cm.Command], Any] = app.host_client.tell
        monkeypatch.setattr(app.host_client, "tell", self._gated)

    async def _gated(self, command: cm.Command) -> Answer:
        if isinstance(command, cm.SendMessage):
            self.arrived.set()
            await self.let_go.wait()
        return await self._tell(command)

    async def wait_arrived(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.arrived.wait()


async def test_a_message_whose_parts_are_joined_is_stopped(tmp_path: Path) -> None:
    api = BotApi()
    async with chatting(tmp_path, slow, api=api, tuning=JOINING) as (api, _, app):
        api.say(ANN, "x" * 3600)
        api.say(ANN, "/status")
        await api.wait(lambda: any("Nothing is running." in text for text in api.texts(ANN)))
        name = f"“{'x' * 60}…”"
        await replies(api, "/stop", BEFORE.format(name))
        await replies(api, "/stop", "Nothing is running.")
        assert api.texts(ANN)[-1] == "Nothing is running."
    async with chatting(tmp_path, api=api) as (api, _, app):
        await replies(api, "hello", "You said: hello")
        assert await messages_of(app) == ["hello"]


async def test_what_waits_behind_a_download_is_stopped_and_named(tmp_path: Path) -> None:
    downloads = Downloads()
    async with chatting(tmp_path, api=downloads.api, sessions="chat") as (api, _, app):
        in_group: dict[str, Any] = {"chat": GROUP, "caption": "@keryx_bot what is it?"}
        await downloads.hold(**in_group, caption_entities=MENTION["entities"])
        api.say(BEN, "@keryx_bot and then?", chat=GROUP, **MENTION)
        mention: dict[str, Any] = {"entities": [{"type": "bot_command", "offset": 0, "length": 16}]}
        api.say(ANN, "/queue@keryx_bot at last", chat=GROUP, **mention)
        message_id = api.last_id
        api.say(ANN, "/model@keryx_bot", chat=GROUP, **mention)
        api.say(EVE, "@keryx_bot not for me", chat=GROUP, **MENTION)
        api.say(BEN, "not for you", chat=GROUP)
        api.say(BEN, "hello")  # in another chat
        await api.wait(lambda: "You said: hello" in api.texts(BEN))
        names = "“what is it?”, “and then?”, “/queue at last”"
        stop: dict[str, Any] = {"entities": [{"type": "bot_command", "offset": 0, "length": 15}]}
        await replies(api, "/stop@keryx_bot", BEFORE.format(names), chat=GROUP, **stop)
        api.change(ANN, message_id, "/queue@keryx_bot at the very last", chat=GROUP, **mention)
        downloads.is_open = True
        await api.wait(lambda: TOO_LATE in api.texts(GROUP))
        assert any("The model is" in text for text in api.texts(GROUP)), "that was no message"
        assert await messages_of(app) == ["hello"]


async def test_a_message_that_is_being_sent_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chatting(tmp_path, slow) as (api, _, app):
        host = GatedHost(app, monkeypatch)
        api.say(ANN, "slowly")
        await host.wait_arrived()
        await replies(api, "/stop", "Stopped: “slowly”.")
        await replies(api, "/stop", "Nothing is running.")
        host.let_go.set()
        await api.wait(lambda: any(text.endswith("Stopped.") for text in api.texts(ANN)))
        assert [turn.outcome for turn in await turns_of(app)] == ["cancelled"]
        assert await messages_of(app) == ["slowly"]


@pytest.mark.promise("chat.1")
@pytest.mark.parametrize("text", ["slowly", "/new slowly"])
async def test_a_message_that_was_being_sent_stays_stopped_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    api = BotApi()
    async with chatting(tmp_path, slow, api=api) as (api, _, app):
        host = GatedHost(app, monkeypatch)
        api.say(ANN, text)
        await host.wait_arrived()
        await replies(api, "/stop", f"Stopped: “{text}”.")
    async with chatting(tmp_path, slow, api=api) as (api, _, app):
        await api.wait(lambda: any(text.endswith("Stopped.") for text in api.texts(ANN)))
        assert [turn.outcome for turn in await turns_of(app)] == ["cancelled"]


async def test_a_message_that_is_sent_while_it_is_looked_for_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier_messages = StopCommand.earlier_messages
    seen, let_go = asyncio.Event(), asyncio.Event()

    async def late(*arguments: Any) -> Any:
        messages = await earlier_messages(*arguments)
        seen.set()
        await let_go.wait()
        return messages

    monkeypatch.setattr(StopCommand, "earlier_messages", late)
    async with chatting(tmp_path, slow) as (api, _, app):
        host = GatedHost(app, monkeypatch)
        api.say(ANN, "slowly")
        await host.wait_arrived()
        api.say(ANN, "/stop")
        async with asyncio.timeout(PATIENCE):
            await seen.wait()
        host.let_go.set()
        status = (await api.wait(lambda: [sent for sent in api.sent(ANN) if sent.buttons]))[0]
        let_go.set()
        await api.wait(lambda: "Stopped." in api.texts(ANN) and not status.buttons)
        assert [turn.outcome for turn in await turns_of(app)] == ["cancelled"]


async def test_what_belongs_to_the_running_turn_is_stopped_with_it_and_the_rest_stays(
    tmp_path: Path,
) -> None:
    downloads = Downloads()
    async with chatting(tmp_path, slow, api=downloads.api) as (api, _, app):
        await begun(api, "slowly")
        await downloads.hold(caption="/steer faster")
        api.say(ANN, "then this")
        shown = await replies(api, "/stop", "Stopped with it")
        assert shown == "Stopped.\n\nStopped with it: “/steer faster”."
        downloads.is_open = True
        await api.wait(lambda: "You said: then this" in api.texts(ANN))
        assert await messages_of(app) == ["slowly", "then this"]


async def test_what_goes_to_a_new_session_is_stopped_with_the_turn_of_the_old_one(
    tmp_path: Path,
) -> None:
    downloads = Downloads()
    async with chatting(tmp_path, slow, api=downloads.api) as (api, _, app):
        await begun(api, "slowly")
        await downloads.hold(caption="/new look")
        api.say(ANN, "then this")
        await replies(api, "/stop", "Stopped.\n\nStopped with it: “/new look”, “then this”.")
        downloads.is_open = True
        await replies(api, "hello", "You said: hello")
        assert await messages_of(app) == ["slowly", "hello"]


async def test_an_answer_to_the_question_of_a_stopped_turn_starts_nothing(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        if last_text(request) == "ask me" and not tool_results(request):
            return Reply(calls=(Call("clarify", {"question": "Which?"}),))
        return echo(request)

    api = BotApi()
    async with chatting(tmp_path, answer, api=api, tuning=JOINING) as (api, _, _):
        api.say(ANN, "ask me")
        await api.wait(lambda: any("Which?" in text for text in api.texts(ANN)))
        api.say(ANN, "y" * 3600)
        shown = await replies(api, "/stop", "Stopped with it")
        assert shown == f"Stopped.\n\nStopped with it: “{'y' * 60}…”."
    async with chatting(tmp_path, answer, api=api) as (api, _, app):
        await replies(api, "hello", "You said: hello")
        assert await messages_of(app) == ["ask me", "hello"]


@pytest.mark.promise("chat.1")
async def test_a_message_that_was_stopped_does_not_come_back_after_a_kill(tmp_path: Path) -> None:
    """Killed after each write, from the updates that are stored to the reply that is delivered."""
    downloads = Downloads()
    async with downloads.api as api, ModelServer(echo) as server:
        configure(tmp_path / "home", api, server)
        with gateway_processes(tmp_path / "home") as gateways:
            for writes in range(1, WRITES + 1):
                downloads.say(caption=f"photo {writes}")
                api.say(ANN, "/stop")
                await gateways.run_for(writes)
                stopped = BEFORE.format(f"“photo {writes}”")
                # An answer is sent once more after a kill, and not after a second one.
                with gateways.killed_at_the_end():
                    await api.wait(lambda said=stopped: said in "".join(api.texts(ANN)))
            downloads.is_open = True
            with gateways.killed_at_the_end():
                api.say(ANN, "hello")
                await api.wait(lambda: "You said: hello" in api.texts(ANN))
        assert [text for text in api.texts(ANN) if "You said" in text] == ["You said: hello"]


@pytest.mark.promise("chat.4")
async def test_a_program_stops_a_message_that_is_being_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages have no numbers: what came before is known by the order of arrival."""
    async with posting(tmp_path, slow) as program:
        host = GatedHost(program.app, monkeypatch)
        assert await program.post(text="slowly") == 202
        await host.wait_arrived()
        assert await program.post(id="2", text="/STOP\nplease") == 202
        (text,) = await program.texts(1)
        assert text.startswith("Stopped: “slowly”.")
        host.let_go.set()
        (text,) = await program.texts(1)
        assert text.endswith("Stopped.")
