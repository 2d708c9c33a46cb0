"""A script that closes descriptors of others gets an error, and its own files are safe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.guest.script_processes import run
from tests.guest.server import Server

pytestmark = pytest.mark.promise("walls.13")

Run = Callable[[str], Any]

OPENING = """
import gc, json, os, socket, sys, tempfile
from keryx_tools import ToolConnectionError, echo

def close_all():
    os.closerange(3, 100)

def taken():
    "Files, pipes and sockets of the script's own, under all the numbers that are free now."
    files = [open(f"own-{number}", "w+") for number in range(30)]
    pairs = [socket.socketpair() for _ in range(10)]
    return files, [one for pair in pairs for one in pair]

def untouched(files, sockets):
    "Nothing was closed, and nothing was written or read but by the script."
    for number, file in enumerate(files):
        file.write(str(number))
        file.flush()
        file.seek(0)
        assert file.read() == str(number), number
    for ours, theirs in zip(sockets[::2], sockets[1::2]):
        ours.sendall(b"mine")
        assert theirs.recv(100) == b"mine"
    for one in (*files, *sockets):
        one.close()

def refused(call):
    try:
        call()
    except ToolConnectionError as error:
        return [str(error), error.may_have_run]
    return None
"""

CLOSING = (
    OPENING
    + """
os.chdir(tempfile.mkdtemp())
assert echo("before")["tag"] == "before"
close_all()
own = taken()
said = refused(lambda: echo("after"))
gc.collect()
untouched(*own)
print(json.dumps([said, echo("again")["tag"]]))
"""
)


def test_the_call_says_what_was_closed_and_the_next_connects_anew(
    server: Server, address: str, tmp_path: Path
) -> None:
    (text, may_have_run), again = run(tmp_path, CLOSING, address)
    assert "this script has closed its connection, with os.close or os.closerange" in text
    assert "The call did not run." in text
    assert may_have_run is False
    assert again == "again"
    assert dict(server.tools.ran) == {"before": 1, "again": 1}


ASYNC = (
    OPENING
    + """
import asyncio
from keryx_tools import aio
os.chdir(tempfile.mkdtemp())

async def main():
    assert (await aio.echo("before"))["tag"] == "before"
    connection = next(iter(aio._connection._connections.values()))
    number = connection._socket.fileno()
    os.close(number)
    own = taken()
    assert number in {one.fileno() for one in own[0]}
    try:
        await aio.echo("after")
        said = None
    except ToolConnectionError as error:
        said = [str(error), error.may_have_run]
    await asyncio.sleep(0)
    gc.collect()
    untouched(*own)
    return [said, (await aio.echo("again"))["tag"]]

print(json.dumps(asyncio.run(main())))
"""
)


def test_so_it_is_in_asyncio(server: Server, address: str, tmp_path: Path) -> None:
    (text, may_have_run), again = run(tmp_path, ASYNC, address)
    assert "this script has closed its connection" in text
    assert may_have_run is False
    assert again == "again"
    assert dict(server.tools.ran) == {"before": 1, "again": 1}


THREADS = (
    OPENING
    + """
import threading
os.chdir(tempfile.mkdtemp())
ready, closed = threading.Barrier(6), threading.Barrier(6)
said = []

def work(number):
    echo(str(number))
    ready.wait()
    closed.wait()
    said.append(refused(lambda: echo(f"after {number}")))

threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
for thread in threads:
    thread.start()
ready.wait()
close_all()
own = taken()
closed.wait()
for thread in threads:
    thread.join()
gc.collect()
untouched(*own)
print(json.dumps(said))
"""
)


def test_every_thread_is_told_and_none_of_their_ends_closes_a_file(
    address: str, tmp_path: Path
) -> None:
    errors = run(tmp_path, THREADS, address)
    assert len(errors) == 5
    assert all("this script has closed its connection" in text for text, _ in errors)


FORKED = (
    OPENING
    + """
os.chdir(tempfile.mkdtemp())
echo("before")
close_all()
own = taken()
kept = [os.fstat(one.fileno()) for one in (*own[0], *own[1])]
child = os.fork()
if child == 0:
    assert [os.fstat(one.fileno()) for one in (*own[0], *own[1])] == kept
    os._exit(0 if echo("child")["tag"] == "child" else 1)
_, status = os.waitpid(child, 0)
untouched(*own)
print(json.dumps([status, refused(lambda: echo("after"))[1]]))
"""
)


def test_a_forked_child_lets_go_of_nothing_that_is_the_script_s(
    address: str, tmp_path: Path
) -> None:
    assert run(tmp_path, FORKED, address) == [0, False]


@pytest.fixture
def over_descriptors(tmp_path: Path) -> Iterator[Run]:
    with Server(tmp_path / "tools") as server, server.connected() as ours:
        number = ours.fileno()

        def run_(script: str) -> Any:
            return run(tmp_path, script, f"stdio:{number},{number}", descriptors=(number,))

        yield run_


RELAYED = (
    OPENING
    + """
os.chdir(tempfile.mkdtemp())
assert echo("before")["tag"] == "before"
close_all()
own = taken()
first = refused(lambda: echo("after"))
second = refused(lambda: echo("and again", _deadline=5))
gc.collect()
untouched(*own)
print(json.dumps([first, second]))
sys.stdout.flush()
os._exit(0)
"""
)


def test_where_the_host_is_behind_descriptors_the_files_are_safe_too(over_descriptors: Run) -> None:
    """There is no way back to such a host: every further call says so."""
    first, second = over_descriptors(RELAYED)
    assert "this script has closed its connection" in first[0]
    assert second is not None
