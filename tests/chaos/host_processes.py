"""Starts, follows, stops and kills host processes, which the tests call lives.

It talks to the fork server (`tests.chaos.fork_server`) and to the processes that it forks. It does
not know what they do.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).parent.parent.parent
LONGEST_ORDER: Final = 65536


class Orders(msgspec.Struct, kw_only=True, frozen=True):
    """What one life is to do."""

    scenario: str
    where: str
    """The folder of its home and its traces."""
    life: int = 0
    die: tuple[str, int] | None = None
    """The labelled point at which it kills itself, and the how many-th passing of it."""
    epoch: int = 0
    after: int = 0
    """The fact after which it looks."""
    subject: str = ""
    """What the scenario is about: an approval, a command, a session."""

    @property
    def folder(self) -> Path:
        return Path(self.where)


class Wait(msgspec.Struct, frozen=True, tag="wait"):
    """Say how that process ended (`WEXITED`), or that it is stopped."""

    pid: int
    stopped: bool = False


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Fork a life; its line to the test, and a gate perhaps, come along as descriptors."""

    orders: Orders


Order = Start | Wait


class Life:
    """One life of a host."""

    def __init__(self, zygote: Zygote, pid: int, line: socket.socket) -> None:
        self._zygote = zygote
        self._line = line
        self._heard = b""
        self._next = 0
        self._code: int | None = None
        self.pid = pid
        self.said: list[str] = []
        """All that it said so far; a line that its death cut was never said."""

    def hear(self, start: str = "") -> str:
        """Its next line that starts so; those before it are passed over."""
        while True:
            while self._next < len(self.said):
                self._next += 1
                if self.said[self._next - 1].startswith(start):
                    return self.said[self._next - 1]
            assert self._listen(None), f"it ended with {self.end()} and said {self.said}"

    def live(self, seconds: float) -> int:
        """Let it live that long at most, then kill it; its exit code."""
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0 and self._listen(rest):
            pass
        return self.kill()

    def kill(self) -> int:
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)
        return self.end()

    def end(self) -> int:
        """Wait for its end; its exit code."""
        while self._listen(None):
            pass
        if self._code is None:
            self._code = self._zygote.wait(self.pid)
            self._line.close()
        return self._code

    @property
    def ended(self) -> bool:
        """Whether it came to its own end; anything but that or its kill is a failure."""
        assert self._code in (0, -signal.SIGKILL), f"it ended with {self._code}"
        return self._code == 0

    def stop(self) -> None:
        """Freeze it, as a machine that is out of memory would."""
        os.kill(self.pid, signal.SIGSTOP)
        self._zygote.wait(self.pid, stopped=True)

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def words(self, first: str) -> list[list[str]]:
        """What follows that word in each line that it begins."""
        lines = (line.split() for line in self.said)
        return [line[1:] for line in lines if line[0] == first]

    def _listen(self, seconds: float | None) -> bool:
        """Take in what it says next. False: there is nothing more, or not within that time."""
        if self._code is not None or not select.select([self._line], [], [], seconds)[0]:
            return False
        try:
            data = self._line.recv(65536)
        except ConnectionResetError:
            return False
        *lines, self._heard = (self._heard + data).split(b"\n")
        self.said += [line.decode() for line in lines]
        return data != b""


class Zygote:
    """The process that has everything imported and forks a life of a host at each order."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders = ours
        self._lives: list[Life] = []
        with theirs:
            command = [sys.executable, "-m", "tests.chaos.fork_server", str(theirs.fileno())]
            self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])

    def start(
        self,
        scenario: str,
        folder: Path,
        *,
        life: int = 0,
        die: tuple[str, int] | None = None,
        epoch: int = 0,
        after: int = 0,
        subject: str = "",
        gate: int | None = None,
    ) -> Life:
        """Begin a life. Whatever it waits for at its gate begins when that is closed."""
        orders = Orders(
            scenario=scenario,
            where=str(folder),
            life=life,
            die=die,
            epoch=epoch,
            after=after,
            subject=subject,
        )
        ours, theirs = socket.socketpair()
        with theirs:
            passed = [theirs.fileno(), *([] if gate is None else [gate])]
            pid = self._ask(Start(orders), passed)
        started = Life(self, pid, ours)
        self._lives.append(started)
        return started

    def wait(self, pid: int, *, stopped: bool = False) -> int:
        return self._ask(Wait(pid, stopped))

    def kill_all(self) -> None:
        """No life goes on."""
        for life in self._lives:
            life.kill()
        self._lives.clear()

    def close(self) -> None:
        try:
            self.kill_all()
        finally:
            self._orders.close()
            self._process.wait()

    def _ask(self, order: Order, descriptors: list[int] | None = None) -> int:
        socket.send_fds(self._orders, [msgspec.json.encode(order)], descriptors or [])
        answer = self._orders.recv(LONGEST_ORDER)
        assert answer, "the zygote is gone"
        return int(answer)


class Gate:
    """Lives that wait at one gate go on together when it opens."""

    def __init__(self) -> None:
        self.entrance, self._held = os.pipe()

    def open(self) -> None:
        os.close(self._held)
        self._held = -1

    def close(self) -> None:
        if self._held != -1:
            self.open()
        os.close(self.entrance)
