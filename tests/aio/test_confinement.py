"""Keepers with walls: they are opened, rested, ended and killed like any other."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from keryx.aio.capture import Capture
from keryx.aio.clock import FakeClock
from keryx.aio.scope import Scope
from keryx.errors import ScopeClosedError, SpawnError, ToolCancelledError, WardenLostError
from keryx.sandbox import Limits, Policy
from keryx.warden import Exit, Process, Warden, proctree
from keryx.warden.keepers import LONGEST_IDLE, MOST_IDLE
from keryx.warden.link import Link, Report
from tests.aio.warden_setup import (
    PATH,
    STUBBORN_TREE,
    Lines,
    WardenSetup,
    marked,
    on_both_loops,
    wait_dead,
)

PATIENCE = 40.0


class Confined:
    """A warden, and policies that differ from one another."""

    def __init__(self, base: Path, policy: Policy, clock: FakeClock | None = None) -> None:
        self.base = base
        self.policy = policy
        self.scope = Scope("test") if clock is None else Scope("test", clock=clock)
        self.warden = Warden(self.scope)
        self.env = {"PATH": PATH, "KERYX_TEST_MARK": uuid.uuid4().hex}

    def wire(self, number: int = 0, *, without: tuple[str, ...] = ()) -> dict[str, object]:
        limits = Limits(open_files=1000 + number)
        return msgspec.structs.replace(self.policy, limits=limits, without=without).wire()

    async def run(
        self,
        *argv: str,
        policy: object,
        scope: Scope | None = None,
        output: Capture | Lines | None = None,
    ) -> Process:
        return await self.warden.spawn(
            argv, env=self.env, cwd="/", scope=scope, output=output, policy=policy
        )

    def keepers(self) -> list[int]:
        assert self.warden.pid is not None
        return children(self.warden.pid)

    def all_children(self) -> list[int]:
        """Everything below the keepers."""
        pids, fresh = list[int](), self.keepers()
        while fresh:
            fresh = [kid for pid in fresh for kid in children(pid)]
            pids += fresh
        return pids

    def open_tree(self) -> list[int]:
        """A pidfd for each living process of the keepers and below.

        A process that only starts others, as a subshell does, may end between the listing and
        the opening. It needs no watching: it is dead already.
        """
        pidfds = list[int]()
        for pid in (*self.keepers(), *self.all_children()):
            with contextlib.suppress(ProcessLookupError):
                pidfds.append(os.pidfd_open(pid))
        return pidfds

    async def wait_keepers(self, count: int) -> list[int]:
        """Wait until there are so many. Their end is not reported here, so this polls."""
        async with asyncio.timeout(PATIENCE):
            while len(pids := self.keepers()) != count:  # noqa: ASYNC110 (another process acts)
                await asyncio.sleep(0.01)
        return pids


def children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(kid) for kid in text.split()]


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    (tmp_path / "workspace").mkdir()
    return Policy.build(tmp_path / "workspace", home=tmp_path)


@pytest_asyncio.fixture
async def confined(tmp_path: Path, policy: Policy) -> AsyncIterator[Confined]:
    confined = Confined(tmp_path, policy)
    async with asyncio.timeout(PATIENCE):
        yield confined
    await confined.warden.close()
    assert marked(confined.env) == []
    assert len(confined.scope.deadlines) == 0


WALLS = [(), ("pids",), ("userns",), ("userns", "landlock")]
behind_walls = pytest.mark.parametrize("without", WALLS, ids=str)


@behind_walls
async def test_a_process_gives_its_output_its_exit_and_its_signal(
    confined: Confined, without: tuple[str, ...]
):
    wire, capture = confined.wire(without=without), Capture()
    process = await confined.run("sh", "-c", "echo $$; exit 3", policy=wire, output=capture)
    assert await process.wait() == Exit(3, None)
    assert capture.text() == f"{process.pid}\n"
    process = await confined.run("sh", "-c", "kill -TERM $$", policy=wire)
    assert await process.wait() == Exit(None, signal.SIGTERM)


@behind_walls
async def test_kill_reaches_every_process_of_a_tree_and_no_other(
    confined: Confined, without: tuple[str, ...]
):
    wire, lines, call = confined.wire(without=without), Lines(), confined.scope.child("call")
    async with await confined.run("sleep", "1000", policy=wire):
        tree = await confined.run("sh", "-c", STUBBORN_TREE, policy=wire, scope=call, output=lines)
        await lines.pids(3)
        assert len(confined.all_children()) > 3
        call.cancel("interrupt")
        assert await tree.wait() == Exit(None, signal.SIGKILL)
        assert confined.all_children() == marked(confined.env)
        assert len(confined.all_children()) == 1
    with pytest.raises(ToolCancelledError):
        await confined.run("true", policy=wire, scope=call)
    call.close()


@behind_walls
async def test_a_process_holds_no_descriptor_of_the_host_or_the_keeper(
    confined: Confined, without: tuple[str, ...]
):
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    wire, capture = confined.wire(without=without), Capture()
    async with await confined.run("sleep", "1000", policy=wire, output=Capture()):
        process = await confined.run("ls", "/proc/self/fd", policy=wire, output=capture)
        await process.wait()
    os.close(reading)
    os.close(writing)
    assert capture.text().split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("victim", ["warden", "keeper"])
@behind_walls
async def test_when_warden_or_keeper_die_so_does_all_below(
    confined: Confined, without: tuple[str, ...], victim: str
):
    wire, lines = confined.wire(without=without), Lines()
    process = await confined.run("sh", "-c", STUBBORN_TREE, policy=wire, output=lines)
    await lines.pids(3)
    (keeper,) = await confined.wait_keepers(1)
    pid = confined.warden.pid if victim == "warden" else keeper
    assert pid is not None
    pidfds = confined.open_tree()
    assert len(pidfds) > 3  # the keeper, and the three that have told their pids
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WardenLostError):
        await process.wait()
    for pidfd in pidfds:
        wait_dead(pidfd)
    other = await confined.run("sh", "-c", "exit 6", policy=wire)
    assert await other.wait() == Exit(6, None)


async def test_a_child_cannot_end_its_keeper(confined: Confined):
    lines = Lines()
    script = "kill -KILL 1; kill -STOP 1; kill -TERM -1; echo tried"
    async with await confined.run(
        "sh", "-c", f"trap '' TERM; {script}; sleep 1000", policy=confined.wire(), output=lines
    ):
        while await lines.next() != "tried":
            pass
        process = await confined.run("true", policy=confined.wire())
        assert await process.wait() == Exit(0, None)


async def test_closing_kills_what_still_runs_behind_walls(confined: Confined):
    lines = Lines()
    process = await confined.run("sh", "-c", STUBBORN_TREE, policy=confined.wire(), output=lines)
    await lines.pids(3)
    await confined.warden.close()
    assert marked(confined.env) == []
    with pytest.raises(WardenLostError):
        await process.wait()
    with pytest.raises(ScopeClosedError):
        await confined.warden.confinement(confined.wire())


@pytest.mark.parametrize("policy_of_no_shape", [{"network": False}, {}, [], "x", 3])
async def test_what_is_no_policy_is_refused_and_harms_nothing(
    confined: Confined, policy_of_no_shape: object
):
    bystander = await confined.run("sleep", "1000", policy=None)
    with pytest.raises(SpawnError, match="no confinement"):
        await confined.run("true", policy=policy_of_no_shape)
    with pytest.raises(SpawnError, match="no confinement"):
        await confined.warden.confinement(policy_of_no_shape)
    assert bystander.running
    bystander.kill()
    await bystander.wait()


@on_both_loops
async def test_a_refusal_is_heard_although_orders_were_never_read(setup: WardenSetup):
    for number in range(10):
        with pytest.raises(SpawnError, match="no confinement"):
            await setup.warden.spawn(["true"], env={}, cwd="/", policy={"number": number})


@on_both_loops
async def test_what_was_said_before_a_death_is_heard_and_so_is_the_death(setup: WardenSetup):
    ours, theirs = socket.socketpair()
    heard, ended = list[Report](), asyncio.Event()
    link = Link(asyncio.get_running_loop(), ours, heard.append, ended.set)
    link.send({"op": "never read"}, [])
    body = b'{"op":"started","id":7}'
    theirs.sendall(len(body).to_bytes(4, "big") + body)
    theirs.close()
    await ended.wait()
    assert [(report.op, report.id) for report in heard] == [("started", 7)]


async def test_a_refusal_reaches_all_that_wait_and_the_next_try_is_a_new_one(confined: Confined):
    workspace = confined.policy.workspace
    os.rmdir(workspace)  # noqa: PTH106 (Path would block as well)
    starts = [confined.run("true", policy=confined.wire()) for _ in range(5)]
    ends = await asyncio.gather(*starts, return_exceptions=True)
    assert [type(end) for end in ends] == [SpawnError] * 5
    os.mkdir(workspace)  # noqa: PTH102 (same)
    process = await confined.run("true", policy=confined.wire())
    assert await process.wait() == Exit(0, None)


# -- how many keepers there are


async def test_each_policy_has_one_keeper_and_only_the_last_used_ones_stay(confined: Confined):
    await (await confined.run("true", policy=None)).wait()
    async with await confined.run("sleep", "1000", policy=confined.wire(1000)):
        for number in range(MOST_IDLE + 4):
            for _ in range(2):
                process = await confined.run("true", policy=confined.wire(number))
                assert await process.wait() == Exit(0, None)
        # One that runs something, one without a policy, and those that rest.
        before = await confined.wait_keepers(MOST_IDLE + 2)
        for number in range(4, MOST_IDLE + 4):
            await (await confined.run("true", policy=confined.wire(number))).wait()
        assert confined.keepers() == before
        await (await confined.run("true", policy=confined.wire(0))).wait()
        assert len(set(await confined.wait_keepers(MOST_IDLE + 2)) - set(before)) == 1


async def test_a_keeper_that_has_rested_long_ends(tmp_path: Path, policy: Policy, clock: FakeClock):
    confined = Confined(tmp_path, policy, clock)
    try:
        async with await confined.run("sleep", "1000", policy=confined.wire(1)):
            for number in range(2, 4):
                await (await confined.run("true", policy=confined.wire(number))).wait()
            await confined.warden.confinement(confined.wire(4))
            assert len(confined.keepers()) == 4
            clock.advance(LONGEST_IDLE / 2)
            await (await confined.run("true", policy=confined.wire(2))).wait()
            clock.advance(LONGEST_IDLE / 2 + 1)
            await confined.wait_keepers(2)
            clock.advance(LONGEST_IDLE)
            await confined.wait_keepers(1)
    finally:
        await confined.warden.close()
    assert len(confined.scope.deadlines) == 0


# -- the death of the host

SECOND_HOST = """
import asyncio, json, os, sys
from keryx.aio.scope import Scope
from keryx.warden import Warden

class Sink:
    def feed(self, stream, data):
        os.write(1, data)

async def main():
    warden = Warden(Scope("host"))
    env, script, policy = json.loads(sys.argv[1])
    await warden.spawn(["sh", "-c", script], env=env, cwd="/", output=Sink(), policy=policy)
    os.write(1, b"warden %d\\n" % warden.pid)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    env = {"PATH": PATH, "KERYX_TEST_MARK": uuid.uuid4().hex}
    yield env
    assert marked(env) == []


@behind_walls
def test_when_the_host_is_killed_nothing_survives_behind_walls(
    policy: Policy, env: dict[str, str], without: tuple[str, ...]
):
    wire = msgspec.structs.replace(policy, without=without).wire()
    order = json.dumps([env, STUBBORN_TREE, wire])
    with subprocess.Popen(
        [sys.executable, "-c", SECOND_HOST, order], stdout=subprocess.PIPE
    ) as host:
        try:
            assert host.stdout is not None
            pid_by_name: dict[bytes, int] = {}
            while len(pid_by_name) < 4:
                name, pid = host.stdout.readline().split()
                pid_by_name[name] = int(pid)
            warden = pid_by_name[b"warden"]
            pids = [warden, *proctree.children_by_file(warden), *marked(env)]
            pidfds = [os.pidfd_open(pid) for pid in pids]
        finally:
            host.kill()
        for pidfd in pidfds:
            wait_dead(pidfd)
