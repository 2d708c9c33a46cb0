"""Calls from wherever a script can call from: each gets its own answer, and they run together."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from keryx.rpc.incoming_calls import affordable_connections
from tests.guest.guests import run, running
from tests.guest.server import PATIENCE, Server

pytestmark = pytest.mark.promise("000.3")

REPORT = """
from hermes_tools import terminal
import concurrent.futures

def run(i):
    res = terminal(f"echo START-{i}; sleep 0.3; echo END-{i}", timeout=10)
    return i, res.get("output", "").strip()

with concurrent.futures.ThreadPoolExecutor(max_workers=10) as ex:
    results = list(ex.map(run, range(10)))

mismatches = 0
for i, out in results:
    ok = (f"START-{i}" in out) and (f"END-{i}" in out)
    flag = "OK" if ok else "MISMATCH"
    if not ok: mismatches += 1
    print(f"i={i} {flag}: {out!r}")
print(f"{mismatches}")
"""


def test_the_report_s_script_has_no_mismatch(tmp_path: Path, server: Server, address: str) -> None:
    assert run(tmp_path, REPORT, address) == 0
    # How many of them meet in 0.3 s is the machine's affair; that all do, the next test proves.
    assert server.tools.most_running > 1


THREADS = """
import json, threading
from concurrent.futures import ThreadPoolExecutor
from keryx_tools import meet
with ThreadPoolExecutor(COUNT) as pool:
    answers = list(pool.map(lambda tag: meet(tag, COUNT)["tag"], map(str, range(COUNT))))
print(json.dumps(answers))
"""


@pytest.mark.parametrize("count", [10, 200])
def test_threads_call_at_the_same_time(tmp_path: Path, address: str, count: int) -> None:
    answers = run(tmp_path, THREADS.replace("COUNT", str(count)), address)
    assert answers == [str(number) for number in range(count)]


TASKS = """
import asyncio, json
from keryx_tools.aio import meet

async def main():
    return await asyncio.gather(*(meet(str(number), 500) for number in range(500)))

print(json.dumps([answer["tag"] for answer in asyncio.run(main())]))
"""


def test_tasks_share_one_connection_and_call_at_the_same_time(
    tmp_path: Path, server: Server, address: str
) -> None:
    assert run(tmp_path, TASKS, address) == [str(number) for number in range(500)]
    assert server.connections == 1


def test_a_thousand_threads_are_fine(tmp_path: Path, server: Server, address: str) -> None:
    found = run(
        tmp_path,
        """
        import json, threading
        from keryx_tools import echo
        go, right = threading.Event(), []
        def work(tag):
            go.wait()
            right.append(echo(tag)["tag"] == tag)
        threads = [threading.Thread(target=work, args=(str(n),)) for n in range(1000)]
        for thread in threads: thread.start()
        go.set()
        for thread in threads: thread.join()
        print(json.dumps(right))
        """,
        address,
    )
    assert found == [True] * 1000
    assert set(server.tools.ran.values()) == {1}


CROWD = """
import asyncio, json, threading
from keryx_tools import aio, echo
called, right = threading.Barrier(COUNT + 1), []

def work(tag):
    for when in ("first", "second"):
        right.append(echo(f"{when}-{tag}")["tag"] == f"{when}-{tag}")
        called.wait()  # nobody goes on, or ends, before all have got their answers

threads = [threading.Thread(target=work, args=(n,)) for n in range(COUNT)]
for thread in threads: thread.start()
called.wait()
called.wait()
for thread in threads: thread.join()
right.append(asyncio.run(aio.echo("at last"))["tag"] == "at last")
print(json.dumps(right))
"""


def test_threads_that_live_on_leave_their_connections_to_others(
    tmp_path: Path, server: Server, address: str
) -> None:
    count = affordable_connections() + 20
    found = run(tmp_path, CROWD.replace("COUNT", str(count)), address)
    assert found == [True] * (2 * count + 1)
    assert set(server.tools.ran.values()) == {1}


WAITING = """
import asyncio, json, os, socket, sys, threading
from keryx_tools import aio, echo
path = os.environ["KERYX_TOOLS_ADDRESS"].partition(":")[2]
held = []
for _ in range(COUNT):
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].connect(path)
    held[-1].sendall(b"\\0")

async def both():
    loop = asyncio.get_running_loop()
    calls = [aio.echo("task"), loop.run_in_executor(None, echo, "thread")]
    loop.call_later(0.05, lambda: [one.close() for one in held])
    return [answer["tag"] for answer in await asyncio.gather(*calls)]

print(json.dumps(asyncio.run(both())))
"""


def test_who_finds_all_connections_taken_waits_for_one(tmp_path: Path, address: str) -> None:
    code = WAITING.replace("COUNT", str(affordable_connections()))
    assert run(tmp_path, code, address) == ["task", "thread"]


POOLS = """
import json, multiprocessing
from keryx_tools import echo, meet

def together(tag):
    return meet(tag, 4)["tag"]

def alone(number):
    return echo(str(number))["tag"]

if __name__ == "__main__":
    if FIRST:
        assert echo("before")["tag"] == "before"
    context = multiprocessing.get_context("METHOD")
    with context.Pool(4) as pool:
        met = pool.map(together, "abcd", chunksize=1)
        pool.map(echo, [str(n) for n in range(20)])  # the function itself can be pickled
        many = pool.map(alone, range(200))
        pool.close()
        pool.join()
    assert echo("after")["tag"] == "after"
    print(json.dumps([met, many]))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("first", [True, False], ids=["after a first call", "before any call"])
def test_pools_of_processes(tmp_path: Path, address: str, method: str, first: bool) -> None:
    script = POOLS.replace("METHOD", method).replace("FIRST", str(first))
    met, many = run(tmp_path, script, address)
    assert met == ["a", "b", "c", "d"]
    assert many == [str(number) for number in range(200)]


FORKED_IN_MID_CALL = """
import json, os, threading
from keryx_tools import echo, hang, meet
# Another thread is in mid-call while this one forks; the child must not hold its connection.
waiting = threading.Thread(target=meet, args=("thread", 2))
waiting.start()
echo("mine")
child = os.fork()
if child == 0:
    echo("child")
    os._exit(0 if meet("child", 2)["tag"] == "child" else 1)
waiting.join()
print(json.dumps([os.waitpid(child, 0)[1], echo("mine again")["tag"]]))
"""


def test_a_fork_leaves_the_calls_of_other_threads_alone(tmp_path: Path, address: str) -> None:
    assert run(tmp_path, FORKED_IN_MID_CALL, address) == [0, "mine again"]


def test_a_forked_child_holds_no_connection_of_its_parent(
    tmp_path: Path, server: Server, address: str
) -> None:
    found = run(
        tmp_path,
        """
        import asyncio, json, os
        from keryx_tools import aio, echo

        def sockets():
            # /proc names what is behind each descriptor.
            links = []
            for name in os.listdir("/proc/self/fd"):
                try:
                    links.append(os.readlink(f"/proc/self/fd/{name}"))
                except OSError:
                    pass
            return sum(link.startswith("socket:") for link in links)

        async def main():
            before = sockets()
            await aio.echo("a")
            echo("b")
            read, write = os.pipe()
            if os.fork() == 0:
                os.write(write, b"%d" % (sockets() - before))
                os._exit(0)
            os.wait()
            counted = sockets() - before
            assert (await aio.echo("c"))["tag"] == "c" and echo("d")["tag"] == "d"
            return [counted, int(os.read(read, 9))]

        print(json.dumps(asyncio.run(main())))
        """,
        address,
    )
    assert found == [2, 0]
    assert server.connections == 2


def test_processes_that_the_script_starts_just_work(tmp_path: Path, address: str) -> None:
    found = run(
        tmp_path,
        """
        import json, subprocess, sys
        code = "from keryx_tools import echo; print(echo('child')['tag'])"
        before = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
        from keryx_tools import echo
        echo("parent")
        after = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
        print(json.dumps([before.stdout.decode(), after.stdout.decode()]))
        """,
        address,
    )
    assert found == ["child\n", "child\n"]


LOOPS = """
import asyncio, json, os, threading
from keryx_tools import echo
from keryx_tools.aio import echo as aecho, meet

async def some(name):
    answers = await asyncio.gather(*(aecho(f"{name}{n}") for n in range(20)))
    assert [answer["tag"] for answer in answers] == [f"{name}{n}" for n in range(20)]
    return (await meet(name, 2))["tag"]

def descriptors():
    return len(os.listdir("/proc/self/fd"))

asyncio.run(aecho("first"))
before = descriptors()
for number in range(20):
    asyncio.run(aecho("one after the other"))
assert descriptors() == before

together = []
threads = [
    threading.Thread(target=lambda name=name: together.append(asyncio.run(some(name))))
    for name in "ab"
]
for thread in threads: thread.start()
for thread in threads: thread.join()

async def mixed():
    loop = asyncio.get_running_loop()
    blocking = loop.run_in_executor(None, lambda: echo("thread")["tag"])
    return [(await aecho("task"))["tag"], await blocking]

child = os.fork()
if child == 0:
    os._exit(0 if asyncio.run(aecho("child"))["tag"] == "child" else 1)
print(json.dumps([sorted(together), asyncio.run(mixed()), os.waitpid(child, 0)[1]]))
"""


def test_loops_have_a_connection_each_and_take_it_with_them(tmp_path: Path, address: str) -> None:
    assert run(tmp_path, LOOPS, address) == [["a", "b"], ["task", "thread"], 0]


def test_a_thread_takes_its_connection_with_it(tmp_path: Path, address: str) -> None:
    found = run(
        tmp_path,
        """
        import json, os, threading
        from keryx_tools import echo
        echo("main")
        def descriptors():
            return len(os.listdir("/proc/self/fd"))
        counts = [descriptors()]
        for number in range(10):
            thread = threading.Thread(target=echo, args=(str(number),))
            thread.start()
            thread.join()
            counts.append(descriptors())
        print(json.dumps(counts))
        """,
        address,
    )
    assert len(set(found)) == 1


HANDLER = """
import json, signal
from keryx_tools import echo, meet
seen = []
def handler(*_):
    # The main thread waits for a second party; here it comes, from within.
    seen.append(meet("inner", 2)["tag"])
signal.signal(signal.SIGUSR1, handler)
seen.append(meet("outer", 2)["tag"])
print(json.dumps(seen + [echo("on")["tag"]]))
"""


def test_a_signal_handler_may_call_in_the_middle_of_a_call(
    tmp_path: Path, server: Server, address: str
) -> None:
    with running(tmp_path, HANDLER, address) as guest:
        assert server.tools.arrived.get(timeout=PATIENCE) == "outer"
        guest.send_signal(signal.SIGUSR1)
        output, _ = guest.communicate(timeout=PATIENCE)
    assert json.loads(output) == ["inner", "outer", "on"]
