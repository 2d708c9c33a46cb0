"""Process-isolated tools: results, output, deaths, and which call uses an idle worker again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from keryx.aio.capture import Capture
from keryx.aio.clock import FakeClock
from keryx.aio.scope import Scope
from keryx.engine.executor import Executor
from keryx.errors import InvalidToolError
from keryx.messages import NO_NEEDS, CallOutcome, Needs, Text
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.tool import Tool
from keryx.ports.tool_context import ToolContext
from keryx.sandbox import Bounds, LocalPlace
from keryx.sandbox.workers import LONGEST_IDLE, MOST_IDLE
from keryx.tools.function import FunctionTool, tool
from tests.engine.host import recorder
from tests.sandbox import process_tools, unloadable_tool
from tests.sandbox.worker_host import WorkerHost

TOOLS: list[Tool] = [
    built for built in vars(process_tools).values() if isinstance(built, FunctionTool)
]
MUCH = 10_000_000


@pytest_asyncio.fixture
async def host(tmp_path: Path) -> AsyncIterator[WorkerHost]:
    built = WorkerHost(tmp_path)
    yield built
    await built.close()


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


# -- what comes back


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("echo", {"text": "über", "times": 2}, "überüber"),
        ("values", {}, '{"list":[1,2.5,null],"text":"über"}'),
        ("parts", {}, "one\ntwo"),
        ("nothing", {}, ""),
        ("half_a_character", {}, "\\ud800"),
    ],
)
async def test_a_call_gives_what_its_tool_returned(
    host: WorkerHost, name: str, arguments: dict[str, Any], text: str
) -> None:
    outcome = await host.one(host.session(*TOOLS), name, **arguments)
    assert (outcome.outcome, outcome.started, outcome.text) == ("completed", True, text)


async def test_a_tool_runs_in_another_process_with_what_was_made_for_it(host: WorkerHost) -> None:
    outcome = await host.one(host.session(*TOOLS), process_tools.surroundings)
    surroundings = msgspec.json.decode(outcome.text)
    assert surroundings["folder"] == str(host.workspace)
    assert {"PATH", "KERYX_TEST_MARKER"} <= set(surroundings["environment"])
    assert not {"HOME", "PYTHONPATH", "VIRTUAL_ENV"} & set(surroundings["environment"])
    assert (surroundings["stdin"], surroundings["token"], surroundings["main"]) == ("", True, True)


async def test_async_tools_find_the_same_loop_again(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    first = await host.one(environment, process_tools.awaited, text="a")
    second = await host.one(environment, process_tools.awaited, text="a")
    assert first.outcome == "completed"
    assert first.text == second.text
    assert first.text.split()[-1] != str(os.getpid())


async def test_a_plain_function_that_was_made_a_tool_elsewhere_is_found(host: WorkerHost) -> None:
    built = tool(isolation="process", name="shown", description="Show.")(process_tools.plain)
    outcome = await host.one(host.session(built), built, number=7)
    assert outcome.text.startswith("number 7 of a plain function in ")
    assert not outcome.text.endswith(f" {os.getpid()}")


async def test_ten_megabytes_go_there_and_back(host: WorkerHost) -> None:
    outcomes: list[CallOutcome] = []

    @tool(container=True)
    async def outer(context: ToolContext) -> None:
        """Call with much, and get it back uncut."""
        outcomes.append(await context.call("echo", {"text": "ü" * (MUCH // 2)}))

    assert (await host.one(host.session(outer, *TOOLS), outer)).outcome == "completed"
    assert outcomes[0].content == (Text("ü" * (MUCH // 2)),)
    outcome = await host.one(host.session(*TOOLS), process_tools.echo, text="xyz" * (MUCH // 3))
    assert outcome.outcome == "completed"
    assert len(outcome.text) < MUCH // 10


# -- what fails

AS_IN_A_THREAD: list[tuple[FunctionTool[..., Any], dict[str, Any]]] = [
    (process_tools.raises, {}),
    (process_tools.unshowable, {}),
]


@pytest.mark.parametrize(("built", "arguments"), AS_IN_A_THREAD, ids=str)
async def test_errors_read_as_they_do_from_a_thread(
    host: WorkerHost, built: FunctionTool[..., Any], arguments: dict[str, Any]
) -> None:
    threaded = tool(isolation="thread", effects=NO_EFFECTS)(built.__wrapped__)
    here = await host.one(host.session(threaded), threaded, **arguments)
    isolated = await host.one(host.session(built), built, **arguments)
    assert (isolated.outcome, isolated.reason, isolated.text) == ("failed", None, here.text)
    assert here.outcome == "failed"


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("fails", {"text": "no such ü"}, "before\n\nno such ü"),
        ("leaves", {}, "SystemExit: 3"),
        ("cancels_itself", {}, "the tool cancelled itself"),
        ("crashes", {}, "before\n\nthe tool's process died: killed by signal 11 (SIGSEGV)"),
        ("exits", {"code": 3}, "before\n\nthe tool's process died: it ended by itself with exit"),
        ("exits", {"code": 0}, "exit code 0"),
        ("killed", {}, "the tool's process died: killed by signal 9 (SIGKILL)"),
        ("told_to_end", {}, "another program sent SIGTERM to the tool's process"),
        ("speaks_nonsense", {}, "its answer could not be read"),
        ("closes_everything", {}, "the tool's process died: it ended by itself with exit code 1"),
    ],
)
async def test_what_goes_wrong_is_said_and_the_next_call_has_another_worker(
    host: WorkerHost, name: str, arguments: dict[str, Any], text: str
) -> None:
    environment = host.session(*TOOLS)
    before = await host.one(environment, process_tools.pid)
    outcome = await host.one(environment, name, **arguments)
    assert (outcome.outcome, outcome.reason) == ("failed", None)
    assert text in outcome.text
    assert host.survivors() == [], "it has ended when its call has"
    after = await host.one(environment, process_tools.pid)
    assert after.outcome == "completed"
    assert after.text != before.text


async def test_a_module_that_cannot_be_imported_there_is_named(host: WorkerHost) -> None:
    outcome = await host.one(host.session(unloadable_tool.unloadable), unloadable_tool.unloadable)
    assert outcome.outcome == "failed"
    assert "cannot be loaded in a process of its own: RuntimeError: only in the" in outcome.text


async def test_a_function_that_is_not_found_there_is_named(
    host: WorkerHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanished() -> None:
        """Not there any more."""

    monkeypatch.setattr(vanished, "__qualname__", "vanished")
    built = tool(isolation="process")(vanished)
    outcome = await host.one(host.session(built), built)
    assert outcome.outcome == "failed"
    assert "has no attribute 'vanished'" in outcome.text


async def test_a_crash_hits_nobody_else(host: WorkerHost, tmp_path: Path) -> None:
    environment = host.session(*TOOLS)
    go = tmp_path / "go"
    waiting = host.start(environment, host.call(process_tools.prints_and_waits, go=str(go)))
    await recorder(environment).until(lambda: "c1" in recorder(environment).texts)
    assert (await host.one(environment, process_tools.crashes)).outcome == "failed"
    await host.bridge.to_thread(go.touch)
    assert [outcome.text for outcome in await waiting.outcomes()] == ["returned"]


async def test_a_lost_warden_is_said_honestly(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    batch = host.start(environment, host.call(process_tools.hang_in_python))
    await recorder(environment).until(
        lambda: process_tools.HANGING in recorder(environment).texts.get("c1", "")
    )
    warden = host.runtime.warden.pid
    assert warden is not None
    os.kill(warden, signal.SIGKILL)
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("unknown", "warden lost")
    assert (await host.one(environment, process_tools.pid)).outcome == "completed"


# -- what is printed


async def test_whatever_prints_is_heard_in_order_and_not_in_the_result(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    outcome = await host.one(environment, process_tools.prints)
    assert outcome.text == "returned"
    assert recorder(environment).texts["c1"].splitlines() == [
        "from print",
        "from stderr",
        "from descriptor 1",
        "from C",
        "from C, without an end of line",
        "from a child",
        "from print, without an end of line",
    ]


async def test_what_c_keeps_in_its_buffers_is_heard_too(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    await host.one(environment, process_tools.prints_late)
    assert recorder(environment).texts["c1"] == "from C, in a buffer\n"


async def test_output_is_streamed_while_the_tool_runs(host: WorkerHost, tmp_path: Path) -> None:
    environment = host.session(*TOOLS)
    go = tmp_path / "go"
    batch = host.start(environment, host.call(process_tools.prints_and_waits, go=str(go)))
    await recorder(environment).until(
        lambda: recorder(environment).texts.get("c1") == "first half, "
    )
    await host.bridge.to_thread(go.touch)
    await batch.outcomes()
    assert recorder(environment).texts["c1"] == "first half, second half\n"


@pytest.mark.parametrize("size", [0, 1, 65_536, 262_144, 262_145, 3_000_000])
async def test_all_that_was_printed_is_here_when_the_call_ends(host: WorkerHost, size: int) -> None:
    environment = host.session(*TOOLS)
    for call_id in ("c1", "c2"):
        await host.one(environment, process_tools.prints_much, size=size)
        assert recorder(environment).texts[call_id] == "\0" * 10 + "x" * size


async def test_a_tool_may_send_its_own_output_elsewhere(host: WorkerHost, tmp_path: Path) -> None:
    environment = host.session(*TOOLS)
    assert (await host.one(environment, process_tools.redirects)).text == "returned"
    assert await host.bridge.to_thread((tmp_path / "elsewhere").read_text) == "in the file\n"
    await host.one(environment, process_tools.prints)
    assert recorder(environment).texts["c2"].startswith("from print\n"), (
        "and the next one prints again"
    )


# -- which worker serves which call


async def test_a_warm_worker_serves_its_session_and_no_other(host: WorkerHost) -> None:
    first = await host.one(host.session(*TOOLS), process_tools.pid)
    again = await host.one(host.session(*TOOLS), process_tools.pid)
    other = await host.one(host.session(*TOOLS, session_id="s2"), process_tools.pid)
    assert first.text == again.text
    assert other.text != first.text
    assert str(os.getpid()) not in {first.text, other.text}


async def test_calls_that_run_at_once_have_a_process_each(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    calls = [host.call(process_tools.pid) for _ in range(3)]
    outcomes = await host.run(environment, *calls)
    assert len({outcome.text for outcome in outcomes}) == 3


@pytest.mark.parametrize("changed", ["environment", "granted", "path"])
async def test_a_worker_that_was_started_otherwise_is_not_used(
    host: WorkerHost, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await host.one(host.session(*TOOLS), process_tools.pid)
    environment = host.session(*TOOLS)
    if changed == "environment":
        environment.env = {**environment.env, "MORE": "1"}
        outcome = await host.one(environment, process_tools.pid)
    elif changed == "path":
        with monkeypatch.context() as patched:
            patched.setattr(sys, "path", [*sys.path, "/nowhere"])
            outcome = await host.one(environment, process_tools.pid)
    else:
        outcome = await run_directly(host, host.scope.child("call"), Needs(network=True))
    assert outcome.text != first.text
    assert (await host.one(host.session(*TOOLS), process_tools.pid)).text == first.text


async def run_directly(host: WorkerHost, scope: Scope, granted: Needs = NO_NEEDS) -> CallOutcome:
    """Run `pid` without an executor."""
    environment = host.session(*TOOLS)
    assert environment.place is not None
    returned = await host.workers().run(
        process_tools.pid.address,
        "{}",
        scope=scope,
        output=Capture(),
        place=environment.place,
        env=environment.env,
        cwd=str(host.workspace),
        granted=granted,
    )
    return CallOutcome("c", "pid", "completed", content=returned.content)


async def test_a_call_that_is_over_has_no_hold_on_its_worker(host: WorkerHost) -> None:
    scope = host.scope.child("call")
    first = await run_directly(host, scope)
    heard = asyncio.Event()
    scope.on_cancel(heard.set)
    scope.cancel("interrupt")
    await heard.wait()
    second = await run_directly(host, host.scope.child("call"))
    assert second.text == first.text


@pytest.mark.parametrize(
    "name",
    [
        "leaves_thread",
        "leaves_child",
        "leaves_orphan",
        "leaves_task",
        "changes_folder",
    ],
)
async def test_a_worker_that_is_not_as_before_is_not_used_again(
    host: WorkerHost, name: str
) -> None:
    environment = host.session(*TOOLS)
    first = await host.one(environment, name)
    assert first.outcome == "completed"
    assert is_gone(int(first.text))
    assert host.survivors() == [], "what it left behind has ended with its call"
    assert (await host.one(environment, process_tools.pid)).text != first.text


async def test_a_tool_that_forks_and_returns_twice_is_answered_once(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    first = await host.one(environment, process_tools.returns_twice)
    assert first.outcome == "completed"
    assert (await host.one(environment, process_tools.pid)).text == first.text


async def test_no_more_than_a_few_are_kept(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    await host.run(environment, *(host.call(process_tools.pid) for _ in range(MOST_IDLE + 2)))
    started = host.log.started
    assert len(started) == MOST_IDLE + 2
    ended = [asyncio.create_task(process.wait()) for process in started]
    await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
    while sum(process.running for process in started) > MOST_IDLE:
        await asyncio.wait(
            [task for task in ended if not task.done()], return_when=asyncio.FIRST_COMPLETED
        )
    await host.run(environment, *(host.call(process_tools.pid) for _ in range(MOST_IDLE)))
    assert len(started) == MOST_IDLE + 2, "the others are warm"
    await host.workers().close()
    await asyncio.wait(ended)


async def test_an_idle_worker_ends_after_a_while(tmp_path: Path, clock: FakeClock) -> None:
    host = WorkerHost(tmp_path, clock)
    environment = host.session(*TOOLS)
    await host.one(environment, process_tools.pid)
    clock.advance(LONGEST_IDLE * 0.9)
    await host.one(environment, process_tools.pid)
    (process,) = host.log.started
    clock.advance(LONGEST_IDLE * 0.9)
    await host.one(environment, process_tools.pid)
    assert len(host.log.started) == 1, "it counts from the last call"
    clock.advance(LONGEST_IDLE * 1.1)
    await process.wait()
    await host.one(environment, process_tools.pid)
    assert len(host.log.started) == 2
    await host.close()


async def test_workers_end_with_their_session(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    await host.one(environment, process_tools.pid)
    await host.workers().close()
    assert host.survivors() == []
    refused = await host.one(environment, process_tools.pid)
    assert (refused.outcome, refused.text) == ("failed", "the workers of this session have ended")


async def test_cancelling_a_session_ends_its_idle_workers(host: WorkerHost) -> None:
    await host.one(host.session(*TOOLS), process_tools.pid)
    (process,) = host.log.started
    (scope,) = [child for child in host.scope.children if child.name == "s1"]
    scope.cancel("shutdown")
    await process.wait()


async def test_slots_for_processes_are_shared(host: WorkerHost) -> None:
    executor = Executor(host.scope, host.bridge, process_slots=1)
    environment, other = host.session(*TOOLS), host.session(*TOOLS, session_id="s2")
    many = [host.call(process_tools.pid) for _ in range(5)]
    batch = executor.start(environment, many, host.scope.child("turn"))
    await recorder(environment).until_noted("starting", "c1")
    late = executor.start(other, [host.call(process_tools.pid)], host.scope.child("turn"))
    await late.outcomes()
    assert sum(step == "starting" for step, _ in recorder(environment).log) <= 2
    assert len({outcome.text for outcome in await batch.outcomes()}) == 1
    await executor.close()


# -- where it may run


async def test_a_confined_worker_finds_its_code_and_nothing_else(
    host: WorkerHost, tmp_path: Path
) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    for folder in (workspace, outside):
        await host.bridge.to_thread(folder.mkdir)
    await host.bridge.to_thread((outside / "secret").write_text, "secret")
    await host.bridge.to_thread((workspace / "open").write_text, "open")
    host.workspace = workspace
    place = LocalPlace(
        host.runtime.warden, host.bridge, Bounds(user_home=outside), workspace=workspace
    )
    environment = host.session(*TOOLS, place=place)
    assert (await host.one(environment, process_tools.reads, path="open")).text == "open"
    hidden = await host.one(environment, process_tools.reads, path=str(outside / "secret"))
    assert hidden.outcome == "failed"
    assert "FileNotFoundError" in hidden.text or "PermissionError" in hidden.text


async def test_a_worker_may_read_what_the_host_imports_from(host: WorkerHost) -> None:
    await host.one(host.session(*TOOLS), process_tools.pid)
    (granted,) = host.log.granted
    assert set(sys.path) <= set(granted.reads)
    assert (granted.network, granted.writes) == (False, ())


async def test_a_session_without_workers_says_so(host: WorkerHost) -> None:
    environment = host.environment(process_tools.pid)
    environment.workers = None
    outcome = await host.one(environment, process_tools.pid)
    assert (outcome.outcome, outcome.started) == ("failed", False)
    assert "needs a process of its own, and this session cannot start one" in outcome.text


def with_context(context: ToolContext) -> None:
    """Want the context."""


def test_a_tool_in_a_process_has_no_context() -> None:
    with pytest.raises(InvalidToolError, match=r"gives no ToolContext.*get_token"):
        tool(isolation="process")(with_context)


def test_the_program_itself_is_not_imported_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tools.plain, "__module__", "__main__")
    # A worker of pytest has no file; a program does.
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "program.py", raising=False)
    with pytest.raises(InvalidToolError, match=r"in the program itself.*move it into a module"):
        tool(isolation="process", description="Do.")(process_tools.plain)
