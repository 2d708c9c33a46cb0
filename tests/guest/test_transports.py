"""The same calls over every way to the host: a socket, a pair of descriptors, a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.guest.file_server import PARTS, FileServer, remaining_files
from tests.guest.script_processes import PYTHON, environment, run, running, written
from tests.guest.server import PATIENCE, Server, Tools

pytestmark = pytest.mark.promise("000.5")


Run = Callable[[str], Any]


class Host:
    """A host and how scripts are run against it."""

    def __init__(self, tools: Tools, run: Run) -> None:
        self.tools = tools
        self.run = run


def over_descriptors(server: Server, folder: Path) -> Run:
    def run_(script: str) -> Any:
        with server.connected() as ours:
            number = ours.fileno()
            return run(folder, script, f"stdio:{number},{number}", descriptors=(number,))

    return run_


def over_stdin_and_stdout(server: Server, folder: Path) -> Run:
    """What the script prints goes to stderr; its stdin and stdout are the host's."""

    def run_(script: str) -> Any:
        with server.connected() as ours:
            done = subprocess.run(
                [PYTHON, "-m", "keryx_tools", str(written(folder, script))],
                env=environment("stdio:0,1", TMPDIR=str(folder)),
                stdin=ours.fileno(),
                stdout=ours.fileno(),
                stderr=subprocess.PIPE,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stderr.splitlines()[-1])

    return run_


@pytest.fixture(params=["socket", "descriptors", "stdin and stdout", "folder"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    if request.param == "folder":
        with FileServer(tmp_path / "shared") as shared:
            address = f"files:{shared.folder}"
            yield Host(shared.tools, lambda script: run(tmp_path, script, address))
            assert shared.remaining_files() == []
        return
    with Server(tmp_path / "tools") as server:
        ways: dict[str, Run] = {
            "socket": lambda script: run(tmp_path, script, f"unix:{server.path}"),
            "descriptors": over_descriptors(server, tmp_path),
            "stdin and stdout": over_stdin_and_stdout(server, tmp_path),
        }
        yield Host(server.tools, ways[request.param])
    assert not list(tmp_path.glob("keryx-tools-*"))


EVERYBODY = """
import asyncio, json, multiprocessing, os, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
import keryx_tools
from keryx_tools import aio, echo, fail, meet

def own(tag):
    return echo(tag)["tag"] == tag

async def tasks():
    found = await asyncio.gather(*(aio.meet(str(number), 20) for number in range(20)))
    return [one["tag"] for one in found] == [str(number) for number in range(20)]

def main():
    code = "from keryx_tools import echo; assert echo('child')['tag'] == 'child'"
    subprocess.run([sys.executable, "-c", code], check=True)
    tags = [str(number) for number in range(40)]
    right = [own("first")]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        right += pool.map(own, tags)
        pool.close()
        pool.join()
    with ThreadPoolExecutor(10) as pool:
        right += pool.map(lambda tag: meet(tag, 10)["tag"] == tag, tags[:10])
        right += pool.map(own, tags)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        right += pool.map(own, tags)
        pool.close()
        pool.join()
    right.append(asyncio.run(tasks()))
    try:
        fail("not today", "ToolDeniedError")
    except keryx_tools.ToolDeniedError as error:
        right.append(str(error) == "not today")
    print(json.dumps(right))

if __name__ == "__main__":
    main()
"""


def test_every_caller_gets_its_own_answer(host: Host) -> None:
    right = host.run(EVERYBODY)
    assert right == [True] * 133
    assert host.tools.running == 0


GIVEN_UP = """
import asyncio, json
from keryx_tools import ToolTimeoutError, aio, echo, hang

async def main():
    task = asyncio.ensure_future(aio.hang("task"))
    await aio.began("task")
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return (await aio.echo("then"))["tag"]

echo("warm")
try:
    hang("thread", _deadline=1)
except ToolTimeoutError:
    print(json.dumps([echo("then")["tag"], asyncio.run(main())]))
"""


def test_a_call_that_is_given_up_is_cancelled(host: Host) -> None:
    assert host.run(GIVEN_UP) == ["then", "then"]
    assert host.tools.released.get(timeout=PATIENCE) == "thread"
    assert host.tools.released.get(timeout=PATIENCE) == "task"


SIZES = """
import asyncio, json
from keryx_tools import aio, big, measure
async def main():
    up, down = await asyncio.gather(aio.measure("ä" * SIZE), aio.big(SIZE))
    return [up["length"], len(down.text)]
print(json.dumps([measure("y" * SIZE)["length"], len(big(SIZE).text)] + asyncio.run(main())))
"""


@pytest.mark.parametrize("size", [0, 16 * 1024 - 60, 3 * 1024 * 1024])
def test_any_size_goes_through(host: Host, size: int) -> None:
    assert host.run(SIZES.replace("SIZE", str(size))) == [size] * 4


def test_a_hundred_megabytes_go_up_and_down(tmp_path: Path, address: str) -> None:
    script = """
        from keryx_tools import big, measure
        import json
        size = 100 * 1024 * 1024
        print(json.dumps([measure("y" * size)["length"], len(big(size)["output"])]))
    """
    assert run(tmp_path, script, address) == [100 * 1024 * 1024] * 2


# -- descriptors


def test_descriptors_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    script = """
        import json
        from keryx_tools import echo, ToolConnectionError
        try:
            echo("a")
        except ToolConnectionError as error:
            print(json.dumps([str(error), error.may_have_run]))
    """
    text, may_have_run = run(tmp_path, script, "stdio:88,89")
    assert "the descriptors 88,89 are open only in the process that the host started" in text
    assert not may_have_run


def test_a_host_that_hangs_up_on_descriptors_fails_the_calls_and_leaves_nothing(
    tmp_path: Path, server: Server
) -> None:
    script = """
        import json
        from keryx_tools import hang, echo, ToolConnectionError
        said = []
        for call in (hang, echo):
            try:
                call("x")
            except ToolConnectionError as error:
                said.append(error.may_have_run)
        print(json.dumps(said))
    """
    with server.connected() as ours:
        number = ours.fileno()
        os.set_inheritable(number, True)
        with subprocess.Popen(
            [PYTHON, str(written(tmp_path, script))],
            env=environment(f"stdio:{number},{number}", TMPDIR=str(tmp_path)),
            pass_fds=(number,),
            stdout=subprocess.PIPE,
        ) as guest:
            assert server.tools.hung.get(timeout=PATIENCE) == "x"
            server.die()
            output, _ = guest.communicate(timeout=PATIENCE)
    assert json.loads(output) == [True, False]
    assert not list(tmp_path.glob("keryx-tools-*"))


# -- the folder


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[FileServer]:
    with FileServer(tmp_path / "shared") as serving:
        yield serving


def test_names_that_are_taken_are_never_used_again(tmp_path: Path, shared: FileServer) -> None:
    script = """
        import json, os, sys
        from keryx_tools import count
        from keryx_tools._transports import files
        shared = os.environ["KERYX_TOOLS_ADDRESS"].partition(":")[2]
        taken = ["claimed/taken0", "rep/taken1"]
        for name in taken:
            open(os.path.join(shared, name + ".json"), "w").close()
        open(os.path.join(shared, "tmp/taken2"), "w").close()
        names = iter(["taken0", "taken1", "taken2", "free"])
        files.new_name = lambda: next(names)
        answer = count("key")
        assert all(os.path.getsize(os.path.join(shared, name + ".json")) == 0 for name in taken)
        for name in ("claimed/taken0.json", "rep/taken1.json", "tmp/taken2"):
            os.unlink(os.path.join(shared, name))
        print(json.dumps([answer, next(names, "all tried")]))
    """
    assert run(tmp_path, script, f"files:{shared.folder}") == [{"count": 1}, "all tried"]
    assert shared.remaining_files() == []


def test_a_folder_that_nobody_serves_gives_the_call_back_untouched(tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / part).mkdir()
    script = """
        import json
        from keryx_tools import count, ToolConnectionError, ToolTimeoutError
        from keryx_tools._transports import files
        said = []
        try:
            count("a", _deadline=0.05)
        except ToolTimeoutError:
            said.append("late")
        files.DEAD_AFTER = 0.05
        try:
            count("b")
        except ToolConnectionError as error:
            said += [str(error), error.may_have_run]
        print(json.dumps(said))
    """
    output = run(tmp_path, script, f"files:{tmp_path}")
    assert output[0] == "late"
    assert "it has shown no sign of life for 0.05 s). The call did not run." in output[1]
    assert output[2] is False
    assert remaining_files(tmp_path) == []


def claim(folder: Path) -> Path:
    """As a host would, that then dies: take the call that comes."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for path in (folder / "req").glob("*.json"):
            return path.rename(folder / "claimed" / path.name)
    raise AssertionError("no call came")


def test_a_host_that_dies_in_mid_call_leaves_it_unknown(tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / part).mkdir()
    script = """
        import json
        from keryx_tools import hang, ToolConnectionError
        from keryx_tools._transports import files
        files.DEAD_AFTER = 0.5
        try:
            hang("a")
        except ToolConnectionError as error:
            print(json.dumps(error.may_have_run))
    """
    with running(tmp_path, script, f"files:{tmp_path}") as guest:
        claimed = claim(tmp_path)
        output, _ = guest.communicate(timeout=PATIENCE)
    assert json.loads(output) is True
    assert remaining_files(tmp_path) == [f"{claimed.stem}.cancel", claimed.name]


def test_a_host_that_comes_back_does_not_run_a_call_again(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    for part in PARTS:
        (folder / part).mkdir(parents=True)
    script = """
        import json
        from keryx_tools import count, ToolUnknownError
        try:
            count("once")
        except ToolUnknownError as error:
            print(json.dumps(str(error)))
    """
    with running(tmp_path, script, f"files:{folder}") as guest:
        claim(folder)
        with FileServer(folder) as shared:
            output, _ = guest.communicate(timeout=PATIENCE)
            assert shared.tools.ran["once"] == 0
    assert "it is unknown how far it came" in json.loads(output)
    assert remaining_files(folder) == []


def test_an_alarm_takes_a_call_back_from_the_folder(tmp_path: Path, shared: FileServer) -> None:
    script = """
        import signal
        from keryx_tools import echo, hang
        def handler(*_):
            raise OSError("ring")
        signal.signal(signal.SIGUSR1, handler)
        try:
            hang("a")
        except OSError as error:
            print(error, echo("b")["tag"])
    """
    with running(tmp_path, script, f"files:{shared.folder}") as guest:
        assert shared.tools.hung.get(timeout=PATIENCE) == "a"
        guest.send_signal(signal.SIGUSR1)
        assert shared.tools.released.get(timeout=PATIENCE) == "a"
        output, _ = guest.communicate(timeout=PATIENCE)
    assert output == "ring b\n"


def test_a_call_that_cannot_be_written_did_not_run(tmp_path: Path, shared: FileServer) -> None:
    script = """
        import json, resource
        from keryx_tools import count, measure, ToolConnectionError
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # as a file system that is full
        try:
            measure("x" * 5000)
        except ToolConnectionError as error:
            print(json.dumps([error.may_have_run, str(error), count("then")]))
    """
    may_have_run, text, then = run(tmp_path, script, f"files:{shared.folder}")
    assert not may_have_run
    assert "File too large" in text
    assert then == {"count": 1}
    assert shared.remaining_files() == []
