"""When warden, keeper or host die; and what the warden is made of."""

from __future__ import annotations

import ast
import ctypes
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from keryx.errors import ScopeClosedError, WardenLostError
from keryx.warden import Exit, channel, launch, main, proctree
from keryx.warden.confinement import (
    confine,
    gaps,
    kernel,
    landlock,
    limits,
    namespaces,
    plan,
    root,
    seccomp,
    watch,
)
from tests.aio.world import (
    PATH,
    STUBBORN_TREE,
    World,
    gone,
    marked,
    on_both_loops,
    wait_dead,
)

pytestmark = pytest.mark.promise("house.2")

# -- the death of those above


async def survive(world: World, victim_of: Callable[[World], int]) -> None:
    for _ in range(3):
        process, pids = await world.run_tree()
        victim = victim_of(world)
        pidfds = [os.pidfd_open(pid) for pid in (*pids, victim)]
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(WardenLostError):
            await process.wait()
        assert not process.running
        other = await world.run("sh", "-c", "exit 6")
        assert await other.wait() == Exit(6, None)
        assert victim_of(world) != victim
        for pidfd in pidfds:
            wait_dead(pidfd)


@on_both_loops
async def test_when_the_warden_dies_so_does_all_below_and_a_new_one_starts(world: World):
    await survive(world, lambda world: world.warden_pid)


PIDFD_GETFD = 438


def copies_of_sockets(pid: int) -> list[int]:
    """The sockets of another process, held open here too: their ends are not seen when it dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    found: list[int] = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        if entry.readlink().name.startswith("socket:"):
            copy = libc.syscall(PIDFD_GETFD, pidfd, int(entry.name), 0)
            assert copy >= 0, os.strerror(ctypes.get_errno())
            found.append(copy)
    os.close(pidfd)
    return found


@on_both_loops
async def test_a_keeper_that_outlives_its_warden_tells_the_host_before_the_wardens_end_is_seen(
    world: World,
):
    # The kernel closes what a dead process held one after the other, and may pause in between.
    process, _ = await world.run_tree()
    held = copies_of_sockets(world.warden_pid)
    os.kill(world.warden_pid, signal.SIGKILL)
    with pytest.raises(WardenLostError):
        await process.wait()
    other = await world.run("sh", "-c", "exit 6")
    assert await other.wait() == Exit(6, None)
    for copy in held:
        os.close(copy)


@on_both_loops
async def test_when_a_keeper_dies_so_does_all_below_and_a_new_one_starts(world: World):
    await survive(world, lambda world: world.keeper_pid)


@on_both_loops
async def test_warden_and_keeper_ignore_what_ends_other_programs(world: World):
    await (await world.run("true")).wait()
    pids = [world.warden_pid, world.keeper_pid]
    for pid in pids:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            os.kill(pid, number)
    await (await world.run("true")).wait()
    assert pids == [world.warden_pid, world.keeper_pid]
    assert os.getsid(pids[0]) == pids[0]


@on_both_loops
async def test_closing_kills_what_still_runs(world: World):
    process, pids = await world.run_tree()
    await world.warden.close()
    assert all(map(gone, pids))
    with pytest.raises(WardenLostError):
        await process.wait()
    with pytest.raises(ScopeClosedError):
        await world.run("true")


@on_both_loops
async def test_closing_a_warden_that_does_not_answer_still_ends_everything(world: World):
    _, pids = await world.run_tree()
    os.kill(world.warden_pid, signal.SIGSTOP)
    await world.warden.close()
    assert all(map(gone, pids))


SECOND_HOST = """
import asyncio, json, os, sys
from keryx.aio.scope import Scope
from keryx.warden import Warden

class Sink:
    def feed(self, stream, data):
        os.write(1, data)

async def main():
    warden = Warden(Scope("host"))
    env, script, fork = json.loads(sys.argv[1])
    await warden.spawn(["sh", "-c", script], env=env, cwd="/", output=Sink())
    os.write(1, b"warden %d\\n" % warden.pid)
    if fork and os.fork() == 0:
        os.write(1, b"fork %d\\n" % os.getpid())
        os.read(0, 1)
        os._exit(0)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("fork", [False, True], ids=["alone", "its sockets held by a fork"])
def test_when_the_host_is_killed_nothing_survives(fork: bool):
    env = {"PATH": PATH, "KERYX_TEST_MARK": uuid.uuid4().hex}
    order = json.dumps([env, STUBBORN_TREE, fork])
    # Leaving the block closes stdin, which ends the fork, and waits for the host.
    with subprocess.Popen(
        [sys.executable, "-c", SECOND_HOST, order], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as host:
        try:
            assert host.stdout is not None
            found: dict[bytes, int] = {}
            while len(found) < 4 + fork:
                line = host.stdout.readline()
                assert line, "the second host has ended on its own; its stderr says why"
                name, pid = line.split()
                found[name] = int(pid)
            found.pop(b"fork", None)
            pids = [*found.values(), *proctree.children_by_file(found[b"warden"])]
            pidfds = [os.pidfd_open(pid) for pid in pids]
        finally:
            host.kill()
        for pidfd in pidfds:
            wait_dead(pidfd)
        assert marked(env) == []


# -- the process table, and what the warden is made of


@on_both_loops
async def test_both_ways_to_read_the_process_table_agree(world: World):
    process, _ = await world.run_tree()
    async with process:
        for pid in (world.warden_pid, world.keeper_pid):
            scanned = proctree.children_by_scan()(pid)
            assert sorted(scanned) == sorted(proctree.children_by_file(pid))
        assert proctree.parent_of(process.pid) == world.keeper_pid
        assert proctree.descends(process.pid)


def test_only_a_descendant_is_struck():
    assert not proctree.descends(os.getppid())
    assert not proctree.strike(os.getppid(), signal.SIGCONT)


WALLS = [confine, gaps, kernel, landlock, limits, namespaces, plan, root, seccomp, watch]
MODULES = [main, channel, launch, proctree, *WALLS]
NAMES = {module.__name__.rpartition(".")[2] for module in MODULES}


@pytest.mark.parametrize("module", MODULES)
def test_the_warden_is_made_of_the_standard_library_alone(module: ModuleType):
    tree = ast.parse(Path(str(module.__file__)).read_text(), feature_version=(3, 8))
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            imported.add(str(node.module).partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            imported |= {alias.name for alias in node.names} - NAMES
    assert imported <= sys.stdlib_module_names
