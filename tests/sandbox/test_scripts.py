"""`execute_code` in whole sessions: grants, approvals, cancelling, and nothing left alive."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.messages import Json
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from tests.cli.commands import COMMAND, environment, keryx

pytestmark = pytest.mark.usefixtures("unhurried_exits")

PATIENCE = 40.0


@asynccontextmanager
async def session(tmp_path: Path, code: str, **options: Any) -> AsyncGenerator[SessionHandle]:
    """A session whose model runs this script, and then says that it is done."""
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    arguments = {"code": code, **options.pop("arguments", {})}
    replies = [
        ScriptedReply(calls=[ScriptedCall("execute_code", arguments)]),
        ScriptedReply(text="Done."),
    ]
    model = ScriptedModel(replies)
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, home=tmp_path / "home", workspace=workspace) as app,
    ):
        yield await app.open(**options)


def value(finished: ev.CallFinished) -> dict[str, Any]:
    (part,) = finished.result
    assert isinstance(part, Json)
    return msgspec.json.decode(bytes(part.value))


async def finished(handle: SessionHandle, **options: Any) -> ev.CallFinished:
    turn = await handle.send("Go", **options)
    return (await turn.result()).calls[0]


def alive(session_id: str) -> list[str]:
    """Processes that belong to the session, by the environment that they were given."""
    marker = f"KERYX_SESSION_ID={session_id}".encode()
    processes: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker in (entry / "environ").read_bytes():
                    processes.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
            except OSError:
                continue
    return processes


HANGING = """
import threading
from keryx_tools import terminal
for _ in range(3):
    threading.Thread(target=terminal, args=("echo begun; sleep 1000",)).start()
print("hanging", flush=True)
threading.Event().wait()
"""


async def until_hanging(handle: SessionHandle) -> None:
    """Wait until the script and its three calls have printed that they run."""
    running_calls: set[str] = set()
    async for event in handle.events():
        if isinstance(event, ev.CallOutput):
            running_calls.add(event.call_id)
        if len(running_calls) == 4:
            return


@pytest.mark.parametrize("confinement", ["on", "off"])
async def test_scripts_run_where_all_paths_are_very_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confinement: str
) -> None:
    long = tmp_path / ("long" * 20)
    (long / "home").mkdir(parents=True)
    (long / "home/config.toml").write_text(f'confinement = "{confinement}"\n')
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    code = "from keryx_tools import list_files\nlist_files()\nprint('listed')"
    async with session(long, code) as handle:
        call = await finished(handle)
        assert (call.outcome, value(call)["output"]) == ("completed", "listed\n")


@pytest.mark.promise("000.7")
async def test_cancelling_a_script_ends_its_calls_and_their_processes(tmp_path: Path) -> None:
    async with session(tmp_path, HANGING) as handle:
        turn = await handle.send("Go")
        await until_hanging(handle)
        assert len(alive(handle.session_id)) >= 4
        result = await turn.cancel()
        assert (result.outcome, result.left_over) == ("cancelled", ())
        (call,) = result.calls
        assert (call.outcome, call.reason) == ("cancelled", "interrupt")
        assert "hanging" in ev.encode(call).decode(), "what it printed is kept"
        assert alive(handle.session_id) == []


async def test_a_host_ends_while_a_left_over_removes_files_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = os.rmdir

    def removed_by_both(path: str, *, dir_fd: int | None = None) -> None:
        if path == "vanishing":
            remove(path, dir_fd=dir_fd)  # the other was first
        remove(path, dir_fd=dir_fd)

    code = 'import os; os.makedirs(os.environ["TMPDIR"] + "/vanishing/deeper")'
    async with session(tmp_path, code) as handle:
        assert (await finished(handle)).outcome == "completed"
        monkeypatch.setattr(os, "rmdir", removed_by_both)
    async with session(tmp_path, "print(1)") as handle:
        assert (await finished(handle)).outcome == "completed"


async def test_a_steer_stops_the_script_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with session(tmp_path, HANGING) as handle:
        turn = await handle.send("Go")
        await until_hanging(handle)
        await handle.steer("Never mind")
        result = await turn.result()
        assert (result.outcome, result.text) == ("completed", "Done.")
        assert (result.calls[0].outcome, result.calls[0].reason) == ("cancelled", "steer")
        assert alive(handle.session_id) == []


async def test_a_timeout_ends_it_too(tmp_path: Path) -> None:
    async with session(tmp_path, HANGING, arguments={"timeout": 1.5}) as handle:
        call = await finished(handle)
        assert (call.outcome, call.reason) == ("cancelled", "timeout")
        assert alive(handle.session_id) == []


async def test_a_script_that_ends_leaves_nothing_running(tmp_path: Path) -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)"
    async with session(tmp_path, code) as handle:
        assert value(await finished(handle))["exit_code"] == 0
        assert alive(handle.session_id) == []


async def test_a_grant_is_closed(tmp_path: Path) -> None:
    code = """
import keryx_tools
print(sorted(keryx_tools.__all__)[:3])
try:
    keryx_tools.terminal
except AttributeError as error:
    print("no", error)
"""
    async with session(tmp_path, code, tools=["read_file", "execute_code"]) as handle:
        printed = value(await finished(handle))["output"]
    assert "no" in printed
    assert "terminal" in printed


async def test_a_risky_nested_call_is_asked_about_with_its_parent(tmp_path: Path) -> None:
    code = """
from keryx_tools import terminal
try:
    terminal("rm -rf .git")
except Exception as error:
    print(type(error).__name__, error)
"""
    async with session(tmp_path, code) as handle:
        turn = await handle.send("Go", attended=True)
        approvals: list[ev.ApprovalAsked] = []
        async for event in turn.events():
            if isinstance(event, ev.ApprovalAsked):
                approvals.append(event)
                await handle.answer(event.approval_id, "deny")
        (call,) = (await turn.result()).calls
    assert approvals[0].parent == call.call_id
    assert "ToolDeniedError" in value(call)["output"]


async def test_a_nested_failure_is_an_exception_with_the_tool_s_own_words(tmp_path: Path) -> None:
    code = """
from keryx_tools import read_file
try:
    read_file("nothing.txt")
except Exception as error:
    print(type(error).__name__, error)
"""
    async with session(tmp_path, code) as handle:
        printed = value(await finished(handle))["output"]
    assert "ToolFailedError" in printed
    assert "nothing.txt does not exist" in printed


async def test_scripts_are_confined_like_any_command(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the-secret")
    code = f"""
import os, socket
from keryx_tools import read_file, terminal
for attempt in (
    lambda: open({str(secret)!r}).read(),
    lambda: read_file({str(secret)!r})["text"],
    lambda: terminal("cat {secret}")["output"],
    lambda: socket.create_connection(("127.0.0.1", 9), 2),
    lambda: os.listdir({str(tmp_path / "home")!r}),
):
    try:
        print(attempt())
    except Exception as error:
        print(type(error).__name__)
"""
    async with session(tmp_path, code, approvals="never") as handle:
        call = await finished(handle)
    assert "the-secret" not in ev.encode(call).decode()
    assert "keryx.db" not in ev.encode(call).decode()


async def test_output_is_bounded_and_the_calls_are_summed_up(tmp_path: Path) -> None:
    code = """
from keryx_tools import list_files
for _ in range(1200):
    list_files()
print("x" * 500000)
"""
    async with session(tmp_path, code) as handle:
        turn = await handle.send("Go")
        events = [event async for event in turn.events()]
        (call,) = (await turn.result()).calls
    result = value(call)
    assert result["calls"]["list_files"]["count"] == 1200
    assert len(result["output"]) < 100_000
    assert call.nested is not None
    assert (call.nested.calls, call.nested.completed) == (1200, 1200)
    progress = [e for e in events if isinstance(e, ev.CallProgress) and e.nested is not None]
    assert len(progress) < 1000, "thousands of calls come in bunches"
    done = [e.nested.count for e in progress if e.nested is not None and e.nested.outcome]
    assert sum(done) == 1200


HOLDING = """
import threading
from keryx_tools import terminal
held = open("fifo", "w")
threading.Thread(target=terminal, args=("exec 3>fifo; echo nested >&3; sleep 1000",)).start()
held.write("script\\n")
held.flush()
threading.Event().wait()
"""


@pytest.mark.promise("000.7")
def test_when_the_host_is_killed_nothing_of_the_script_lives_on(tmp_path: Path) -> None:
    """A pipe that the script and its nested call hold ends when both are dead."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    os.mkfifo(workspace / "fifo")
    (tmp_path / "script.py").write_text(HOLDING)
    command = [COMMAND, "exec", str(tmp_path / "script.py"), "--workspace", str(workspace)]
    with subprocess.Popen(command, env=environment(tmp_path / "home")) as host:
        try:
            with (workspace / "fifo").open() as fifo:
                assert {fifo.readline(), fifo.readline()} == {"script\n", "nested\n"}
                host.send_signal(signal.SIGKILL)
                assert fifo.read() == "", "the pipe has ended: nobody is left to hold it"
        finally:
            host.kill()
    # The next host tidies up what was temporary.
    assert keryx(tmp_path / "home", "sessions", "list").returncode == 0


async def test_another_s_socket_tells_nothing_without_its_secret(tmp_path: Path) -> None:
    code = """
import json, os, socket, struct
path = os.environ["KERYX_TOOLS_ADDRESS"].partition(":")[2]

def ask(method, params):
    other = socket.socket(socket.AF_UNIX)
    other.connect(path)
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    other.sendall(struct.pack(">I", len(data)) + data)
    (length,) = struct.unpack(">I", other.recv(4))
    print(json.loads(other.recv(length))["error"]["message"])

ask("call", {"tool": "terminal", "arguments": {"command": "touch stolen"}})
ask("hello", {"secret": "guessed", "version": 1})
"""
    async with session(tmp_path, code) as handle:
        printed = value(await finished(handle))["output"]
    assert printed.splitlines() == [
        "call hello with the run's secret first",
        "the secret is not that of this run",
    ]
    assert not (tmp_path / "workspace" / "stolen").exists()
