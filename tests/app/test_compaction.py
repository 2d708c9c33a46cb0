"""A summary takes the place of what was said, by itself, and whatever happens meanwhile.

The server of these tests refuses a history that its API would not take: a call without a result,
or a result without its call.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.testing.modelserver import Call, ModelServer, Reply
from tests.app.compaction_sessions import (
    ENOUGH,
    FULL,
    LITTLE,
    MODELS,
    SUMMARY,
    TOO_LONG,
    WINDOW,
    SummaryScript,
    compacted,
    compacting_session,
    log_of,
    say,
    texts,
    write,
)
from tests.app.hosts import (
    PATIENCE,
    add,
    cancelled,
    check_log,
    closing,
    first,
    keryx,
    keryx_beside,
    result_of,
    start,
    wait_for_output,
)

pytestmark = pytest.mark.promise("004.12")


async def test_what_was_said_is_summed_up_when_the_window_is_nearly_full(tmp_path: Path) -> None:
    long = "I like tea. " * 40
    stage = SummaryScript(Reply(text="Noted. " * 40, usage=FULL))
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        await say(session, long)
        view = await app.host_client.view(session.session_id)
        assert view.context == ev.ContextSize(
            window=WINDOW, compact_at=ENOUGH, last_prompt_tokens=FULL.input_tokens
        )
        turn_id = await say(session, "And now the roses?")
        (fact,) = await compacted(app, session)
        assert fact.session_id == session.session_id
        assert fact.turn_id == turn_id
        assert fact.summary == SUMMARY
        assert fact.tokens_before >= ENOUGH > fact.tokens_after > 0
        types = [ev.type_of(e) for e in await log_of(app, session)]
        assert types.index("context.compacted") < len(types) - types[::-1].index("step.started")
        sent = texts(stage.last())
        assert SUMMARY in sent
        assert "And now the roses?" in sent
        assert long not in sent
        assert long in texts(stage.summed[0].body["messages"])
        # Nothing is lost for people.
        rows = await app.store.transcript(session.session_id)
        assert long in str(rows)
        usage = {row.model: row for row in await app.store.usage(session.session_id)}
        spent = 2 * LITTLE.input_tokens + FULL.input_tokens
        assert sum(row.input_tokens for row in usage.values()) == spent


async def test_the_end_stays_as_it_was_said(tmp_path: Path) -> None:
    stage = SummaryScript(
        Reply(text="Old. " * 200, usage=LITTLE), Reply(text="Recent words.", usage=FULL)
    )
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        await say(session, "First of all")
        await say(session, "Then this")
        await say(session, "At last")
        assert len(await compacted(app, session)) == 1
        sent = texts(stage.last())
        assert "Recent words." in sent
        assert "Then this" in sent
        assert "Old. Old." not in sent


async def test_in_a_long_turn_what_the_person_asked_stays_word_for_word(tmp_path: Path) -> None:
    call = Call("add", {"a": 1, "b": 2})
    wordy = "Adding now. " * 60
    stage = SummaryScript(
        Reply(text=wordy, calls=(call, call), usage=LITTLE),
        Reply(text=wordy, calls=(call,), usage=FULL),
        Reply(text="Three.", usage=LITTLE),
    )
    async with compacting_session(tmp_path / "home", stage) as (app, session, server):
        await say(session, "Add these, and mind the roses")
        (fact,) = await compacted(app, session)
        sent = stage.last()
        assert [message["role"] for message in sent[:3]] == ["system", "user", "user"]
        assert SUMMARY in texts(sent[1:2])
        assert "mind the roses" in texts(sent[2:3])
        assert fact.up_to < fact.seq
        assert server.refused == []


async def test_a_second_summary_is_made_of_the_first(tmp_path: Path) -> None:
    long = "and so on " * 80
    stage = SummaryScript(*(Reply(text=long, usage=FULL) for _ in range(3)))
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        for words in ("one", "two", "three"):
            await say(session, words)
        facts = await compacted(app, session)
        assert len(facts) == 2
        assert facts[0].up_to < facts[1].up_to
        assert SUMMARY in texts(stage.summed[1].body["messages"])
        assert texts(stage.last()).count(SUMMARY) == 1


async def test_a_request_that_was_too_long_is_made_again_with_a_summary(tmp_path: Path) -> None:
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=LITTLE), TOO_LONG)
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        await say(session, "Remember the tea")
        await say(session, "Now this")
        types = [ev.type_of(e) for e in await log_of(app, session)]
        assert types[-5:] == [
            *("usage.recorded", "context.compacted"),
            *("step.started", "step.replied", "turn.finished"),
        ]
        sent = texts(stage.last())
        assert SUMMARY in sent
        assert "Now this" in sent


async def test_what_is_too_long_with_a_summary_too_fails_with_a_hint(tmp_path: Path) -> None:
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=LITTLE), TOO_LONG, TOO_LONG)
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        await say(session, "Remember the tea")
        await say(session, "Now this", "failed")
        last = (await log_of(app, session))[-1]
        assert isinstance(last, ev.TurnFinished)
        assert last.error is not None
        assert last.error.kind == "context_too_long"
        assert "larger window" in last.error.hint
        assert len(stage.summed) == 1


async def test_a_turn_goes_on_if_nobody_can_sum_up(tmp_path: Path) -> None:
    stage = SummaryScript(
        Reply(text="Noted. " * 50, usage=FULL), summary=Reply(status=401, message="who are you?")
    )
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        await say(session, "Remember the tea")
        await say(session, "Now this")
        assert await compacted(app, session) == []
        assert len(stage.summed) == 1
        assert "Remember the tea" in texts(stage.last())


async def test_the_auxiliary_model_sums_up_where_one_is_named(tmp_path: Path) -> None:
    rest = '[models]\ncompact_at = 0.5\n[models.auxiliary]\ncompaction = "here:cheap"\n'
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=ev.Usage(input_tokens=600)))
    async with compacting_session(tmp_path / "home", stage, rest=rest) as (app, session, _):
        await say(session, "Remember the tea")
        await say(session, "Now this")
        assert stage.summed[0].body["model"] == "cheap"
        assert stage.requests[-1].body["model"] == "small"
        recorded = [e for e in await log_of(app, session) if isinstance(e, ev.UsageRecorded)]
        assert [event.purpose for event in recorded] == ["compaction"]
        view = await app.host_client.view(session.session_id)
        assert view.context is not None
        assert view.context.compact_at == WINDOW // 2


@pytest.mark.parametrize("wrong", ["0.05", "1.5", '"often"'])
async def test_a_part_that_cannot_be_is_refused_by_name(tmp_path: Path, wrong: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(f"[models]\ncompact_at = {wrong}\n")
    done = keryx(home, "sessions", "list")
    assert done.returncode != 0
    assert "compact_at" in done.stderr
    assert "config.toml" in done.stderr


# -- what happens meanwhile


async def test_a_steer_waits_for_the_summary_and_then_joins(tmp_path: Path) -> None:
    held = Reply(text=SUMMARY, usage=LITTLE, fault="hang before headers")
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=FULL), summary=held)
    async with compacting_session(tmp_path / "home", stage) as (app, session, server):
        await say(session, "Remember the tea")
        turn = await session.send("Now this")
        summing = await server.wait_asked(2)
        await summing.hanging.wait()
        await session.steer("Rather the roses")
        assert await compacted(app, session) == []
        assert len(stage.requests) == 1
        summing.resume.set()
        assert (await result_of(turn)).outcome == "completed"
        assert len(stage.requests) == 2
        assert "Rather the roses" in texts(stage.last())
        check_log(await log_of(app, session))


async def test_a_cancelled_turn_hangs_up_on_the_summary(tmp_path: Path) -> None:
    held = Reply(text=SUMMARY, fault="hang before headers")
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=FULL), summary=held)
    async with compacting_session(tmp_path / "home", stage) as (app, session, server):
        await say(session, "Remember the tea")
        turn = await session.send("Now this")
        summing = await server.wait_asked(2)
        await summing.hanging.wait()
        await cancelled(turn)
        async with asyncio.timeout(PATIENCE):
            await summing.gone.wait()
        assert await compacted(app, session) == []


async def test_who_comes_late_is_told_that_it_is_being_summed_up(tmp_path: Path) -> None:
    held = Reply(text=SUMMARY, usage=LITTLE, fault="hang before headers")
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=FULL), summary=held)
    async with compacting_session(tmp_path / "home", stage) as (app, session, server):
        await say(session, "Remember the tea")
        turn = await session.send("Now this")
        began = await first(turn, ev.ContextCompacting)
        assert not began.over
        assert began.tokens_before >= ENOUGH
        summing = await server.wait_asked(2)
        await summing.hanging.wait()
        last = (await app.store.events(session.session_id))[-1].seq
        seen: list[ev.Event] = []
        async with asyncio.timeout(PATIENCE), closing(session.events(after=last)) as events:
            async for event in events:
                seen.append(event)
                if len(seen) == 1:
                    assert event == began
                    summing.resume.set()
                if isinstance(event, ev.ContextCompacting) and event.over:
                    break
        kinds = [type(event) for event in seen]
        assert kinds.index(ev.ContextCompacted) < len(kinds) - 1
        await result_of(turn)


async def test_a_turn_that_was_stopped_while_summing_up_goes_on_afterwards(
    tmp_path: Path,
) -> None:
    held = Reply(text=SUMMARY, usage=LITTLE, fault="hang before headers")
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=FULL), summary=held)
    home = tmp_path / "home"
    async with ModelServer(stage, models=MODELS) as server:
        write(home, server)
        async with Keryx(model="here:small", tools=[add], workspace=home, home=home) as app:
            session = await app.open()
            await say(session, "Remember the tea")
            turn = await session.send("Now this")
            await (await server.wait_asked(2)).hanging.wait()
        stage.summary = Reply(text=SUMMARY, usage=LITTLE)
        async with Keryx(model="here:small", tools=[add], workspace=home, home=home) as app:
            again = await app.open(session.session_id)
            async with asyncio.timeout(PATIENCE), closing(again.events()) as events:
                async for event in events:
                    if isinstance(event, ev.TurnFinished) and event.turn_id == turn.turn_id:
                        break
            assert len(await compacted(app, again)) == 1
            assert SUMMARY in texts(stage.last())


async def test_a_turn_that_was_killed_while_summing_up_goes_on_afterwards(tmp_path: Path) -> None:
    held = Reply(text=SUMMARY, usage=LITTLE, fault="hang before headers")
    stage = SummaryScript(Reply(text="Noted. " * 50, usage=FULL), summary=held)
    home = tmp_path / "home"
    async with ModelServer(stage, models=MODELS) as server:
        write(home, server, 'model = "here:small"\n')
        code, _, err = await keryx_beside(home, "run", "Remember the tea", "--tools", "")
        assert code == 0, err
        async with Keryx(home=home, resume=False) as app:
            (row,) = await app.store.sessions()
        with start(home, ("run", "Now this", "--session", row.session_id)) as process:
            try:
                async with asyncio.timeout(PATIENCE):
                    await (await server.wait_asked(2)).hanging.wait()
                    await wait_for_output(process, b"[compacting: 86")
            finally:
                process.kill()
        stage.summary = Reply(text=SUMMARY, usage=LITTLE)
        async with Keryx(home=home) as app:
            session = await app.open(row.session_id)
            finished = 0
            async with asyncio.timeout(PATIENCE), closing(session.events()) as events:
                async for event in events:
                    finished += isinstance(event, ev.TurnFinished)
                    if finished == 2:
                        break
            check_log(await log_of(app, session))
            assert len(await compacted(app, session)) == 1
            assert "Now this" in texts(stage.last())
