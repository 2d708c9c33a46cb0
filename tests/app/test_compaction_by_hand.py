"""A summary takes the place of what was said because a person wants it; what stands against it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.errors import ModelError, UserMustActError
from keryx.testing.modelserver import ModelServer, ReceivedRequest, Reply
from tests.app.compaction_sessions import (
    LITTLE,
    MODELS,
    SUMMARY,
    TOO_LONG,
    SummaryScript,
    compacted,
    compacting_session,
    is_summing,
    log_of,
    say,
    texts,
    write,
)
from tests.app.hosts import (
    PATIENCE,
    add,
    check_log,
    closing,
    first,
    keryx_beside,
    result_of,
)

pytestmark = pytest.mark.promise("004.12")


async def test_by_hand_all_is_summed_up_and_the_view_tells_what_is_left(tmp_path: Path) -> None:
    stage = SummaryScript(
        Reply(text="Noted. " * 50, usage=ev.Usage(input_tokens=400, output_tokens=100))
    )
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        await say(session, "Remember the tea")
        await session.compact()
        (fact,) = await compacted(app, session)
        assert fact.turn_id is None
        assert fact.tokens_before == 500
        view = await app.host_client.view(session.session_id)
        assert view.context is not None
        assert view.context.last_prompt_tokens == fact.tokens_after < 500
        await say(session, "Now this")
        sent = texts(stage.last())
        assert SUMMARY in sent
        assert "Remember the tea" in sent, "what the person said stays word for word"
        assert "Noted. Noted." not in sent
        with pytest.raises(
            UserMustActError, match="there is nothing to summarize yet; send a message"
        ):
            await (await app.open()).compact()


async def test_a_session_at_rest_tells_the_same_without_its_log(tmp_path: Path) -> None:
    home = tmp_path / "home"
    stage = SummaryScript(
        Reply(text="Noted. " * 50, usage=ev.Usage(input_tokens=400, output_tokens=100))
    )
    async with ModelServer(stage, models=MODELS) as server:
        write(home, server)
        async with Keryx(model="here:small", tools=[add], workspace=home, home=home) as app:
            session = await app.open()
            await say(session, "Remember the tea")
            await session.compact()
            before = await app.host_client.view(session.session_id)
        async with Keryx(model="here:small", tools=[add], workspace=home, home=home) as app:
            after = await app.host_client.view(session.session_id)
        assert after.context == before.context


async def test_a_message_does_not_wait_for_a_summary_by_hand(tmp_path: Path) -> None:
    held = Reply(text=SUMMARY, usage=LITTLE, fault="hang before headers")
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=LITTLE), summary=held)
    async with compacting_session(tmp_path / "home", stage) as (app, session, server):
        await say(session, "Remember the tea")
        async with asyncio.TaskGroup() as group:
            by_hand = group.create_task(session.compact())
            summing = await server.wait_asked(2)
            await summing.hanging.wait()
            await say(session, "Meanwhile")
            with pytest.raises(UserMustActError, match="already"):
                await session.compact()
            summing.resume.set()
            async with asyncio.timeout(PATIENCE):
                await by_hand
        await say(session, "Afterwards")
        sent = texts(stage.last())
        assert SUMMARY in sent
        assert "Remember the tea" in sent, "what the person said stays word for word"
        assert "Noted. Noted." not in sent
        assert "Meanwhile" in sent
        check_log(await log_of(app, session))


async def test_a_turn_that_is_too_long_meanwhile_waits_for_it(tmp_path: Path) -> None:
    held = Reply(text=SUMMARY, usage=LITTLE, fault="hang before headers")
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=LITTLE), TOO_LONG, summary=held)
    async with compacting_session(tmp_path / "home", stage) as (app, session, server):
        await say(session, "Remember the tea")
        async with asyncio.TaskGroup() as group:
            group.create_task(session.compact())
            summing = await server.wait_asked(2)
            await summing.hanging.wait()
            turn = await session.send("Now this")
            await (await server.wait_asked(3)).answered.wait()
            await first(turn, ev.StepAbandoned)
            summing.resume.set()
            assert (await result_of(turn)).outcome == "completed"
        assert len(stage.summed) == len(await compacted(app, session)) == 1
        sent = texts(stage.last())
        assert SUMMARY in sent
        assert "Now this" in sent


async def test_whoever_asked_may_go_away(tmp_path: Path) -> None:
    held = Reply(text=SUMMARY, usage=LITTLE, fault="hang before headers")
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=LITTLE), summary=held)
    async with compacting_session(tmp_path / "home", stage) as (app, session, server):
        await say(session, "Remember the tea")
        async with asyncio.TaskGroup() as group:
            by_hand = group.create_task(session.compact())
            summing = await server.wait_asked(2)
            await summing.hanging.wait()
            by_hand.cancel()
        async with asyncio.timeout(PATIENCE), closing(session.events()) as events:
            summing.resume.set()
            async for event in events:
                if isinstance(event, ev.ContextCompacted):
                    break
        assert len(await compacted(app, session)) == 1


async def test_what_is_undone_is_not_told_by_a_summary(tmp_path: Path) -> None:
    stage = SummaryScript(*(Reply(text=f"Reply {n}. " * 40, usage=LITTLE) for n in range(3)))
    async with compacting_session(tmp_path / "home", stage) as (_, session, _):
        await say(session, "Keep this")
        regretted = await say(session, "Regret this")
        await session.compact()
        await session.undo(regretted)
        await say(session, "Go on")
        sent = texts(stage.last())
        assert SUMMARY not in sent
        assert "Keep this" in sent
        assert "Regret this" not in sent


async def test_a_summary_of_what_is_undone_meanwhile_is_dropped(tmp_path: Path) -> None:
    held = Reply(text=SUMMARY, usage=LITTLE, fault="hang before headers")
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=LITTLE), summary=held)
    async with compacting_session(tmp_path / "home", stage) as (app, session, server):
        regretted = await say(session, "Regret this")
        async with asyncio.TaskGroup() as group:
            by_hand = group.create_task(_problem(session.compact))
            summing = await server.wait_asked(2)
            await summing.hanging.wait()
            await session.undo(regretted)
            summing.resume.set()
            assert "undone" in await by_hand
        assert await compacted(app, session) == []


async def _problem(act: Callable[[], Any]) -> str:
    with pytest.raises(UserMustActError) as caught:
        await act()
    return str(caught.value)


async def test_a_summary_that_is_longer_than_what_was_said_is_not_taken(tmp_path: Path) -> None:
    stage = SummaryScript(Reply(text="Hi.", usage=LITTLE), summary=Reply(text="Words. " * 200))
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        await say(session, "Hi")
        with pytest.raises(UserMustActError, match="longer"):
            await session.compact()
        assert await compacted(app, session) == []
        await say(session, "Still there?")
        assert "Hi." in texts(stage.last())


async def test_a_summary_of_no_words_is_not_taken(tmp_path: Path) -> None:
    stage = SummaryScript(Reply(text="Noted.", usage=LITTLE), summary=Reply(text=" \n "))
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        await say(session, "Hi")
        with pytest.raises(ModelError, match="empty summary"):
            await session.compact()
        assert await compacted(app, session) == []


async def test_a_summary_whose_end_is_missing_is_asked_for_again_and_says_so(
    tmp_path: Path,
) -> None:
    noted = Reply(text="Noted. " * 50, usage=ev.Usage(input_tokens=400, output_tokens=100))
    cut = Reply(text="The person wants", stop="length", usage=LITTLE)
    stage = SummaryScript(noted, summary=cut)
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        await say(session, "Remember the tea")
        await session.compact()
        (fact,) = await compacted(app, session)
        assert fact.summary == "The person wants\n[the end of this summary is missing]"
        systems = [request.body["messages"][0]["content"] for request in stage.summed]
        assert ["its end was lost" in system for system in systems] == [False, True]


async def test_a_summary_that_was_stopped_for_its_content_is_not_taken(tmp_path: Path) -> None:
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=LITTLE))
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        await say(session, "Remember the tea")
        stage.summary = Reply(text="I cannot", stop="content_filter", usage=LITTLE)
        with pytest.raises(ModelError, match="stopped its summary for its content"):
            await session.compact()
        assert await compacted(app, session) == []


async def test_what_is_too_long_to_be_summed_up_is_told_in_fewer_words(tmp_path: Path) -> None:
    long = "a very long story " * 2_000

    def answer(request: ReceivedRequest) -> Reply:
        if not is_summing(request):
            return Reply(text="Noted.", usage=ev.Usage(input_tokens=30_000, output_tokens=10))
        return TOO_LONG if len(request.raw) > 6_000 else Reply(text=SUMMARY, usage=LITTLE)

    async with ModelServer(answer, models=MODELS) as server:
        home = tmp_path / "home"
        home.mkdir()
        provider = f'[providers.here]\nbase_url = "{server.url}"\napi_key = "k"\n'
        (home / "config.toml").write_text(provider)
        async with Keryx(model="here:any", tools=[add], workspace=home, home=home) as app:
            session = await app.open()
            for _ in range(3):
                await say(session, long)
            await session.compact()
            (fact,) = await compacted(app, session)
            assert fact.tokens_after < fact.tokens_before
            assert "characters left out" in texts(server.asked[-1].body["messages"])


async def test_a_fork_begins_with_the_summary(tmp_path: Path) -> None:
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=LITTLE))
    async with compacting_session(tmp_path / "home", stage) as (_, session, _):
        await say(session, "Remember the tea")
        await session.compact()
        await say(session, "Now this")
        forked = await session.fork()
        await say(forked, "In the fork")
        sent = texts(stage.last())
        assert SUMMARY in sent
        assert "Remember the tea" in sent, "what the person said stays word for word"
        assert "Noted. Noted." not in sent


async def test_the_command_prints_what_it_did(tmp_path: Path) -> None:
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=LITTLE))
    home = tmp_path / "home"
    async with compacting_session(home, stage) as (_, session, _):
        await say(session, "Remember the tea")
        code, out, err = await keryx_beside(home, "sessions", "compact", session.session_id)
        assert code == 0, err
        assert SUMMARY in out
        assert "110 → " in out
        code, _, err = await keryx_beside(home, "sessions", "compact", session.session_id)
        assert code == 1
        assert "nothing to summarize yet; send a message first" in err
