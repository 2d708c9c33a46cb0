"""Replies that came whole and are no answer, or whose counts cannot be, met by a whole session."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx import events as ev
from keryx.testing.modelserver import ModelServer, Reply
from tests.app.hosts import Answers, result_of, talking
from tests.app.test_server_faults import STORY, check_goes_on, each_api, failed

pytestmark = pytest.mark.promise("sessions.5")


@each_api
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(stop="content_filter"), "stopped for its content"),
        (Reply(text=STORY, stop="content_filter"), "stopped for its content"),
        (Reply(reasoning="hm", stop="length"), "before it wrote an answer"),
    ],
    ids=["filtered", "filtered in its middle", "all thoughts"],
)
async def test_a_reply_that_is_no_answer_fails_the_turn(
    tmp_path: Path, reply: Reply, words: str, api: str
) -> None:
    answers = Answers(reply)
    async with ModelServer(answers) as server, talking(tmp_path, server, api=api) as (app, session):
        result = await result_of(await session.send("2 + 3?"))
        assert words in failed(result, "bad_response").message
        assert len(server.asked) == 1
        said = ("2 + 3?", STORY) if reply.text else ("2 + 3?",)
        await check_goes_on(app, session, server, answers, *said)


@each_api
@pytest.mark.parametrize("count", [1 << 63, 1 << 41, -5])
async def test_counts_that_cannot_be_are_unknown(tmp_path: Path, count: int, api: str) -> None:
    answers = Answers(Reply(text=STORY, usage=ev.Usage(input_tokens=count, output_tokens=1)))
    async with ModelServer(answers) as server, talking(tmp_path, server, api=api) as (app, session):
        result = await result_of(await session.send("2 + 3?"))
        assert (result.outcome, result.text) == ("completed", STORY)
        assert result.usage == ev.Usage()
        log = await app.store.events(session.session_id)
        assert [event.usage for event in log if isinstance(event, ev.StepReplied)] == [None]
        await check_goes_on(app, session, server, answers, "2 + 3?", STORY)
