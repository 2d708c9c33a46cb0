"""After a crash at any commit: nothing finished runs again, and every turn gets its one end."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from keryx import events as ev
from keryx.engine.log.fold import Fold
from keryx.engine.log.resume_plan import Plan, plan
from keryx.messages import ToolMessage
from keryx.models.scripted import ScriptedCall, ScriptedReply, history_of
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.model import ModelRequest
from keryx.ports.store import Commit
from keryx.ports.tool import Replay, Tool
from keryx.tools.function import tool
from tests.engine.sessions import Recording, SessionHost, until

pytestmark = pytest.mark.promise("sessions.1")


def script(request: ModelRequest) -> ScriptedReply:
    """Ask for all three calls once, then rest."""
    if any(isinstance(message, ToolMessage) for message in history_of(request)):
        return ScriptedReply(text="Done.")
    calls = [ScriptedCall("act_never"), ScriptedCall("act_safe"), ScriptedCall("act_keyed")]
    return ScriptedReply(text="Acting.", calls=calls)


class Acts:
    """Three tools that count how often they act."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.tools = [self._make(replay) for replay in ("never", "safe", "keyed")]

    def _make(self, replay: Replay) -> Tool:
        name = f"act_{replay}"

        @tool(name=name, effects=NO_EFFECTS, replay=replay)
        async def act() -> str:
            """Act."""
            self.done.append(name)
            await asyncio.sleep(0)
            return f"{name} did it"

        return act


async def whole_run() -> list[Commit]:
    acts = Acts()
    session_host = SessionHost(script, tools=acts.tools)
    session = await session_host.open()
    await session_host.send(session, "Go")
    await session.wait_rested()
    assert sorted(acts.done) == ["act_keyed", "act_never", "act_safe"]
    await session_host.close()
    assert isinstance(session_host.store, Recording)
    return session_host.store.commits


async def restore(commits: list[Commit]) -> Recording:
    """A store as it was when these commits had been made."""
    store = Recording()
    epoch = await store.claim("s1")
    for commit in commits:
        await store.append(replace(commit, epoch=epoch))
    store.commits.clear()
    return store


def tools_of(log: list[ev.LoggedEvent], kind: type[ev.CallStarted | ev.CallFinished]) -> set[str]:
    return {event.tool for event in log if isinstance(event, kind)}


async def test_a_crash_after_any_commit_recovers() -> None:
    commits = await whole_run()
    for commit_count in range(1, len(commits) + 1):
        before = [event for commit in commits[:commit_count] for event in commit.events]
        acts = Acts()
        session_host = SessionHost(
            script, tools=acts.tools, store=await restore(commits[:commit_count])
        )
        session = await session_host.open()
        await session.wait_rested()
        log = await session_host.log(session)
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        assert log[: len(before)] == before, "what was acknowledged is there"
        if any(isinstance(event, ev.MessageAccepted) for event in before):
            check(before, log, acts)
        await session_host.close()


def check(before: list[ev.LoggedEvent], log: list[ev.LoggedEvent], acts: Acts) -> None:
    ends = [event for event in log if isinstance(event, ev.TurnFinished)]
    assert [end.outcome for end in ends] == ["completed"]
    assert isinstance(log[-1], ev.TurnFinished)
    started, finished = tools_of(before, ev.CallStarted), tools_of(before, ev.CallFinished)
    for name in ("act_never", "act_safe", "act_keyed"):
        facts = [e for e in log if isinstance(e, ev.CallFinished) and e.tool == name]
        assert len(facts) == 1, "every call has one end"
        if name in finished:
            assert name not in acts.done, "a finished call never runs again"
        elif name in started and name == "act_never":
            assert name not in acts.done
            assert (facts[0].outcome, facts[0].reason) == ("unknown", "crash")
        else:
            assert name in acts.done
            assert facts[0].outcome == "completed"


async def test_the_same_log_gives_the_same_plan() -> None:
    commits = await whole_run()
    log = [event for commit in commits for event in commit.events]
    for event_count in range(1, len(log)):
        assert plan_of(log[:event_count]) == plan_of(log[:event_count])


def plan_of(log: list[ev.LoggedEvent]) -> Plan | None:
    fold = Fold("s1")
    for event in log:
        fold.apply(event)
    return None if fold.turn is None else plan(fold)


async def test_a_cancelled_turn_is_not_revived() -> None:
    session_host = SessionHost([ScriptedReply(text="Once", hold=asyncio.Event().wait)])
    session = await session_host.open()
    sent = await session_host.send(session, "Tell")
    await until(session, ev.TextDelta)
    await session_host.cancel(session, sent.turn_id)
    await session.wait_rested()
    await session_host.close()
    assert isinstance(session_host.store, Recording)
    commits = session_host.store.commits
    last = next(
        number
        for number, commit in enumerate(commits)
        if any(isinstance(event, ev.TurnCancelling) for event in commit.events)
    )
    crashed = [*commits[:last], only(commits[last], upto=ev.TurnCancelling)]
    again = SessionHost([], store=await restore(crashed))
    session = await again.open()
    await session.wait_rested()
    end = (await again.log(session))[-1]
    assert isinstance(end, ev.TurnFinished)
    assert (end.outcome, end.reason) == ("cancelled", "interrupt")
    assert again.model.asked == []
    await again.close()


def only(commit: Commit, *, upto: type[ev.LoggedEvent]) -> Commit:
    """The commit, cut behind that fact."""
    index = next(n for n, event in enumerate(commit.events) if isinstance(event, upto))
    return replace(commit, events=commit.events[: index + 1])


async def test_a_turn_that_kills_its_process_again_and_again_is_parked() -> None:
    """Each restart resumes the turn and dies before any new fact."""
    commits = [commit for commit in await whole_run() if commit.events]
    first_step = next(
        number
        for number, commit in enumerate(commits)
        if any(isinstance(event, ev.StepStarted) for event in commit.events)
    )
    crashed = commits[: first_step + 1]
    for attempt in (1, 2):
        hangs = ScriptedReply(hold=asyncio.Event().wait)
        session_host = SessionHost([hangs], store=await restore(crashed), tools=Acts().tools)
        session = await session_host.open()
        event_count = sum(len(commit.events) for commit in crashed)
        resumed = await until(session, ev.TurnResumed, after=event_count)
        assert resumed.attempt == attempt
        await until(session, ev.StepStarted, after=event_count)
        assert isinstance(session_host.store, Recording)
        crashed = [*crashed, *session_host.store.commits]
        await session_host.close()
    last = SessionHost([], store=await restore(crashed), tools=Acts().tools)
    session = await last.open()
    await session.wait_rested()
    end = (await last.log(session))[-1]
    assert isinstance(end, ev.TurnFinished)
    assert (end.outcome, end.reason) == ("parked", "no_progress")
    assert last.model.asked == []
    await last.close()


async def test_a_graceful_stop_suspends_the_turn_and_it_goes_on() -> None:
    session_host = SessionHost([ScriptedReply(text="Once", hold=asyncio.Event().wait)])
    session = await session_host.open()
    await session_host.send(session, "Tell")
    await until(session, ev.TextDelta)
    await session_host.close()
    assert "turn.finished" not in await session_host.types(session)
    for _ in range(3):  # however often: a stop is no crash
        stopped = SessionHost([ScriptedReply(hold=asyncio.Event().wait)], store=session_host.store)
        await stopped.open()
        await stopped.close()
    again = SessionHost([ScriptedReply(text="Once upon a time.")], store=session_host.store)
    session = await again.open()
    await session.wait_rested()
    end = (await again.log(session))[-1]
    assert isinstance(end, ev.TurnFinished)
    assert end.outcome == "completed"
    await again.close()
