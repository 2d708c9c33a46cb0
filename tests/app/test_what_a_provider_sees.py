"""What leaves this machine for a provider: only what its API takes, with its own key.

The server of these tests refuses every field that the API does not have, every history that it
would not take, and every key but its own.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.testing.modelserver import MODEL, Call, ModelServer, Reply
from tests.app.hosts import PATIENCE, Answers, add, cancelled, result_of, until_shown

PICTURE = b"\x89PNG\r\n\x1a\n..."
FINE = Reply(text="Fine.")


def configure(home: Path, *servers: ModelServer, rest: str = "", api: str = "chat") -> None:
    """Servers called `one`, `two`, ..., each with a key of its own."""
    home.mkdir()
    text = rest
    for name, server in zip(("one", "two", "three"), servers, strict=False):
        text += f'\n[providers.{name}]\nbase_url = "{server.url_of(api)}"\n'
        text += f'api_key = "sk-of-{name}"\nimages = ["*"]\nformat = "{api}"\n'
    (home / "config.toml").write_text(text)


async def say(session: SessionHandle, text: str, outcome: str = "completed") -> None:
    result = await result_of(await session.send(text))
    assert result.outcome == outcome


async def live_through_it(app: Keryx, session: SessionHandle, answers: Answers) -> None:
    """Everything that leaves a trace in the history of a session."""
    await say(session, "think first")
    picture = await app.upload(PICTURE, "cat.png", "image/png")
    notes = await app.upload(b"notes", "notes.txt", "text/plain")
    await result_of(await session.send("look", attachments=[picture, notes]))
    await say(session, "use tools")
    broken = await session.send("begin a sentence")
    await until_shown(broken, "It was a")
    await cancelled(broken)
    await say(session, "go on", "failed")
    await say(session, "and once more")
    held = await session.send("be steered")
    await until_shown(held, "On my wa")
    await session.steer("rather that way")
    assert (await result_of(held)).outcome == "completed"
    await session.change(
        personality="formal", effort="high", workspace=str(app.host_client.config.home)
    )
    await say(session, "after a change")
    undone = await session.send("to be undone")
    await result_of(undone)
    await session.undo(undone.turn_id)
    await say(await session.fork(), "in a fork")
    answers.always = FINE
    await say(session, "at last")


PICTURES = {
    "chat": b"image_url",
    "responses": b"input_image",
    "anthropic": b'"type":"image"',
    "gemini": b"inlineData",
}


@pytest.mark.promise("004.13", "model.1")
@pytest.mark.parametrize("api", PICTURES)
async def test_nothing_is_sent_that_the_api_does_not_take(tmp_path: Path, api: str) -> None:
    calls = (
        Call("add", {"a": 1, "b": 2}),
        # Gemini sends arguments as an object, which is never broken.
        Call("add", "{}" if api == "gemini" else "{not json"),
        Call("add", {"a": "x"}),
        Call("no such tool!", {}),
        Call("read_file", {"path": "missing.txt"}),
    )
    answers = Answers(
        Reply(reasoning="Let me see.", text="Thought."),
        *(FINE, Reply(text="Calling.", calls=calls), FINE),
        Reply(text="It was a dark and stormy night", fault="hang mid-stream"),
        Reply(status=400, message="no", code="content_filter"),
        *(FINE, Reply(text="On my way there", fault="hang mid-stream", after=2), FINE),
        always=FINE,
    )
    home = tmp_path / "home"
    async with ModelServer(answers, key="sk-of-one") as server, asyncio.timeout(3 * PATIENCE):
        configure(home, server, rest="[personalities]\nformal = 'Be formal.'\n", api=api)
        model = f"one:{MODEL}"
        async with Keryx(model=model, tools=[add], home=home, workspace=tmp_path) as app:
            await live_through_it(app, await app.open(approvals="never"), answers)
        assert server.refused == []
        assert len(server.asked) >= 13
        assert {request.api for request in server.asked} == {api}
        assert any(PICTURES[api] in request.raw for request in server.asked)


@pytest.mark.promise("004.11")
async def test_a_fallback_is_asked_at_its_own_address_with_its_own_key(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with (
        asyncio.timeout(PATIENCE),
        ModelServer([Reply(status=401, message="expired", code="auth")], key="sk-of-one") as one,
        ModelServer([Reply(text="From two.")], key="sk-of-two") as two,
    ):
        named = f'[models]\nfallback = ["one:{MODEL}", "two:{MODEL}"]\n'
        configure(home, one, two, rest=f'model = "one:{MODEL}"\n{named}')
        async with Keryx(home=home, workspace=tmp_path) as app:
            session = await app.open()
            result = await result_of(await session.send("hi"))
            log = await app.store.events(session.session_id)
    assert (result.outcome, result.text) == ("completed", "From two.")
    (switched,) = [event for event in log if isinstance(event, ev.ModelSwitched)]
    assert (switched.from_, switched.to) == (f"one:{MODEL}", f"two:{MODEL}")
    assert [request.headers["Authorization"] for request in two.asked] == ["Bearer sk-of-two"]
    assert b"sk-of" not in b"".join(request.raw for request in two.asked)


@pytest.mark.promise("004.11")
async def test_when_no_fallback_is_left_the_error_tells_of_all_and_how_long_to_wait(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    slow = Reply(
        status=429, message="too fast", code="rate_limit_exceeded", headers={"Retry-After": "3600"}
    )
    async with (
        asyncio.timeout(PATIENCE),
        ModelServer([Reply(status=401, message="expired", code="auth")], key="sk-of-one") as one,
        ModelServer([slow], key="sk-of-two") as two,
    ):
        named = f'[models]\nfallback = ["two:{MODEL}"]\n'
        configure(home, one, two, rest=f'model = "one:{MODEL}"\n{named}')
        async with Keryx(home=home, workspace=tmp_path) as app:
            result = await result_of(await (await app.open()).send("hi"))
    assert result.error is not None
    assert "no fallback is left" in result.error.message
    assert "expired" in result.error.message
    assert "wait 3600 s" in result.error.hint


async def test_a_fallback_that_nobody_knows_is_said_before_it_is_needed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with asyncio.timeout(PATIENCE), ModelServer([FINE], key="sk-of-one") as one:
        configure(home, one, rest=f'model = "one:{MODEL}"\n[models]\nfallback = ["tow:x"]\n')
        async with Keryx(home=home, workspace=tmp_path) as app:
            result = await result_of(await (await app.open()).send("hi"))
    assert result.error is not None
    assert "'tow:x'" in result.error.message
    assert one.asked == []


@pytest.mark.promise("004.7")
async def test_a_personality_is_told_and_never_becomes_part_of_what_was_said(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with ModelServer(Answers(always=FINE), key="sk-of-one") as server:
        table = "[personalities.formal]\nsystem_prompt = 'Be formal.'\ntone = 'cool'\n"
        configure(home, server, rest=table)
        async with Keryx(model=f"one:{MODEL}", home=home, workspace=tmp_path) as app:
            session = await app.open(personality="formal")
            await say(session, "hi")
            await session.change(personality=None)
            await say(session, "hi again")
            rows = await app.store.transcript(session.session_id)
    first, second = [request.body["messages"] for request in server.asked[:2]]
    assert "Be formal." in json.dumps(first[0])
    assert "Tone: cool" in json.dumps(first[0])
    assert "Be formal." not in json.dumps([*first[1:], *second])
    assert b"Be formal." not in b"".join(ev.encode(row.event) for row in rows)
