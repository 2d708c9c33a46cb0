"""What people can do in a chat: stop, steer, approve, answer, switch, send photos, use groups."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from keryx import events as ev
from keryx.testing.modelserver import Call, ReceivedRequest, Reply
from tests.gateway.chat_home import ANN, EVE, GROUP, chatting, echo, last_text
from tests.server.served_host import in_thread

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)
SLOW = Reply(text="word " * 400, pace=0.05)


def slow(request: ReceivedRequest) -> Reply:
    return SLOW if last_text(request) == "slowly" else echo(request)


def pair_command(home: Path) -> str:
    """What `keryx gateway pair` prints while the gateway runs."""
    words = [sys.executable, "-m", "keryx", "gateway", "pair", "--home", str(home)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def tool_results(request: ReceivedRequest) -> list[str]:
    messages = request.body["messages"]
    last = max(at for at, message in enumerate(messages) if message["role"] == "user")
    return [str(message["content"]) for message in messages[last:] if message["role"] == "tool"]


@pytest.mark.promise("chat.3")
async def test_an_answer_is_shown_while_it_is_written_and_the_stop_button_stops_it(
    tmp_path: Path,
) -> None:
    async with chatting(tmp_path, slow) as (api, _, app):
        api.say(ANN, "slowly")
        status = (await api.wait(lambda: [sent for sent in api.sent(ANN) if sent.buttons]))[0]
        await api.wait(lambda: status.edits > 1 and "word" in status.text)
        assert set(status.buttons) == {"Stop"}
        api.press(EVE, status, status.buttons["Stop"])  # a stranger's press does nothing
        api.press(ANN, status, status.buttons["Stop"])
        await api.wait(lambda: status.text.endswith("Stopped."))
        assert status.buttons == {}
        assert len(api.sent(ANN)) == 1
        await api.wait(lambda: "Stopped." in api.toasts)
        events = await app.store.events((await app.store.sessions())[0].session_id)
        (finished,) = [event for event in events if isinstance(event, ev.TurnFinished)]
        assert finished.outcome == "cancelled"


@pytest.mark.promise("chat.3")
async def test_stop_passes_by_the_queue_and_a_stale_press_says_so(tmp_path: Path) -> None:
    async with chatting(tmp_path, slow) as (api, _, _):
        api.say(ANN, "slowly")
        status = (await api.wait(lambda: [sent for sent in api.sent(ANN) if sent.buttons]))[0]
        data = status.buttons["Stop"]
        api.say(ANN, "then this")
        api.say(ANN, "/stop")
        await api.wait(lambda: "You said: then this" in api.texts(ANN))
        api.press(ANN, status, data)
        await api.wait(lambda: "It was over already." in api.toasts)


@pytest.mark.promise("chat.3")
async def test_approvals_are_buttons_and_only_the_first_answer_counts(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        if last_text(request) == "delete" and not tool_results(request):
            return Reply(calls=(Call("terminal", {"command": "git push --force"}),))
        return Reply(text=f"done: {' '.join(tool_results(request))[:200]}")

    async with chatting(tmp_path, answer) as (api, _, _):
        api.say(ANN, "delete")
        asking = (await api.wait(lambda: [m for m in api.sent(ANN) if "Deny" in m.buttons]))[0]
        assert {"Allow once", "Deny", "Allow for this session"} <= set(asking.buttons)
        deny, allow = asking.buttons["Deny"], asking.buttons["Allow once"]
        api.press(EVE, asking, allow)
        api.press(ANN, asking, deny)
        await api.wait(lambda: asking.text.endswith("Denied") and not asking.buttons)
        api.press(ANN, asking, allow)
        await api.wait(lambda: any("Expired" in toast for toast in api.toasts))
        await api.wait(lambda: any(text.startswith("done") for text in api.texts(ANN)))


@pytest.mark.promise("chat.3")
async def test_a_question_is_answered_with_a_button_or_in_words(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        if not tool_results(request):
            arguments: dict[str, Any] = {"question": "Which?", "choices": ["red", "blue"]}
            return Reply(calls=(Call("clarify", arguments),))
        return Reply(text=f"chosen: {tool_results(request)[-1]}")

    async with chatting(tmp_path, answer) as (api, _, _):
        api.say(ANN, "ask me")
        asking = (await api.wait(lambda: [m for m in api.sent(ANN) if "red" in m.buttons]))[0]
        api.press(ANN, asking, asking.buttons["blue"])
        await api.wait(lambda: any("chosen" in text and "blue" in text for text in api.texts(ANN)))
        api.say(ANN, "ask me again")
        await api.wait(lambda: [m for m in api.sent(ANN) if "red" in m.buttons])
        api.say(ANN, "green")
        await api.wait(lambda: any("chosen" in text and "green" in text for text in api.texts(ANN)))


@pytest.mark.promise("chat.2")
async def test_a_code_pairs_one_person_once(tmp_path: Path) -> None:
    async with chatting(tmp_path) as (api, _, _):
        shown = await in_thread(pair_command, tmp_path / "home")
        code = shown.rpartition("/pair ")[2].strip()
        api.say(EVE, "/pair WRONG234")
        api.say(EVE, "Hello")
        api.say(ANN, "barrier")
        await api.wait(lambda: "You said: barrier" in api.texts(ANN))
        assert api.sent(EVE) == []
        api.say(EVE, f"/pair {code}")
        await api.wait(lambda: any("You can talk to me now" in text for text in api.texts(EVE)))
        api.say(EVE, "Hello")
        await api.wait(lambda: "You said: Hello" in api.texts(EVE))
        api.say(667, f"/pair {code}")
        api.say(ANN, "second barrier")
        await api.wait(lambda: "You said: second barrier" in api.texts(ANN))
        assert api.sent(667) == []


@pytest.mark.promise("chat.4")
async def test_in_a_group_only_a_mention_is_answered_in_its_topic(tmp_path: Path) -> None:
    mention = [{"type": "mention", "offset": 0, "length": 10}]
    topic = {"message_thread_id": 42, "is_topic_message": True}
    async with chatting(tmp_path) as (api, _, app):
        api.say(ANN, "not for you", chat=GROUP)
        api.say(ANN, "@keryx_bot hello", chat=GROUP, entities=mention, **topic)
        api.say(ANN, "@keryx_bot hi", chat=GROUP, entities=mention)
        api.say(EVE, "@keryx_bot me too", chat=GROUP, entities=mention)
        await api.wait(lambda: len([t for t in api.texts(GROUP) if "You said" in t]) == 2)
        by_topic = {sent.topic: sent for sent in api.sent(GROUP)}
        assert by_topic[42].text == "You said: Person 7: hello"
        assert by_topic[None].text == "You said: Person 7: hi"
        assert by_topic[42].reply_to is not None
        assert len(await app.store.sessions()) == 2


@pytest.mark.promise("chat.4")
async def test_a_photo_comes_back_described_and_an_album_is_one_message(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        images = re.findall(r"data:image/", request.raw.decode())
        return Reply(text=f"I see {len(images)} images: {last_text(request)}")

    async with chatting(tmp_path, answer) as (api, _, _):
        api.files["p1"] = api.files["p2"] = PNG
        size = {"width": 1, "height": 1, "file_size": len(PNG)}
        for name in ("p1", "p2"):
            photo = [{"file_id": name, "file_unique_id": name, **size}]
            caption: dict[str, Any] = {"caption": "what is this?"} if name == "p1" else {}
            api.say(ANN, "", photo=photo, media_group_id="album", **caption)
        await api.wait(lambda: "I see 2 images: what is this?" in api.texts(ANN))
        assert len(api.sent(ANN)) == 1


@pytest.mark.promise("chat.4")
async def test_documents_and_voice_come_in_and_linked_files_go_out(tmp_path: Path) -> None:
    async with chatting(
        tmp_path,
        lambda request: Reply(text="Here: [report](report.txt), [no](../home/config.toml)"),
    ) as (api, _, app):
        (tmp_path / "workspace" / "report.txt").write_text("the report")
        api.files["v1"] = b"OggS voice"
        voice = {"file_id": "v1", "file_unique_id": "v1", "duration": 1, "mime_type": "audio/ogg"}
        api.say(ANN, "", voice={**voice, "file_size": 10})
        await api.wait(lambda: any(sent.kind == "document" for sent in api.sent(ANN)))
        files = [sent for sent in api.sent(ANN) if sent.kind != "text"]
        assert [sent.file for sent in files] == [b"the report"]
        api.say(ANN, "", voice={**voice, "file_size": 21 * 1024 * 1024})
        await api.wait(lambda: any("is larger than 20 MB" in text for text in api.texts(ANN)))
        session_id = (await app.store.sessions())[0].session_id
        events = await app.store.events(session_id)
        accepted = [event for event in events if isinstance(event, ev.MessageAccepted)]
        assert [part.media_type for part in accepted[0].attachments] == ["audio/ogg"]


@pytest.mark.promise("chat.4")
async def test_past_sessions_are_searched_and_the_session_goes_on_elsewhere(
    tmp_path: Path,
) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        if "search" in last_text(request) and not tool_results(request):
            return Reply(calls=(Call("session_search", {"words": "heron"}),))
        if results := tool_results(request):
            return Reply(text=f"found: {'heron' in json.dumps(results)}")
        return echo(request)

    async with chatting(tmp_path, answer) as (api, _, app):
        api.say(ANN, "the heron lands")
        await api.wait(lambda: "You said: the heron lands" in api.texts(ANN))
        session_id = (await app.store.sessions())[0].session_id
        api.say(ANN, "/new")
        api.say(ANN, "search it")
        await api.wait(lambda: "found: True" in api.texts(ANN))
        handle = await app.open(session_id)
        turn = await handle.send("from the page")
        assert (await turn.result()).text == "You said: from the page"
