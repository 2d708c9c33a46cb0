"""Child processes under the warden: real ones, on both loops."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from pathlib import Path

import pytest
import uvloop

from keryx.aio.capture import Capture
from keryx.errors import SpawnError, ToolCancelledError
from keryx.warden import Exit
from tests.aio.warden_setup import (
    PATH,
    STUBBORN_TREE,
    Lines,
    WardenSetup,
    has_ended,
    on_both_loops,
)

# -- starting and ending


@on_both_loops
async def test_a_process_gives_its_output_and_its_exit_code(setup: WardenSetup):
    capture = Capture()
    process = await setup.run("sh", "-c", "echo out; echo err >&2; exit 3", output=capture)
    assert await process.wait() == Exit(code=3, signal=None)
    assert sorted(capture.text().split()) == ["err", "out"]
    assert not process.running
    assert await process.wait() == Exit(code=3, signal=None)


@on_both_loops
async def test_a_process_that_dies_of_a_signal_reports_it(setup: WardenSetup):
    # The warden ignores SIGTERM, and Python SIGPIPE; children must not.
    for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGINT, signal.SIGKILL):
        process = await setup.run("sh", "-c", f"kill -{int(number)} $$; exit 5")
        assert await process.wait() == Exit(None, number)


@on_both_loops
async def test_a_process_leads_a_session_of_its_own(setup: WardenSetup):
    async with await setup.run("sleep", "1000") as process:
        assert os.getsid(process.pid) == process.pid


@on_both_loops
async def test_environment_and_folder_are_exactly_as_given(setup: WardenSetup):
    capture = Capture()
    env = {"A": "1", "B": "two words\nand a line", "C": "ü"}
    process = await setup.warden.spawn(["/usr/bin/env", "-0"], env=env, cwd="/", output=capture)
    await process.wait()
    assert set(capture.text().split("\0")[:-1]) == {f"{key}={env[key]}" for key in env}
    odd, capture = os.fsdecode(b"bytes \xff\xc3 that are no text"), Capture()
    process = await setup.warden.spawn(
        ["/bin/sh", "-c", 'pwd; [ "$0" = "$ODD" ] && echo same', odd],
        env={"ODD": odd},
        cwd="/usr/bin",
        output=capture,
    )
    await process.wait()
    assert capture.text() == "/usr/bin\nsame\n"


@on_both_loops
async def test_a_process_holds_no_descriptor_of_the_host(setup: WardenSetup):
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    capture = Capture()
    async with await setup.run("sleep", "1000", stdin=True):
        process = await setup.run("ls", "/proc/self/fd", output=capture)
        await process.wait()
    os.close(reading)
    os.close(writing)
    assert capture.text().split() == ["0", "1", "2", "3"]


@on_both_loops
async def test_stdin_is_written_whole_and_in_order(setup: WardenSetup):
    capture = Capture(head=1 << 24)
    process = await setup.run("cat", output=capture, stdin=True)
    parts = [bytes([65 + i]) * 1_000_000 for i in range(4)]
    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(process.write(part))
    process.close_stdin()
    assert await process.wait() == Exit(0, None)
    assert capture.text().encode() == b"".join(parts)


@on_both_loops
async def test_writing_to_a_process_that_reads_no_more_is_a_broken_pipe(setup: WardenSetup):
    process = await setup.run("true", stdin=True)
    with pytest.raises(BrokenPipeError):
        await process.write(b"x" * 10_000_000)
    await process.wait()
    with pytest.raises(BrokenPipeError, match="closed"):
        await process.write(b"x")
    other = await setup.run("true")
    with pytest.raises(BrokenPipeError, match="without stdin"):
        await other.write(b"x")
    await other.wait()


def test_a_process_that_cannot_start_says_why_and_what_to_do(tmp_path: Path):
    plain, script, empty = (tmp_path / name for name in ("plain", "script", "empty"))
    plain.write_text("data")
    script.write_text("#!/missing/interpreter\n")
    script.chmod(0o755)
    empty.touch(mode=0o755)
    cases: list[tuple[list[str], str, str]] = [
        (["keryx-missing"], "/", "not found in PATH="),
        (["/missing/program"], "/", "no such file"),
        (["plain"], "/", "permission denied; make a script executable"),
        ([str(plain)], "/", "permission denied; make a script executable"),
        ([str(script)], "/", "interpreter"),
        ([str(empty)], "/", "not a program"),
        (["true"], "/missing", "folder '/missing'"),
        (["true"], str(plain), "Not a directory"),
        (["true"], "relative", "absolute path"),
        ([], "/", "needs a program"),
        (["a\0b"], "/", "null"),
        (["true", "x" * 200_000], "/", "too long; pass long text by stdin"),
        (["true", *["x" * 100_000] * 60], "/", "too long; pass long text by stdin"),
        (["true", "x" * 70_000_000], "/", "too long; pass long text by stdin"),
    ]

    @on_both_loops
    async def refused(setup: WardenSetup) -> None:
        env = {"PATH": f"{PATH}:{tmp_path}"}
        for argv, cwd, text in cases:
            with pytest.raises(SpawnError, match=text):
                await setup.warden.spawn(argv, env=env, cwd=cwd, output=Capture(), stdin=True)
        with pytest.raises(SpawnError, match="no confinement"):
            await setup.warden.spawn(["true"], env={}, cwd="/", policy={"network": False})
        process = await setup.run("true")
        assert await process.wait() == Exit(0, None)

    for factory in (asyncio.new_event_loop, uvloop.new_event_loop):
        refused(factory)


@on_both_loops
async def test_megabytes_of_arguments_arrive(setup: WardenSetup):
    capture = Capture()
    argv = ["sh", "-c", 'echo $#; echo "$*" | wc -c', "-", *["x" * 100_000] * 15]
    process = await setup.run(*argv, output=capture)
    assert await process.wait() == Exit(0, None)
    assert capture.text().split() == ["15", str(15 * 100_001)]


@on_both_loops
async def test_a_hundred_processes_at_once_each_get_their_own_exit(setup: WardenSetup):
    async def one(code: int) -> None:
        capture = Capture()
        process = await setup.run("sh", "-c", f"echo $$; exit {code}", output=capture)
        assert await process.wait() == Exit(code, None)
        assert capture.text() == f"{process.pid}\n"

    async with asyncio.TaskGroup() as group:
        for code in range(100):
            group.create_task(one(code))


# -- ending trees


@on_both_loops
async def test_kill_reaches_every_process_of_a_tree_and_no_other(setup: WardenSetup):
    async with await setup.run("sleep", "1000") as bystander:
        process, pids = await setup.run_tree()
        process.kill()
        assert await process.wait() == Exit(None, signal.SIGKILL)
        assert all(map(has_ended, pids))
        assert setup.marked() == [bystander.pid]


@on_both_loops
async def test_what_outlives_its_main_process_is_killed_before_the_exit_is_told(setup: WardenSetup):
    async with await setup.run("sleep", "1000") as bystander:
        process, pids = await setup.run_tree()
        os.kill(process.pid, signal.SIGKILL)
        assert await process.wait() == Exit(None, signal.SIGKILL)
        assert all(map(has_ended, pids))
        assert setup.marked() == [bystander.pid]


SHEDS_ITS_TAG = """
import os, resource, signal
resource.setrlimit(10, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        signal.pause()
    os._exit(0)
os.wait()
"""


@on_both_loops
async def test_a_child_that_shed_its_tag_ends_with_the_last_order(setup: WardenSetup):
    bystander, lines = await setup.run("sleep", "1000"), Lines()
    process = await setup.run(sys.executable, "-S", "-c", SHEDS_ITS_TAG, output=lines)
    (pid,) = await lines.pids(1)
    bystander.kill()
    await bystander.wait()
    await process.wait()
    assert has_ended(pid)


@on_both_loops
async def test_a_cancelled_scope_terminates_at_once_and_kills_after_the_grace(setup: WardenSetup):
    lines, call = Lines(), setup.scope.child("call")
    tree = STUBBORN_TREE.replace("trap '' TERM", "trap 'echo told' TERM")
    process = await setup.run("sh", "-c", tree, scope=call, output=lines)
    pids = await lines.pids(3)
    call.cancel("interrupt")
    assert await lines.next() == "told"
    assert await process.wait() == Exit(None, signal.SIGKILL)
    assert all(map(has_ended, pids))
    assert not call.holds_killable


@on_both_loops
async def test_a_process_that_cleans_up_within_the_grace_reports_its_own_code(setup: WardenSetup):
    lines, call = Lines(), setup.scope.child("call")
    script = "trap 'echo bye; exit 7' TERM; echo ready; sleep 1000 & wait"
    process = await setup.run("sh", "-c", script, scope=call, output=lines)
    assert await lines.next() == "ready"
    call.cancel("timeout")
    assert await process.wait() == Exit(7, None)
    assert await lines.next() == "bye"


@on_both_loops
async def test_a_scope_forgets_a_process_that_has_ended(setup: WardenSetup):
    call = setup.scope.child("call")
    process = await setup.run("true", scope=call)
    await process.wait()
    assert not call.holds_killable
    process.terminate()
    process.kill()


@pytest.mark.usefixtures("unhurried_exits")
@on_both_loops
async def test_leaving_the_block_ends_the_tree(setup: WardenSetup):
    process, pids = await setup.run_tree()
    async with process:
        assert process.running
    assert not process.running
    assert all(map(has_ended, pids))


@pytest.mark.usefixtures("unhurried_exits")
@on_both_loops
async def test_leaving_the_block_while_cancelled_still_ends_the_tree(setup: WardenSetup):
    process, pids = await setup.run_tree()

    async def use() -> None:
        async with process:
            await process.wait()

    user = asyncio.create_task(use())
    for _ in range(3):
        await asyncio.sleep(0)
        user.cancel()
    with pytest.raises(asyncio.CancelledError):
        await user
    assert all(map(has_ended, pids))


@on_both_loops
async def test_nothing_starts_in_a_scope_that_is_cancelled(setup: WardenSetup):
    call = setup.scope.child("call")
    call.cancel("steer")
    with pytest.raises(ToolCancelledError) as caught:
        await setup.run("sleep", "1000", scope=call)
    assert caught.value.reason == "steer"
    assert setup.warden.pid is None


@on_both_loops
async def test_a_scope_cancelled_during_the_start_leaves_nothing_running(setup: WardenSetup):
    for warmth in ("cold", "warm"):
        call = setup.scope.child(warmth)
        start = asyncio.create_task(setup.run("sleep", "1000", scope=call))
        await asyncio.sleep(0)
        call.cancel("interrupt")
        with pytest.raises(ToolCancelledError):
            await start
        assert setup.marked() == []


@on_both_loops
async def test_a_caller_cancelled_during_the_start_leaves_nothing_running(setup: WardenSetup):
    for argv in (["sleep", "1000"], ["sleep", "1000"], ["keryx-missing"]):
        start = asyncio.create_task(setup.run(*argv, output=Capture(), stdin=True))
        await asyncio.sleep(0)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        assert setup.marked() == []


# -- output


@on_both_loops
async def test_a_gigabyte_of_output_needs_little_memory_and_leaves_the_loop_free(
    setup: WardenSetup,
):
    reads = most = 0
    loop = asyncio.get_running_loop()

    def count(_stream: str, _text: str) -> None:
        nonlocal reads
        reads += 1

    def tick() -> None:
        nonlocal reads, most, ticking
        most, reads = max(most, reads), 0
        ticking = loop.call_soon(tick)

    capture, ticking = Capture(on_data=count), loop.call_soon(tick)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    process = await setup.run("sh", "-c", "yes | head -c 1073741824", output=capture)
    assert await process.wait() == Exit(0, None)
    ticking.cancel()
    assert capture.total == 1 << 30
    assert len(capture.text()) < 100_000
    assert most == 1  # everybody else had a turn between any two reads
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024


@on_both_loops
async def test_a_sink_that_fails_is_reported_and_holds_up_nothing(setup: WardenSetup):
    class Failing:
        def feed(self, stream: str, data: bytes) -> None:
            raise LookupError(stream)

    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _loop, context: reported.append(str(context["message"]))
    )
    process = await setup.run("echo", "x", output=Failing())
    assert await process.wait() == Exit(0, None)
    assert reported == ["a sink failed to take stdout"]
