"""Answers shown as drafts of Telegram, with the Stop button that a draft brings along."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx import events as ev
from keryx.aio.clock import FakeClock
from keryx.gateway.delivery.previews import DRAFT_REFRESH, ChatPreviews, Preview
from keryx.gateway.talk.answers import WORKING
from keryx.ports.platform import Address, Content
from keryx.testing.modelserver import ReceivedRequest, Reply
from tests.gateway.bot_api import ShownDraft
from tests.gateway.chat_home import ANN, GROUP, chatting, echo, last_text

pytestmark = pytest.mark.promise("chat.3")
SLOW = Reply(text="word " * 400, pace=0.05)


def slow(request: ReceivedRequest) -> Reply:
    return SLOW if last_text(request).endswith("slowly") else echo(request)


async def test_a_draft_shows_the_answer_and_one_message_follows(tmp_path: Path) -> None:
    stream = Reply(text="some words " * 20, pace=0.05)
    async with chatting(tmp_path, lambda _: stream, streaming="drafts") as (api, _, _):
        api.say(ANN, "Hello")
        await api.wait(lambda: api.texts(ANN) == [stream.text.strip()])
        (draft,) = api.drafts.values()
        assert draft.can_stop
        assert draft.times > 1
        shown = [fields["text"] for fields in api.calls_of("sendMessageDraft")]
        # On a full machine there are words before the first draft is shown.
        assert shown[0] == WORKING or stream.text.startswith(shown[0].removesuffix(" …"))
        assert "some words" in shown[-1]
        assert "editMessageText" not in api.requested


async def test_the_stop_button_of_a_draft_stops_its_turn_and_no_other(tmp_path: Path) -> None:
    async with chatting(tmp_path, slow, streaming="drafts") as (api, _, app):
        (requested,) = await api.wait(lambda: api.calls_of("getUpdates")[:1])
        assert "stopped_message_generation" in requested["allowed_updates"]
        api.say(ANN, "slowly")
        draft = await api.wait(
            lambda: next((d for d in api.drafts.values() if "word" in d.text), None)
        )
        api.stop_draft(ShownDraft(ANN, draft.draft_id + 1, "", can_stop=True))  # of another turn
        api.say(ANN, "/status")
        await api.wait(lambda: any("Running: the model" in text for text in api.texts(ANN)))
        api.stop_draft(draft)
        await api.wait(lambda: any(text.endswith("Stopped.") for text in api.texts(ANN)))
        events = await app.store.events((await app.store.sessions())[0].session_id)
        outcomes = [event.outcome for event in events if isinstance(event, ev.TurnFinished)]
        assert outcomes == ["cancelled"]


async def test_a_group_has_edits_instead_of_drafts(tmp_path: Path) -> None:
    mention = [{"type": "mention", "offset": 0, "length": 10}]
    async with chatting(tmp_path, slow, streaming="drafts") as (api, _, _):
        api.say(ANN, "@keryx_bot slowly", chat=GROUP, entities=mention)
        status = (await api.wait(lambda: [sent for sent in api.sent(GROUP) if sent.buttons]))[0]
        await api.wait(lambda: "word" in status.text)
        api.press(ANN, status, status.buttons["Stop"])
        await api.wait(lambda: status.text.endswith("Stopped."))
        assert api.drafts == {}


def test_a_draft_is_shown_again_before_it_disappears() -> None:
    clock = FakeClock()
    previews = ChatPreviews(1.5)
    preview = Preview("t:status", Address("7"), Content(text="so far"), 5)
    previews.show(preview)
    assert previews.take(clock.monotonic()) == [preview]
    assert previews.delay(clock.monotonic()) == DRAFT_REFRESH < 30
    clock.advance(DRAFT_REFRESH)
    assert previews.delay(clock.monotonic()) <= 0
    assert previews.take(clock.monotonic()) == [preview]
    previews.drop("t:status")
    assert not previews
    assert not previews.is_current(preview)
