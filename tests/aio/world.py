"""A warden to test with, on both loops, and ways to see what lives."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from keryx.aio.capture import OutputSink
from keryx.aio.scope import Scope
from keryx.warden import Process, Warden, proctree

PATH = "/usr/bin:/bin"
PATIENCE = 20.0  # long enough for any machine; only reached by a test that fails

# Main process, a child in its own session, and a daemon that shed parent, session and
# environment. All ignore SIGTERM; each prints its pid.
STUBBORN_TREE = """
trap '' TERM
echo main $$
setsid sh -c 'echo session $$; sleep 1000; :' &
(env -i PATH=/usr/bin:/bin setsid sh -c 'echo daemon $$; sleep 1000; :' &)
while :; do sleep 1000 & wait; done
"""


class World:
    """A warden, its scope, and an environment that tells our processes from all others."""

    def __init__(self) -> None:
        self.scope = Scope("test")
        self.warden = Warden(self.scope)
        self.env = {"PATH": PATH, "KERYX_TEST_MARK": uuid.uuid4().hex}

    async def run(
        self,
        *argv: str,
        scope: Scope | None = None,
        output: OutputSink | None = None,
        stdin: bool = False,
    ) -> Process:
        return await self.warden.spawn(
            argv, env=self.env, cwd="/", scope=scope, output=output, stdin=stdin
        )

    async def run_tree(self, scope: Scope | None = None) -> tuple[Process, list[int]]:
        lines = Lines()
        process = await self.run("sh", "-c", STUBBORN_TREE, scope=scope, output=lines)
        return process, await lines.pids(3)

    def marked(self) -> list[int]:
        return marked(self.env)

    @property
    def warden_pid(self) -> int:
        assert self.warden.pid is not None
        return self.warden.pid

    @property
    def keeper_pid(self) -> int:
        # What a keeper that was killed leaves behind is the warden's child too, until it is dead.
        found = proctree.children_by_file(self.warden_pid)
        (pid,) = (pid for pid in found if b"main.py" in _command_line(pid))
        return pid


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""  # it has just ended


class Lines:
    """A sink that hands out lines as they come."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._rest = b""

    def feed(self, stream: str, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._lines.put_nowait(line.decode())

    async def next(self) -> str:
        async with asyncio.timeout(PATIENCE):
            return await self._lines.get()

    async def pids(self, count: int) -> list[int]:
        return [int((await self.next()).split()[-1]) for _ in range(count)]


def on_both_loops(test: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in a world of its own, then prove that nothing of it is left."""

    async def in_world() -> None:
        world = World()
        try:
            async with asyncio.timeout(PATIENCE * 2):
                await test(world)
        finally:
            await world.warden.close()
        for child in world.scope.children:
            child.close()
        assert world.warden.pid is None
        assert len(world.scope.deadlines) == 0
        assert world.marked() == []

    def on_loop(factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
        fds, children = open_fds(), proctree.children_by_file(os.getpid())
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(in_world())
        assert open_fds() == fds
        assert proctree.children_by_file(os.getpid()) == children

    factories = [asyncio.new_event_loop, uvloop.new_event_loop]
    return pytest.mark.parametrize("factory", factories, ids=["asyncio", "uvloop"])(on_loop)


def marked(env: dict[str, str]) -> list[int]:
    """The living processes that carry the mark."""
    wanted = f"KERYX_TEST_MARK={env['KERYX_TEST_MARK']}".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def open_fds() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()}


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def wait_dead(pidfd: int) -> None:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    try:
        assert poll.poll(PATIENCE * 1000), "a process still lives"
    finally:
        os.close(pidfd)
