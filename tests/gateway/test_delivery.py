"""What is sent, when the platform asks to wait, loses answers, refuses or deletes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from keryx.gateway.delivery.repetition import NOTE
from keryx.gateway.talk.answers import WORKING
from keryx.testing.modelserver import ReceivedRequest, Reply
from tests.gateway.bot_api import BotApi, Fault
from tests.gateway.bot_api.server import FaultOf
from tests.gateway.chat_home import ANN, chatting, echo, last_text
from tests.server.served_host import in_thread

STREAM = Reply(text="word " * 30, pace=0.05)


def first(method: str, fault: Fault, *, times: int = 1) -> FaultOf:
    """This goes wrong with the first calls of the method to Ann."""
    left = times

    def fault_of(name: str, fields: dict[str, Any]) -> Fault | None:
        nonlocal left
        if name != method or str(fields.get("chat_id", ANN)) != str(ANN) or not left:
            return None
        left -= 1
        return fault

    return fault_of


def streamed(request: ReceivedRequest) -> Reply:
    return STREAM if last_text(request) == "stream" else echo(request)


def ledger_knows(home: Path) -> bool:
    """Whether it is stored that a chat is asked to wait."""
    with closing(sqlite3.connect(home / "gateway.db")) as connection:
        return connection.execute("SELECT 1 FROM closed_chats").fetchone() is not None


def status_command(home: Path) -> str:
    words = [sys.executable, "-m", "keryx", "gateway", "status", "--home", str(home)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.promise("chat.5")
@pytest.mark.parametrize("method", ["sendMessage", "editMessageText", "sendMessageDraft"])
async def test_a_chat_that_is_asked_to_wait_gets_no_call_until_it_is_over(
    tmp_path: Path, method: str
) -> None:
    """Neither sends nor previews."""
    api = BotApi(fault=first(method, "flood"))
    streaming = "drafts" if method == "sendMessageDraft" else "edits"
    async with chatting(tmp_path, streamed, api=api, streaming=streaming) as (api, _, _):
        api.say(ANN, "stream")
        await api.wait(lambda: api.floods)
        api.say(ANN, "/model")
        await api.wait(lambda: STREAM.text.strip() in api.texts(ANN))
        await api.wait(lambda: "The model is openai:test-model." in api.texts(ANN))
        assert api.calls_while_closed == 0
        assert len(api.sent(ANN)) == 2


@pytest.mark.promise("chat.5")
async def test_a_chat_that_is_asked_to_wait_is_not_called_by_the_next_gateway(
    tmp_path: Path,
) -> None:
    """Although it was a preview that was refused, which nobody repeats."""
    api = BotApi(fault=first("editMessageText", "flood"), retry_after=3)
    async with chatting(tmp_path, streamed, api=api) as (api, _, _):
        api.say(ANN, "stream")
        await api.wait(lambda: api.floods)
        await api.wait(lambda: ledger_knows(tmp_path / "home"))
        api.say(ANN, "/model")
    async with chatting(tmp_path, streamed, api=api) as (api, _, _):
        await api.wait(lambda: "The model is openai:test-model." in api.texts(ANN))
        assert api.calls_while_closed == 0


@pytest.mark.promise("chat.5")
@pytest.mark.parametrize("fault", ["hang after", "reset after", "html"])
async def test_a_send_of_unknown_fate_is_made_once_more_and_marked(
    tmp_path: Path, fault: Fault
) -> None:
    text = "The model is openai:test-model."
    async with chatting(tmp_path, api=BotApi(fault=first("sendMessage", fault))) as (api, _, _):
        api.say(ANN, "/model")
        await api.wait(lambda: len(api.sent(ANN)) == 2)
        api.say(ANN, "Hello")
        await api.wait(lambda: "You said: Hello" in api.texts(ANN))
        assert api.texts(ANN) == [text, NOTE + text, "You said: Hello"]


@pytest.mark.promise("chat.5")
async def test_a_send_whose_fate_stays_unknown_counts_as_uncertain(tmp_path: Path) -> None:
    api = BotApi(fault=first("sendMessage", "reset after", times=2))
    async with chatting(tmp_path, api=api) as (api, _, _):
        api.say(ANN, "/model")
        api.say(ANN, "Hello")
        await api.wait(lambda: "You said: Hello" in api.texts(ANN))
        assert len(api.sent(ANN)) == 3
        assert "1 uncertain" in await in_thread(status_command, tmp_path / "home")


@pytest.mark.promise("chat.5")
@pytest.mark.parametrize("fault", ["hang after", "reset after", "html", "500"])
async def test_an_answer_whose_edit_has_an_unknown_fate_is_there_once_and_unmarked(
    tmp_path: Path, fault: Fault
) -> None:
    async with chatting(tmp_path, api=BotApi(fault=first("editMessageText", fault))) as (api, _, _):
        api.say(ANN, "Hello")
        await api.wait(lambda: api.requested.count("editMessageText") > 1)
        await api.wait(lambda: api.texts(ANN) != [WORKING])
        assert api.texts(ANN) == ["You said: Hello"]


@pytest.mark.promise("chat.5")
async def test_a_status_of_unknown_fate_leaves_one_answer(tmp_path: Path) -> None:
    api = BotApi(fault=first("sendMessage", "reset after"))
    async with chatting(tmp_path, api=api) as (api, _, _):
        api.say(ANN, "Hello")
        await api.wait(lambda: "You said: Hello" in api.texts(ANN))
        assert api.texts(ANN) == [WORKING, "You said: Hello"]


@pytest.mark.promise("chat.5")
async def test_text_goes_alone_if_the_platform_refuses_its_formatting(tmp_path: Path) -> None:
    """In the answer, which is an edit, and in its second part, which is a new message."""
    paragraph = "**Bold** and `code`, and then some plain words.\n\n"

    async with chatting(tmp_path, lambda _: Reply(text=paragraph * 120)) as (api, _, _):
        api.refuses_formatting = True
        api.say(ANN, "Hello")
        await api.wait(lambda: len(api.sent(ANN)) == 2 and WORKING not in api.texts(ANN))
        assert all(sent.entities == [] for sent in api.sent(ANN))
        plain = "Bold and code, and then some plain words."
        assert "\n\n".join(api.texts(ANN)).split("\n\n") == [plain] * 120


@pytest.mark.promise("chat.5")
async def test_an_answer_is_a_new_message_if_its_status_was_deleted(tmp_path: Path) -> None:
    api = BotApi()

    def deleted_meanwhile(name: str, _: dict[str, Any]) -> None:
        if name == "editMessageText":
            api.messages.clear()

    api.fault = deleted_meanwhile
    async with chatting(tmp_path, api=api, streaming="off") as (api, _, _):
        api.say(ANN, "Hello")
        await api.wait(lambda: api.texts(ANN) == ["You said: Hello"])
        assert api.requested.count("editMessageText") == 1
