"""A workspace, things outside that must stay out of reach, and a warden to try it with."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import socket
import uuid
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import msgspec

from keryx.aio.capture import Capture
from keryx.aio.scope import Scope
from keryx.sandbox import Policy
from keryx.warden import Confinement, Exit, Process, Warden
from tests.sandbox.attempts import script

PATH = "/usr/bin:/bin"
PYTHON = "/usr/bin/python3"
PATIENCE = 40.0  # long enough for any machine; only reached by a test that fails
IPC_CREAT, IPC_PRIVATE_MODE, IPC_RMID = 0o1000, 0o600, 0


class Den:
    """Runs commands under one policy, while it is `opened`. Made where blocking is fine."""

    warden: Warden

    def __init__(self, base: Path) -> None:
        self.base = base
        self.workspace, self.outside, self.readable, self.tmp = (
            base / name for name in ("workspace", "outside", "readable", "tmp")
        )
        for folder in (self.workspace, self.outside, self.readable, self.tmp):
            folder.mkdir()
        (self.outside / "keryx").mkdir()
        for file in (self.outside / "secret", self.outside / "named", self.readable / "file"):
            file.write_text("secret")
        self.policy: Policy | None = Policy.build(
            self.workspace,
            home=self.outside,
            readable=[self.readable],
            hidden=[self.outside / "keryx"],
            tmp=self.tmp,
        )

    def change(self, **changes: object) -> None:
        self.policy = msgspec.structs.replace(self.granted, **changes)

    @property
    def wire(self) -> dict[str, object] | None:
        return None if self.policy is None else self.policy.wire()

    async def confinement(self) -> Confinement:
        return await self.warden.confinement(self.wire)

    @property
    def granted(self) -> Policy:
        assert self.policy is not None
        return self.policy

    async def start_anyway(self, *argv: str) -> Process:
        """Without asking how far it will be confined."""
        return await self.warden.spawn(argv, env={"PATH": PATH}, cwd="/", policy=self.wire)

    async def start(self, *argv: str, output: Capture | None = None) -> Process:
        env = {"PATH": PATH, "TMPDIR": (await self.confinement()).tmp}
        return await self.warden.spawn(
            argv,
            env=env,
            cwd=str(self.workspace),
            output=output,
            policy=self.wire,
        )

    async def run(self, *argv: str) -> tuple[Exit, str]:
        capture = Capture()
        process = await self.start(*argv, output=capture)
        end = await process.wait()
        return end, capture.text()

    async def sh(self, command: str) -> str:
        """What a shell command prints, errors included."""
        return (await self.run("sh", "-c", f"exec 2>&1; {command}"))[1].strip()

    async def escapes(self, attempts: dict[str, str]) -> set[str]:
        """Which of these worked."""
        with outside_world(self.outside) as facts:
            async with (
                await self.warden.spawn(
                    ["/usr/bin/sleep", "1000"], env={"KEY": "x"}, cwd="/"
                ) as victim,
                asyncio.timeout(PATIENCE),
            ):
                facts |= {"victim": victim.pid, "readable": str(self.readable)}
                text = json.dumps(facts)
                _, output = await self.run(PYTHON, "-S", "-c", script(attempts), text)
        return set(json.loads(output))


@contextlib.contextmanager
def outside_world(folder: Path) -> Generator[dict[str, object]]:
    """Programs of the same user that listen; they answer by what the kernel does for them."""
    libc = ctypes.CDLL(None, use_errno=True)
    key = uuid.uuid4().int & 0x7FFFFFFF
    shared = libc.shmget(key, ctypes.c_size_t(4096), IPC_CREAT | IPC_PRIVATE_MODE)
    abstract = uuid.uuid4().hex
    with (
        socket.socket(socket.AF_UNIX) as agent,
        socket.socket(socket.AF_UNIX) as hidden,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        agent.bind(str(folder / "agent"))
        hidden.bind(f"\0{abstract}")
        for listener in (agent, hidden):
            listener.listen()
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        loop = asyncio.get_running_loop()
        loop.add_reader(udp, lambda: udp.sendto(b"answer", udp.recvfrom(100)[1]))
        try:
            yield {
                "outside": str(folder),
                "abstract": abstract,
                "tcp": tcp.getsockname()[1],
                "udp": udp.getsockname()[1],
                "shared": key,
                "patience": PATIENCE / 2,
            }
        finally:
            loop.remove_reader(udp)
            libc.shmctl(shared, IPC_RMID, None)
            (folder / "agent").unlink()


@contextlib.asynccontextmanager
async def opened(den: Den) -> AsyncGenerator[Den]:
    den.warden = Warden(Scope("test"))
    try:
        async with asyncio.timeout(PATIENCE * 2):
            yield den
    finally:
        await den.warden.close()
