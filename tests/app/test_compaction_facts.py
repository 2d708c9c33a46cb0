"""What a summary cannot lose: words of the person, files, the plan, the last turns, the log."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.errors import UserMustActError
from keryx.models.scripted import ScriptedModel
from keryx.testing.modelserver import Call, ModelServer, ReceivedRequest, Reply
from tests.app.compaction_program import script
from tests.app.compaction_sessions import (
    MODELS,
    SummaryScript,
    compacted,
    compacting_session,
    is_summing,
    log_of,
    say,
    texts,
    write,
)
from tests.app.hosts import ROOT, check_log, keryx_beside, result_of

pytestmark = pytest.mark.promise("model.8")

SOAK = os.environ.get("KERYX_SOAK") == "1"
FACTS = [f"fact {number}: the {word} is {number * 37}" for number, word in enumerate("abcdefghij")]
USELESS = "They talked about many things."
WORDY = "I see, and I go on about it. " * 60


def counted(request: ReceivedRequest, reply: Reply) -> Reply:
    """Return the reply with about as many tokens as a provider would count."""
    usage = ev.Usage(input_tokens=len(request.raw) // 4, output_tokens=len(reply.text) // 4)
    return msgspec.structs.replace(reply, usage=usage)


class Counting(SummaryScript):
    def __call__(self, request: ReceivedRequest) -> Reply:
        return counted(request, super().__call__(request))


def configure(home: Path, server: ModelServer, window: int) -> None:
    home.mkdir()
    (home / "config.toml").write_text(
        f'model = "here:small"\n[approvals]\nmode = "never"\n[providers.here]\n'
        f'base_url = "{server.url}"\napi_key = "k"\nwindows = {{ "small" = {window} }}\n'
    )


def steps(request: ReceivedRequest) -> Reply:
    """Write a file and a plan when the person says so; sum up without any fact; talk much."""
    if is_summing(request):
        return Reply(text=USELESS)
    last = request.body["messages"][-1]
    said = str(last["content"])
    if last["role"] == "user" and "write it down" in said:
        item = {"text": "water the roses", "state": "doing"}
        return Reply(
            calls=(
                Call("write_file", {"path": "garden/notes.md", "content": "roses"}),
                Call("todo", {"items": [item]}),
            )
        )
    return counted(request, Reply(text=WORDY))


async def test_ten_facts_survive_three_useless_summaries(tmp_path: Path) -> None:
    home = tmp_path / "home"
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with ModelServer(steps, models=("small",)) as server:
        configure(home, server, window=30_000)
        async with Keryx(home=home, workspace=workspace) as app:
            session = await app.open()
            for number, fact in enumerate(FACTS):
                await say(session, f"{fact}{', write it down' if number == 2 else ''}")
                if number in (3, 6, 9):
                    await session.compact()
            assert len(await compacted(app, session)) == 3
            await say(session, "What do you know?")
            sent = texts(server.asked[-1].body["messages"])
    assert [fact for fact in FACTS if fact not in sent] == []
    assert sent.count(USELESS) == 1
    assert "garden/notes.md" in sent
    assert "water the roses" in sent


async def test_the_last_turn_stays_whole_with_its_calls_and_results(tmp_path: Path) -> None:
    add = Call("add", {"a": 1, "b": 2})
    stage = Counting(
        Reply(text=WORDY),
        Reply(text=WORDY),
        Reply(text="I add.", calls=(add, add)),
        Reply(text="Three, twice."),
    )
    async with compacting_session(tmp_path / "home", stage) as (_, session, server):
        await session.change(model="here:any")  # its window is unknown
        for text in ("one", "two", "Add these"):
            await say(session, text)
        await session.compact()
        await say(session, "And now?")
        roles = [message["role"] for message in stage.last()]
        assert roles == ["system", "user", "user", "assistant", "tool", "tool", "assistant", "user"]
        assert "Three, twice." in texts(stage.last())
        assert server.refused == [], "the server refuses a call without its result"


async def test_a_focus_reaches_the_model_and_the_log(tmp_path: Path) -> None:
    stage = Counting(Reply(text=WORDY), Reply(text=WORDY))
    home = tmp_path / "home"
    async with compacting_session(home, stage, rest='model = "here:small"') as (app, session, _):
        await say(session, "Remember the tea")
        await session.compact("the prices of tea")
        (fact,) = await compacted(app, session)
        assert fact.focus == "the prices of tea"
        system = stage.summed[0].body["messages"][0]["content"]
        assert system.endswith("keep everything that concerns this: the prices of tea")
        await say(session, "Go on")
        words = ("sessions", "compact", session.session_id, "--focus", "the pot")
        code, out, err = await keryx_beside(home, *words)
        assert code == 0, err
        assert "compacted:" in out
        assert (await compacted(app, session))[-1].focus == "the pot"
        with pytest.raises(UserMustActError, match="longer than 2000 characters; shorten it"):
            await session.compact("x" * 2_001)


async def test_many_words_are_cut_in_the_middle_and_the_first_stay(tmp_path: Path) -> None:
    stage = Counting(*(Reply(text=WORDY) for _ in range(40)))
    async with compacting_session(tmp_path / "home", stage) as (app, session, _):
        await session.change(model="here:any")
        for number in range(30):
            await say(session, f"message {number} " + "and more " * 200)
        await session.compact()
        (fact,) = await compacted(app, session)
        said = [re.match(r"message \d+", words.text) for words in fact.verbatim.said]
        numbers = [int(match[0].split()[1]) for match in said if match]
        assert numbers[0] == 0
        assert numbers[1:] == list(range(numbers[1], numbers[-1] + 1)), "the last ones, in order"
        assert fact.verbatim.left_out == numbers[1] - 1 > 0
        assert fact.tokens_after < fact.tokens_before


async def test_a_turn_that_is_undone_takes_its_words_along(tmp_path: Path) -> None:
    stage = Counting(Reply(text=WORDY), Reply(text=WORDY), Reply(text=WORDY))
    async with compacting_session(tmp_path / "home", stage) as (_, session, _):
        await say(session, "keep this")
        turn_id = await say(session, "forget this")
        await session.compact()
        await session.undo(turn_id)
        await say(session, "What did I say?")
        assert "keep this" in texts(stage.last())
        assert "forget this" not in texts(stage.last())


async def test_calls_that_run_meanwhile_keep_their_place(tmp_path: Path) -> None:
    """A summary by hand while a call runs: the call and its result reach the model together."""
    may_end = asyncio.Event()
    running = asyncio.Event()

    @tool(effects=NO_EFFECTS)
    async def wait_for_it() -> str:
        """Wait."""
        running.set()
        await may_end.wait()
        return "waited"

    stage = Counting(
        Reply(text=WORDY),
        Reply(text="I wait.", calls=(Call("wait_for_it", {}),)),
        Reply(text="So."),
    )
    home = tmp_path / "home"
    async with ModelServer(stage, models=MODELS) as server:
        write(home, server)
        async with Keryx(model="here:any", tools=[wait_for_it], workspace=home, home=home) as app:
            session = await app.open()
            await say(session, "Remember the tea")
            turn = await session.send("Wait for it")
            await running.wait()
            await session.compact()
            may_end.set()
            assert (await result_of(turn)).text == "So."
        roles = [message["role"] for message in stage.last()]
        assert roles == ["system", "user", "user", "assistant", "tool"]
        assert USELESS not in texts(stage.last())
        assert "Remember the tea" in texts(stage.last()[1:2])
        assert server.refused == []


@pytest.mark.timeout(3_600 if SOAK else 180)
async def test_a_crash_at_any_line_of_a_compaction_loses_nothing(tmp_path: Path) -> None:
    """At every line with KERYX_SOAK=1, at each tenth one otherwise."""
    total = int(await sum_up(tmp_path / "whole", line=0))
    lines = [*range(1, total, 1 if SOAK else max(1, total // 12)), total]
    outcomes: set[int] = set()
    for first in range(0, len(lines), 2):
        pair = lines[first : first + 2]
        outcomes.update(await asyncio.gather(*(dies_at(tmp_path, line) for line in pair)))
    assert outcomes == {0, 1}, "killed before the summary was durable, and after it"


async def dies_at(folder: Path, line: int) -> int:
    """Kill a process at that line; return how many summaries its session has then."""
    home = folder / f"line {line}"
    assert await sum_up(home, line=line) == f"{-signal.SIGKILL}"
    async with Keryx(model=ScriptedModel(script), tools=[], home=home) as app:
        (row,) = await app.store.sessions()
        session = await app.open(row.session_id)
        await say(session, "still there?")
        log = await log_of(app, session)
        check_log(log)
        said = [event.text for event in log if isinstance(event, ev.MessageAccepted)]
        assert said == [*FACTS[:3], "still there?"]
        before = len(await compacted(app, session))
        await session.compact()
        facts = await compacted(app, session)
        assert len(facts) == before + 1
        assert {words.text for words in facts[-1].verbatim.said} >= set(FACTS[:3])
        return before


async def sum_up(home: Path, *, line: int) -> str:
    """Return what the program printed, or how it ended."""
    async with Keryx(model=ScriptedModel(script), tools=[], home=home) as app:
        session = await app.open()
        for fact in FACTS[:3]:
            await say(session, fact)
    words = ("-m", "tests.app.compaction_program", str(home), session.session_id, str(line))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return out.decode().strip() if process.returncode == 0 else str(process.returncode)
