"""`execute_code` over every way to the host: a socket, files, and nothing but stdin and stdout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from keryx import events as ev
from keryx.app import SessionHandle
from tests.sandbox.remote_places import ScriptRunner, runner, value
from tests.sandbox.test_scripts import HANGING, alive, until_hanging
from tests.seeds.test_000_scripts_call_tools import ABANDONED, ALL_KINDS, TEN_THREADS

pytestmark = [pytest.mark.promise("000.5"), pytest.mark.usefixtures("unhurried_exits")]


__all__ = ["runner"]

only = pytest.mark.parametrize


# -- the same on all ways


async def test_ten_threads_each_get_their_own_answer(runner: ScriptRunner) -> None:
    assert await runner.printed(TEN_THREADS) == "wrong: 0/10\n"


async def test_threads_tasks_and_processes_before_and_after_the_first_call(
    runner: ScriptRunner,
) -> None:
    assert await runner.printed(ALL_KINDS) == "right: 128\n"


async def test_a_call_that_its_caller_gave_up_on_poisons_nothing(runner: ScriptRunner) -> None:
    assert await runner.printed(ABANDONED) == "nothing was poisoned\n"


MANY = """
import asyncio, multiprocessing
from concurrent.futures import ThreadPoolExecutor
from keryx_tools import aio, echo, finish

def own(tag):
    return echo(tag)["said"] == tag

async def tasks():
    tags = [f"task{number}" for number in range(200)]
    return [one["said"] for one in await aio.parallel(aio.echo, tags, limit=50)] == tags

def in_threads(tag):
    with ThreadPoolExecutor(10) as pool:
        return all(pool.map(own, [f"{tag}-{number}" for number in range(30)]))

if __name__ == "__main__":
    right = [in_threads("main"), asyncio.run(tasks())]
    for how in ("fork", "spawn"):
        with multiprocessing.get_context(how).Pool(2) as pool:
            right += pool.map(in_threads, [f"{how}{number}" for number in range(4)])
            pool.close()
            pool.join()
    finish(right)
"""


async def test_hundreds_of_calls_of_all_kinds_are_answered_and_summed_up(
    runner: ScriptRunner,
) -> None:
    call = await runner.call(MANY)
    result = value(call)
    assert result["result"] == [True] * 10, result
    assert result["calls"]["echo"] | {"seconds": 0} == {"count": 470, "failures": 0, "seconds": 0}
    assert call.nested is not None
    assert (call.nested.calls, call.nested.completed) == (470, 470)


async def test_output_keeps_its_head_and_its_tail(runner: ScriptRunner) -> None:
    code = """
import subprocess, sys
print("the first line")
for number in range(20_000):
    print(number, "ä" * 20)
subprocess.run(["echo", "from a child"])
print("the last line", file=sys.stderr)
"""
    lines = (await runner.printed(code)).splitlines()
    assert lines[0] == "the first line"
    assert lines[-2:] == ["from a child", "the last line"]
    assert any("bytes left out" in line for line in lines)
    assert len(lines) < 5_000


async def test_a_script_finds_its_arguments_and_an_empty_stdin(runner: ScriptRunner) -> None:
    code = """
import os, sys
print(sys.argv[1:], os.path.basename(sys.argv[0]), __name__, repr(sys.stdin.read()))
print(os.getcwd())
"""
    printed = await runner.printed(code, arguments=["one", "two words"])
    assert printed.splitlines() == [
        "['one', 'two words'] script.py __main__ ''",
        str(runner.workspace),
    ]


@only(
    ("code", "ended"),
    [
        ("import sys; sys.exit(7)", {"exit_code": 7}),
        ("import os; os.kill(os.getpid(), 9)", {"exit_code": None, "signal": 9}),
        ("import os; os.kill(os.getpid(), 15)", {"exit_code": None, "signal": 15}),
    ],
)
async def test_the_exit_is_the_script_s(
    runner: ScriptRunner, code: str, ended: dict[str, int]
) -> None:
    assert await runner.run(code) == {"output": "", **ended}


async def test_a_script_that_fails_says_why(runner: ScriptRunner) -> None:
    result = await runner.run("def wrong():\n    raise ValueError('no such luck')\n\nwrong()")
    assert result["exit_code"] == 1
    assert result["output"].endswith("ValueError: no such luck\n")
    assert 'script.py", line 2, in wrong' in result["output"]
    assert result["output"].count("File ") == 2, "the way it was started is nothing to its reader"


async def test_errors_arrive_with_the_tool_s_own_words(runner: ScriptRunner) -> None:
    code = """
from keryx_tools import ToolTimeoutError, read_file, terminal
try:
    read_file("nothing.txt")
except Exception as error:
    print(type(error).__name__, error)
try:
    terminal("sleep 1000", _deadline=0.2)
except ToolTimeoutError as error:
    print(error)
try:
    read_file("nothing.txt", wrong=1)
except TypeError as error:
    print(error)
"""
    lines = (await runner.printed(code)).splitlines()
    assert lines[0].startswith("ToolFailedError")
    assert "nothing.txt does not exist" in lines[0]
    assert "terminal: no answer within 0.2 s; the call was given up." in lines
    assert "no argument 'wrong'" in lines[-1]


async def test_ten_megabytes_go_up_and_down(runner: ScriptRunner) -> None:
    code = """
from keryx_tools import echo, finish
sent = "0123456789" * 1_000_000
finish([echo(sent)["said"] == sent, len(echo("x", 10_000_000)["said"])])
"""
    assert (await runner.run(code))["result"] == [True, 10_000_000]


WRONG_SECRET = """
import os, subprocess, sys
code = '''
import keryx_tools
try:
    keryx_tools.terminal("touch stolen")
except keryx_tools.ToolError as error:
    print(type(error).__name__, error, flush=True)
'''
for secret in ("guessed", ""):
    environment = {**os.environ, "KERYX_TOOLS_SECRET": secret}
    subprocess.run([sys.executable, "-c", code], env=environment)
from keryx_tools import terminal
print(terminal("echo mine")["output"], end="")
"""


async def test_whoever_does_not_know_the_secret_is_refused(runner: ScriptRunner) -> None:
    refused, again, mine = (await runner.printed(WRONG_SECRET)).splitlines()
    assert mine == "mine"
    for line in (refused, again):
        assert "secret" in line, line
    assert not (runner.workspace / "stolen").exists()


async def test_a_run_has_so_many_calls_and_no_more(runner: ScriptRunner) -> None:
    code = """
from keryx_tools import ToolDeniedError, echo, finish
for number in range(3):
    echo(str(number))
for _ in range(2):
    try:
        echo("too many")
    except ToolDeniedError as error:
        print(error)
finish("and a result")
"""
    result = await runner.run(code, most_calls=3)
    error = "this script has made all of the 3 calls that one run may make"
    assert result["output"].splitlines() == [error, error]
    assert result["result"] == "and a result"
    assert result["calls"]["echo"]["count"] == 3


# -- the end of it


async def test_cancelling_in_mid_call_leaves_nothing(runner: ScriptRunner) -> None:
    async with runner.session(HANGING) as handle:
        turn = await handle.send("Go")
        await until_hanging(handle)
        result = await turn.cancel()
        assert (result.outcome, result.left_over) == ("cancelled", ())
        assert (result.calls[0].outcome, result.calls[0].reason) == ("cancelled", "interrupt")
        assert "hanging" in ev.encode(result.calls[0]).decode(), "what it printed is kept"
        assert alive(handle.session_id) == []
        assert await runner.left_over_files() == []


async def test_a_timeout_leaves_nothing(runner: ScriptRunner) -> None:
    async with runner.session(HANGING, timeout=1.5) as handle:
        call = (await (await handle.send("Go")).result()).calls[0]
        assert (call.outcome, call.reason) == ("cancelled", "timeout")
        assert alive(handle.session_id) == []
        assert await runner.left_over_files() == []


async def test_what_a_script_leaves_running_ends_with_it(runner: ScriptRunner) -> None:
    code = """
import subprocess
subprocess.Popen(["sleep", "1000"], start_new_session=True)
"""
    async with runner.session(code) as handle:
        await (await handle.send("Go")).result()
        assert alive(handle.session_id) == []
        assert await runner.left_over_files() == []


# -- each way


async def test_what_the_place_does_not_give_is_not_used(runner: ScriptRunner) -> None:
    code = """
import os, stat
address = os.environ["KERYX_TOOLS_ADDRESS"]
folder = os.path.dirname(os.path.abspath(__file__))
sockets = [
    name for above, _, names in os.walk(folder) for name in names
    if stat.S_ISSOCK(os.stat(os.path.join(above, name)).st_mode)
]
print(address.partition(":")[0], len(sockets))
"""
    printed = await runner.printed(code)
    # Over stdio the script's own process has one, for what it starts.
    assert (
        printed.split()
        == {
            "socket": ["unix", "1"],
            "files": ["files", "0"],
            "stdio": ["unix", "1"],
        }[runner.way]
    )
    ((argv, env),) = runner.place.started
    variables = {name for name in env if name.startswith("KERYX_TOOLS_")}
    if runner.way == "stdio":
        assert variables == set(), "what leads to the host goes through the pipe"
        assert not any("run-" in word.split("\n")[0] for word in argv)
    else:
        assert len(variables) == 3


@only("runner", ["stdio"], indirect=True)
async def test_a_workspace_cannot_stand_in_for_what_a_script_needs_to_arrive(
    runner: ScriptRunner,
) -> None:
    for name in ("json", "tempfile", "keryx_tools"):
        (runner.workspace / f"{name}.py").write_text("raise SystemExit('not I')")
    assert await runner.printed("import keryx_tools; print('here')") == "here\n"


STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("stubborn", flush=True)
time.sleep(1000)
"""


@only("runner", ["stdio"], indirect=True)
async def test_the_folder_of_a_killed_script_is_removed_by_the_next(runner: ScriptRunner) -> None:
    async with runner.session(STUBBORN, scripts=2) as handle:
        turn = await handle.send("Go")
        await until_said(handle, "stubborn")
        assert (await turn.cancel()).outcome == "cancelled"
        assert alive(handle.session_id) == []
        (name,) = await runner.left_over_files()
        age(await runner.place.temporary() / name)
        turn = await handle.send("Again")
        await until_said(handle, "stubborn")
        assert name not in await runner.left_over_files()
        await turn.cancel()


@only("runner", ["stdio"], indirect=True)
async def test_a_script_that_breaks_its_pipe_hears_why_nobody_answers(runner: ScriptRunner) -> None:
    code = """
import os, stat
from keryx_tools import ToolConnectionError, echo
echo("well")
for name in os.listdir("/proc/self/fd"):
    try:
        if int(name) > 2 and stat.S_ISFIFO(os.fstat(int(name)).st_mode):
            os.write(int(name), b"garbage!")
    except OSError:
        pass
try:
    echo("hello?")
except ToolConnectionError as error:
    print(error)
"""
    assert "sent data that is not a call" in await runner.printed(code)


async def until_said(handle: SessionHandle, word: str) -> None:
    async for event in handle.events():
        if isinstance(event, ev.CallOutput) and word in event.text:
            return


def age(folder: Path) -> None:
    """Make the folder look old."""
    status = folder.stat()
    os.utime(folder, (status.st_atime - 1000, status.st_mtime - 1000))
