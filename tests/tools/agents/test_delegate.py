"""Child agents: each in a session of its own, cancelled with their parent, resumed with it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.app.host.homes.home import STORE
from keryx.messages import Json, Text, ToolMessage, UserMessage, text_of
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from tests.aio.warden_setup import marked
from tests.app.hosts import PATIENCE, check_log, result_of
from tests.chaos.state import read_logs
from tests.tools.agents.agents_program import CANCELLED, CHILDREN

pytestmark = pytest.mark.promise("kit.4")
USAGE = ev.Usage(input_tokens=10, output_tokens=1)


def said(message: object) -> str:
    assert isinstance(message, UserMessage)
    text = "".join(part.text for part in message.content if isinstance(part, Text))
    return text.splitlines()[-1]  # the workspace stands before it


def delegating(*tasks: dict[str, Any], child: ScriptedReply | None = None) -> ScriptedModel:
    """A parent that delegates these tasks, and children that answer with their task."""

    def script(request: ModelRequest) -> ScriptedReply:
        history = history_of(request)
        if said(history[0]) != "Parent":
            return child or ScriptedReply(text=f"Done: {said(history[0])}", usage=USAGE)
        if isinstance(history[-1], ToolMessage):
            return ScriptedReply(text="All have ended.", usage=USAGE)
        call = ScriptedCall("delegate", {"tasks": list(tasks)})
        return ScriptedReply(calls=(call,), usage=USAGE)

    return ScriptedModel(script)


async def results_of(app: Keryx, session_id: str) -> list[dict[str, Any]]:
    log = await app.store.events(session_id)
    (ended,) = [fact for fact in log if isinstance(fact, ev.CallFinished)]
    (part,) = ended.result
    assert isinstance(part, Json)
    return json.loads(bytes(part.value))["results"]


async def test_each_task_gets_a_session_and_one_result_in_order(tmp_path: Path) -> None:
    model = delegating({"task": "Read the code"}, {"task": "Read the docs", "read_only": True})
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app,
    ):
        session = await app.open()
        turn = await result_of(await session.send("Parent"))
        results = await results_of(app, session.session_id)
        assert [result["reply"] for result in results] == [
            "Done: Read the code",
            "Done: Read the docs",
        ]
        rows = {row.session_id: row for row in await app.store.sessions(parent=session.session_id)}
        assert [rows[result["session"]].title for result in results] == [
            "Read the code",
            "Read the docs",
        ]
        views = [await (await app.open(result["session"])).view() for result in results]
        assert [view.settings.read_only for view in views] == [False, True]
        # Its own two steps, and one of each child.
        assert turn.usage.input_tokens == 40
        listed = [row.session_id for row in await app.store.sessions()]
        assert listed == [session.session_id], "children have no place in the list"
        rows_of_usage = await app.store.usage(None)
        assert sum(row.input_tokens for row in rows_of_usage) == 40, "nothing is counted twice"
        usage = await app.store.usage(session.session_id)
        assert sum(row.input_tokens for row in usage) == 40, "the children are the parent's"
        await app.delete(session.session_id)
        assert await app.store.sessions(parent=None) == []


async def test_a_child_gets_no_tool_that_its_parent_has_not(tmp_path: Path) -> None:
    model = delegating({"task": "Look", "tools": ["list_files"]}, {"task": "Dig", "tools": ["dig"]})
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app,
    ):
        session = await app.open()
        await result_of(await session.send("Parent"))
        first, second = await results_of(app, session.session_id)
        view = await (await app.open(first["session"])).view()
        assert view.settings.tools == ("list_files",)
        assert second["outcome"] == "failed"
        assert "cannot get dig" in second["problem"]


async def test_a_child_that_may_use_no_tool_has_none(tmp_path: Path) -> None:
    model = delegating({"task": "Think", "tools": []})
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app,
    ):
        session = await app.open()
        await result_of(await session.send("Parent"))
        (result,) = await results_of(app, session.session_id)
        view = await (await app.open(result["session"])).view()
        assert view.settings.tools == ()
        assert result["outcome"] == "completed"


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ({"task": "  "}, "the task is empty"),
        ({"folder": "missing"}, "not a folder"),
        ({"folder": "../.."}, "outside"),
        ({"model": "no-such:model"}, "is not configured"),
    ],
)
async def test_an_odd_task_fails_alone_and_says_why(
    tmp_path: Path, task: dict[str, Any], words: str
) -> None:
    model = delegating({"task": "Odd", **task}, {"task": "Fine"})
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=tmp_path / "home", workspace=workspace) as app,
    ):
        session = await app.open()
        await result_of(await session.send("Parent"))
        odd, fine = await results_of(app, session.session_id)
        assert fine["outcome"] == "completed"
        assert odd["outcome"] == "failed"
        assert words in odd["problem"]


@pytest.mark.parametrize(
    ("result", "reply"), [('"hidden"', "hidden"), ("null", ""), ("[1]", "[1]")]
)
async def test_a_hook_may_replace_the_result_of_one_child(
    tmp_path: Path, result: str, reply: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    command = f"""grep -q '"task":"First"' && echo '{{"result": {result}}}' || true"""
    (home / "config.toml").write_text(
        f"[[hooks]]\nevent = 'after_call'\nmatch = 'agent'\ncommand = {json.dumps(command)}\n"
    )
    model = delegating({"task": "First"}, {"task": "Second"})
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=home, workspace=tmp_path) as app,
    ):
        session = await app.open()
        await result_of(await session.send("Parent"))
        first, second = await results_of(app, session.session_id)
        assert first == {"task": "First", "outcome": "completed", "reply": reply}
        assert second["reply"] == "Done: Second"


async def test_a_budget_of_nothing_starts_no_child(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(
            model=delegating({"task": "Spend", "max_tokens": 0}),
            home=tmp_path / "home",
            workspace=tmp_path,
        ) as app,
    ):
        session = await app.open()
        (call,) = (await result_of(await session.send("Parent"))).calls
        assert (call.outcome, call.started) == ("failed", False)
        assert "max_tokens" in text_of(call.result)
        assert len(await app.store.sessions()) == 1


async def test_a_child_over_its_budget_is_stopped_and_says_so(tmp_path: Path) -> None:
    greedy = ScriptedReply(
        calls=(ScriptedCall("list_files", {}),),
        usage=ev.Usage(input_tokens=400, output_tokens=200),
    )
    model = delegating({"task": "Spend", "max_tokens": 1000}, child=greedy)
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app,
    ):
        session = await app.open()
        await result_of(await session.send("Parent"))
        (result,) = await results_of(app, session.session_id)
        assert result["outcome"] == "cancelled"
        assert "1200 tokens (budget: 1000)" in result["problem"]


async def test_children_are_cancelled_with_their_parent(tmp_path: Path) -> None:
    hanging = ScriptedReply(text="I hang", hold=asyncio.Event().wait)
    model = delegating({"task": "One"}, {"task": "Two"}, child=hanging)
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app,
    ):
        session = await app.open()
        turn = await session.send("Parent")
        started = 0
        async for event in turn.events():
            if isinstance(event, ev.CallProgress) and event.nested is not None:
                started += 1
            if started == 2:
                break
        children = await app.store.sessions(parent=session.session_id)
        while len(children) < 2 or any(row.state != "running" for row in children):
            children = await app.store.sessions(parent=session.session_id)
        await turn.cancel()
        assert (await turn.result()).outcome == "cancelled"
        for row in children:
            child = await app.open(row.session_id)
            async for event in child.events():
                if isinstance(event, ev.TurnFinished):
                    assert event.outcome == "cancelled"
                    break


@pytest.mark.promise("kit.9")
async def test_what_a_child_had_answered_is_kept_when_the_others_are_cancelled(
    tmp_path: Path,
) -> None:
    forever = asyncio.Event()

    def script(request: ModelRequest) -> ScriptedReply:
        history = history_of(request)
        task = said(history[0])
        if task == "Parent":
            tasks = [{"task": "One"}, {"task": "Two"}]
            return ScriptedReply(calls=(ScriptedCall("delegate", {"tasks": tasks}),))
        return ScriptedReply(text=f"Done: {task}", hold=None if task == "One" else forever.wait)

    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=ScriptedModel(script), home=tmp_path / "home", workspace=tmp_path) as app,
    ):
        session = await app.open()
        turn = await session.send("Parent")
        async for event in turn.events():
            if isinstance(event, ev.CallOutput) and "Done: One" in event.text:
                break
        await turn.cancel()
        (call,) = (await turn.result()).calls
        assert (call.outcome, call.reason) == ("cancelled", "interrupt")
        assert "One (completed): Done: One" in text_of(call.result)
        assert "Two" not in text_of(call.result)


async def test_agents_are_nested_only_so_deep(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> ScriptedReply:
        history = history_of(request)
        if isinstance(history[-1], ToolMessage):
            return ScriptedReply(text=text_of(history[-1].content))
        return ScriptedReply(calls=(ScriptedCall("delegate", {"tasks": [{"task": "Deeper"}]}),))

    model = ScriptedModel(script)
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app,
    ):
        session = await app.open()
        turn = await result_of(await session.send("Go"))
        assert "levels deep already" in turn.text
        assert len(await app.store.sessions(parent=None)) == 4


@pytest.mark.promise("kit.11")
def test_twenty_children_survive_the_death_of_their_host(tmp_path: Path) -> None:
    home, traces = tmp_path / "home", tmp_path / "workspace" / "traces"
    traces.parent.mkdir()
    marker = {**os.environ, "KERYX_TEST_MARK": uuid.uuid4().hex}
    program = [sys.executable, "-m", "tests.tools.agents.agents_program", str(home), str(traces)]

    def live(life: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*program, life], stdout=subprocess.PIPE, text=True, env=marker, start_new_session=True
        )

    first = live("first")
    assert first.stdout is not None
    assert first.stdout.readline() == "waiting\n"
    before = {row.session_id: log for row, log in run_loop(read_logs(home / STORE))}
    first.send_signal(signal.SIGKILL)
    first.wait(PATIENCE)
    first.stdout.close()
    second = live("second")
    output, _ = second.communicate(timeout=PATIENCE)
    assert output == "result completed All children have ended.\n"
    assert second.returncode == 0
    assert marked({"KERYX_TEST_MARK": marker["KERYX_TEST_MARK"]}) == [], "a process is left"

    logs = run_loop(read_logs(home / STORE))
    assert len(logs) == 1 + CHILDREN
    for row, log in logs:
        check_log(log)
        finished = [fact for fact in before[row.session_id] if isinstance(fact, ev.CallFinished)]
        assert [fact for fact in log if isinstance(fact, ev.CallFinished)][: len(finished)] == (
            finished
        ), "a finished call stays finished"
    lines = traces.read_text().splitlines()
    assert Counter(lines) == Counter(f"Child {number}" for number in range(CHILDREN))

    (parent,) = [log for row, log in logs if row.parent is None]
    (ended,) = [fact for fact in parent if isinstance(fact, ev.CallFinished)]
    (part,) = ended.result
    assert isinstance(part, Json)
    results = json.loads(bytes(part.value))["results"]
    outcomes = [result["outcome"] for result in results]
    assert outcomes == ["cancelled"] * CANCELLED + ["completed"] * (CHILDREN - CANCELLED)
    assert results[CANCELLED]["reply"] == "Steered: that is enough"
    spent = [fact for fact in parent if isinstance(fact, ev.UsageRecorded)]
    assert len({fact.call_id for fact in spent}) == len(spent), "no child is counted twice"
