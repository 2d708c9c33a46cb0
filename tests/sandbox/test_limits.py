"""Bombs and greed: the order ends with a cause, its neighbours and the host go on."""

from __future__ import annotations

import signal

import pytest

from keryx.sandbox import Limits
from keryx.warden import Exit
from tests.sandbox.den import PYTHON, Den

pytestmark = pytest.mark.promise("tools.3")

# All bombs here are finite: should a wall be missing, the machine of the tester survives.
FORK_BOMB = """
import os, signal
for _ in range(9):
    try: os.fork()
    except OSError: pass
signal.pause()
"""
ESCAPING_FORK_BOMB = """
import os, resource, signal
for _ in range(9):
    try:
        if os.fork() == 0:
            os.setsid()
        resource.setrlimit(10, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError): pass
signal.pause()
"""
THREAD_BOMB = """
import signal, threading
for _ in range(300):
    try: threading.Thread(target=threading.Event().wait, daemon=True).start()
    except RuntimeError: pass
signal.pause()
"""
MEMORY_BOMB = """
import signal
held = [bytearray(1 << 24) for _ in range(64)]
signal.pause()
"""
SPREAD_MEMORY_BOMB = """
import os, signal
for _ in range(8):
    if os.fork() == 0:
        held = bytearray(32 << 20)
        signal.pause()
signal.pause()
"""
SHARED_MEMORY = """
import os
held = bytearray(100 << 20)
pids = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        import time
        time.sleep(0.5)
        os._exit(0)
    pids.append(pid)
for pid in pids:
    os.waitpid(pid, 0)
"""
CPU_BOMB = "while True: pass"
SPREAD_CPU_BOMB = """
import os
for _ in range(100):
    pid = os.fork()
    if pid == 0:
        sum(range(3_000_000))
        os._exit(0)
    os.waitpid(pid, 0)
"""
FORKS = "it ran more than 40 processes and threads"
MEMORY = "it used more than 192 MiB of memory"


def limit(den: Den, **limits: int) -> None:
    den.change(limits=Limits(**limits))


async def end_of(den: Den, code: str) -> Exit:
    return (await den.run(PYTHON, "-S", "-c", code))[0]


@pytest.mark.parametrize("without", [(), ("bounds",), ("pids",), ("userns",)])
@pytest.mark.parametrize("code", [FORK_BOMB, THREAD_BOMB])
async def test_a_bomb_of_processes_is_killed(den: Den, code: str, without: tuple[str, ...]):
    limit(den, processes=40)
    den.change(without=without)
    assert await end_of(den, code) == Exit(None, signal.SIGKILL, FORKS)
    assert await end_of(den, "pass") == Exit(0, None)


@pytest.mark.parametrize("without", [(), ("seccomp",)])
async def test_a_bomb_that_hides_where_it_came_from_is_killed(den: Den, without: tuple[str, ...]):
    limit(den, processes=40)
    den.change(without=without)
    end = await end_of(den, ESCAPING_FORK_BOMB)
    assert end.signal == signal.SIGKILL
    assert "more than 40 processes" in end.cause
    assert await end_of(den, "pass") == Exit(0, None)


@pytest.mark.parametrize("without", [(), ("userns",)])
@pytest.mark.parametrize("code", [MEMORY_BOMB, SPREAD_MEMORY_BOMB])
async def test_a_bomb_of_memory_is_killed(den: Den, code: str, without: tuple[str, ...]):
    limit(den, memory=192 << 20)
    den.change(without=without)
    assert await end_of(den, code) == Exit(None, signal.SIGKILL, MEMORY)


async def test_memory_that_processes_share_counts_once(den: Den):
    limit(den, memory=192 << 20)
    assert await end_of(den, SHARED_MEMORY) == Exit(0, None)


async def test_the_order_that_is_to_blame_dies_and_others_live(den: Den):
    limit(den, processes=40, memory=192 << 20)
    async with await den.start("sleep", "1000") as bystander:
        for code, cause in ((FORK_BOMB, FORKS), (MEMORY_BOMB, MEMORY)):
            assert await end_of(den, code) == Exit(None, signal.SIGKILL, cause)
            assert bystander.running


async def test_processor_time_of_one_command_is_bounded(den: Den):
    limit(den, cpu=1)
    end = await end_of(den, CPU_BOMB)
    assert end.cause == "it used more than 1 s of CPU time"
    assert end.signal in (signal.SIGXCPU, signal.SIGKILL)
    assert await end_of(den, SPREAD_CPU_BOMB) == Exit(None, signal.SIGKILL, end.cause)


async def test_the_kernel_bounds_processor_time_of_each_process(den: Den):
    limit(den, cpu=5)
    code = """
import resource
while resource.getrlimit(resource.RLIMIT_CPU)[1] == resource.RLIM_INFINITY: pass
print(resource.getrlimit(resource.RLIMIT_CPU))
"""
    assert (await den.run(PYTHON, "-S", "-c", code))[1] == "(5, 6)\n"


async def test_files_and_their_number_are_bounded(den: Den):
    limit(den, file_size=1 << 20, open_files=32)
    end, _ = await den.run("sh", "-c", "exec head -c 9000000 /dev/zero >large")
    assert end == Exit(None, signal.SIGXFSZ, "it wrote a file of more than 1048576 bytes")
    assert (den.workspace / "large").stat().st_size == 1 << 20
    code = "import os; [os.dup(0) for _ in range(40)]"
    assert "Too many open files" in (await den.run(PYTHON, "-S", "-c", code))[1]
    assert await den.sh("ulimit -c; ulimit -Hc") == "0\n0"


async def test_memory_in_files_is_bounded(den: Den):
    limit(den, memory=64 << 20)
    den.change(tmp=None)
    for folder in ("/dev/shm", "/tmp"):
        text = await den.sh(f"head -c 99000000 /dev/zero >{folder}/large")
        assert "No space left on device" in text


async def test_the_kernel_bounds_processes_as_well(den: Den):
    limit(den, processes=40)
    den.change(without=("bounds",))
    gap = "can start processes faster than they are counted and killed"
    assert (await den.confinement()).gaps == (gap,)
    den.change(without=())
    assert await den.sh("cat /proc/sys/kernel/pid_max") == str(40 + 32 + 301)
