"""A call that its caller gave up: it is cancelled, and no later answer goes astray."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.guest.script_processes import run, running
from tests.guest.server import PATIENCE, Server

ALARM = """
import json, signal
from keryx_tools import echo, hang
class Enough(Exception):
    pass
def handler(*_):
    raise RAISED
signal.signal(signal.SIGUSR1, handler)
answers = []
for number in range(5):
    try:
        hang(f"hang {number}")
    except Exception as error:
        answers.append([type(error).__name__, str(error)])
    answers.append(echo(f"echo {number}")["tag"])
print(json.dumps(answers))
"""


@pytest.mark.parametrize("raised", ["Enough", "TimeoutError", "OSError", "ConnectionError"])
def test_an_alarm_ends_a_call_with_its_own_exception_and_poisons_nothing(
    tmp_path: Path, server: Server, address: str, raised: str
) -> None:
    script = ALARM.replace("RAISED", f"{raised}('ring')")
    with running(tmp_path, script, address) as guest:
        for number in range(5):
            assert server.tools.hung.get(timeout=PATIENCE) == f"hang {number}"
            guest.send_signal(signal.SIGUSR1)
            assert server.tools.released.get(timeout=PATIENCE) == f"hang {number}"
        output, _ = guest.communicate(timeout=PATIENCE)
    assert json.loads(output) == [
        answer for number in range(5) for answer in ([raised, "ring"], f"echo {number}")
    ]


def test_ctrl_c_ends_the_script_and_the_host_cancels_its_calls(
    tmp_path: Path, server: Server, address: str
) -> None:
    script = """
        from keryx_tools import hang, parallel
        try:
            parallel(hang, ["a", "b", "c"])
        except KeyboardInterrupt:
            print("interrupted")
    """
    with running(tmp_path, script, address) as guest:
        assert {server.tools.hung.get(timeout=PATIENCE) for _ in range(3)} == {"a", "b", "c"}
        guest.send_signal(signal.SIGINT)
        output, _ = guest.communicate(timeout=PATIENCE)
        assert guest.returncode == 0
    assert output == "interrupted\n"
    assert {server.tools.released.get(timeout=PATIENCE) for _ in range(3)} == {"a", "b", "c"}


def test_a_script_that_is_killed_takes_its_calls_with_it_though_its_child_lives(
    tmp_path: Path, server: Server, address: str
) -> None:
    script = """
        import os, sys, threading
        from keryx_tools import hang
        threading.Thread(target=hang, args=("thread",)).start()
        sys.stdin.readline()
        if os.fork() == 0:
            print("child", flush=True)
            os._exit(len(sys.stdin.readline()))
        hang("main")
    """
    with running(tmp_path, script, address) as guest:
        assert guest.stdin is not None
        assert guest.stdout is not None
        assert server.tools.hung.get(timeout=PATIENCE) == "thread"
        guest.stdin.write("fork\n")
        guest.stdin.flush()
        assert guest.stdout.readline() == "child\n"
        assert server.tools.hung.get(timeout=PATIENCE) == "main"
        guest.kill()
        released = {server.tools.released.get(timeout=PATIENCE) for _ in range(2)}
        assert released == {"thread", "main"}
        guest.stdin.close()  # which ends the child, too
        assert guest.stdout.read() == ""


DEADLINE = """
import asyncio, json
from keryx_tools import echo, hang, aio, ToolTimeoutError

async def main():
    await aio.echo("warm")
    try:
        await aio.hang("task", _deadline=0.5)
    except ToolTimeoutError as error:
        return [str(error), (await aio.echo("later"))["tag"]]

echo("warm")
try:
    hang("thread", _deadline=0.5)
except TimeoutError as error:
    said = [str(error), echo("later")["tag"]]
print(json.dumps([said, asyncio.run(main()), echo("for ever", _deadline=None)["tag"]]))
"""


def test_a_deadline_is_an_exception_and_cancels_the_call(
    tmp_path: Path, server: Server, address: str
) -> None:
    text = "hang: no answer within 0.5 s; the call was given up."
    assert run(tmp_path, DEADLINE, address) == [[text, "later"], [text, "later"], "for ever"]
    assert server.tools.released.get(timeout=PATIENCE) == "thread"
    assert server.tools.released.get(timeout=PATIENCE) == "task"


def test_calls_have_five_minutes_unless_they_say_otherwise(tmp_path: Path, address: str) -> None:
    run(
        tmp_path,
        """
        import inspect
        from keryx_tools import terminal
        grant = terminal.__grant__
        assert inspect.signature(terminal).parameters["_deadline"].default == 300
        assert grant.bind(("ls",), {}).seconds == 300
        assert grant.bind(("ls",), {"_deadline": 7}).seconds == 7
        assert grant.bind(("ls",), {"timeout": 10}).seconds == 300
        # A tool that was given more time of its own gets it, and time to say that it is over.
        assert grant.bind(("ls",), {"timeout": 600}).seconds == 630
        """,
        address,
    )


CANCELLED = """
import asyncio, json
from keryx_tools.aio import echo, hang, parallel

async def main():
    for work in (hang("a"), parallel(hang, ["b", "c"])):
        task = asyncio.ensure_future(work)
        await asyncio.get_running_loop().run_in_executor(None, input)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            print((await echo("later"))["tag"], flush=True)

asyncio.run(main())
"""


def test_cancelling_a_task_cancels_its_calls_and_no_others(
    tmp_path: Path, server: Server, address: str
) -> None:
    with running(tmp_path, CANCELLED, address) as guest:
        assert guest.stdin is not None
        assert guest.stdout is not None
        for keys in ({"a"}, {"b", "c"}):
            assert {server.tools.hung.get(timeout=PATIENCE) for _ in keys} == keys
            guest.stdin.write("cancel\n")
            guest.stdin.flush()
            assert {server.tools.released.get(timeout=PATIENCE) for _ in keys} == keys
            assert guest.stdout.readline() == "later\n"
        assert guest.wait(PATIENCE) == 0
    assert server.connections == 1


def test_a_loop_that_ends_cancels_what_it_had_asked_for(
    tmp_path: Path, server: Server, address: str
) -> None:
    run(
        tmp_path,
        """
        import asyncio
        from keryx_tools.aio import began, hang

        async def main():
            asyncio.ensure_future(hang("left"))
            await began("left")  # on the same connection

        asyncio.run(main())
        """,
        address,
    )
    assert server.tools.released.get(timeout=PATIENCE) == "left"
