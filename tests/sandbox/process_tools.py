"""Process-isolated tools for tests: workers import this module by its name."""

# ruff: noqa: T201 (what a tool prints is its output)

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import keryx
from keryx.errors import ToolFailedError
from keryx.messages import Text
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.tool import Complete
from keryx.tools.function import tool

process = tool(isolation="process", effects=NO_EFFECTS)

HANGING = "hanging"
FOREVER = 1000.0

# -- that return


@process
def pid() -> int:
    """Tell in which process this runs."""
    return os.getpid()


@process
def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    return text * times


@process
def values() -> dict[str, Any]:
    """Return what JSON has."""
    return {"list": [1, 2.5, None], "text": "über"}


@process
def parts() -> tuple[Text, Text]:
    """Return content as it is shown."""
    return Text("one"), Text("two")


@process
def nothing() -> None:
    """Return nothing."""


@process
async def awaited(text: str) -> str:
    """Return from a loop, which is the same for all calls."""
    await asyncio.sleep(0)
    return f"{text} {id(asyncio.get_running_loop())} {os.getpid()}"


@process
def surroundings() -> dict[str, Any]:
    """Tell what the process was given."""
    return {
        "folder": str(Path.cwd()),
        "environment": sorted(os.environ),
        "stdin": sys.stdin.read(),
        "token": keryx.get_token() is not None,
        "main": threading.current_thread() is threading.main_thread(),
    }


def plain(number: int) -> str:
    return f"number {number} of a plain function in {os.getpid()}"


# -- that print


@process
def prints() -> str:
    """Print in every way there is."""
    print("from print")
    print("from stderr", file=sys.stderr)
    os.write(1, b"from descriptor 1\n")
    ctypes.CDLL(None).puts(b"from C")
    ctypes.CDLL(None).printf(b"from C, without an end of line")
    subprocess.run(["/bin/echo", "\nfrom a child"], check=True)
    print("from print, without an end of line", end="")
    return "returned"


@process
def prints_late() -> None:
    """Print into a buffer of C."""
    libc = ctypes.CDLL(None)
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 0, ctypes.c_size_t(4096))
    libc.puts(b"from C, in a buffer")


@process
def prints_and_waits(go: str) -> str:
    """Print half a line, and go on once a file is there."""
    print("first half, ", end="")
    while not Path(go).exists():
        time.sleep(0.001)
    print("second half")
    return "returned"


@process
def prints_much(size: int) -> str:
    """Print much, with zeros in it, in one piece."""
    os.write(2, b"\0" * 10)
    sys.stdout.buffer.write(b"x" * size)
    return "returned"


@process
def prints_for_ever() -> None:
    """Print without end."""
    while True:
        print(HANGING * 100)


@process
def redirects() -> str:
    """Send all output into a file, and forget it there."""
    with Path("elsewhere").open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    print("in the file")
    return "returned"


@process
def closes_everything() -> str:
    """Close all descriptors that there are."""
    os.closerange(0, 1000)
    return "never told"


# -- that fail


@process
def fails(text: str) -> NoReturn:
    """Say why it cannot."""
    print("before")
    raise ToolFailedError(text)


@process
def raises() -> None:
    """Raise an unusual exception."""
    Path("/no/such/file").stat()


@process
def leaves() -> NoReturn:
    """Leave the program by an exception."""
    sys.exit(3)


@process
async def cancels_itself() -> None:
    """Cancel what it awaits."""
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


@process
def unshowable() -> object:
    """Return what has no form."""
    return object()


@process
def half_a_character() -> str:
    """Return text that UTF-8 cannot carry."""
    return "\ud800"


@process
def crashes() -> None:
    """Read what is not there."""
    print("before", flush=True)
    ctypes.string_at(0)


@process
def exits(code: int) -> None:
    """End the process at once."""
    print("before", flush=True)
    os._exit(code)


@process
def killed() -> None:
    """Be killed, as by the kernel when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


@process
def told_to_end() -> None:
    """Get the signal that only the host should send."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(FOREVER)


@process
def speaks_nonsense() -> None:
    """Write into every descriptor that there is."""
    for number in range(3, 20):
        try:
            os.write(number, b"\xff" * 100)
        except OSError:
            continue
    time.sleep(FOREVER)


@process
def returns_twice() -> int:
    """Fork, and return in both."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return os.getpid()


# -- that leave something behind


@process
def leaves_thread() -> int:
    """Leave a thread behind."""
    threading.Thread(target=time.sleep, args=(FOREVER,)).start()
    return os.getpid()


@process
def leaves_child() -> int:
    """Leave a child behind."""
    subprocess.Popen(["/bin/sleep", "1000"])
    return os.getpid()


@process
def leaves_orphan() -> int:
    """Leave an orphaned grandchild behind."""
    subprocess.run(["/bin/sh", "-c", "setsid sleep 1000 & exit 0"], check=True)
    return os.getpid()


@process
async def leaves_task() -> int:
    """Leave a task behind."""
    waiting.append(asyncio.create_task(asyncio.sleep(FOREVER)))
    return os.getpid()


waiting: list[asyncio.Task[None]] = []


@process
def changes_folder() -> int:
    """Go elsewhere."""
    os.chdir("/")
    return os.getpid()


@process
def ignores_signals() -> int:
    """Ignore the signal to end, from now on."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return os.getpid()


# -- that hang; each says so, in its last words


@process
async def hang_in_await() -> None:
    """Await what never comes."""
    print(HANGING)
    await asyncio.get_running_loop().create_future()


@process
def hang_in_socket() -> None:
    """Read from a server that never answers."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        print(HANGING)
        client.recv(1)


@process
def hang_until_told() -> str:
    """Block, but listen to the token."""
    token = keryx.get_token()
    assert token is not None
    token.on_cancel(lambda: print("told"))
    print(HANGING)
    assert token.wait_cancelled_sync()
    return f"stopped: {token.is_cancelled}"


@process
def hang_in_child() -> None:
    """Wait for a child that never ends."""
    subprocess.run(["/bin/sh", "-c", f"echo {HANGING}; exec sleep 1000"], check=True)


@process
def hang_in_stubborn_child() -> None:
    """Wait for a child that ignores the signal to end."""
    script = f"trap '' TERM; echo {HANGING}; while :; do sleep 1000; done"
    subprocess.run(["/bin/sh", "-c", script], check=True)


@process
def hang_in_grandchild() -> None:
    """Wait, and so does a grandchild with a session of its own."""
    escaped = f"trap '' TERM; echo {HANGING}; sleep 1000; sleep 1000"
    script = f'(setsid sh -c "{escaped}" &); exec sleep 1000'
    subprocess.run(["/bin/sh", "-c", script], check=True)


@process
def hang_in_python() -> None:
    """Run a loop that looks at nothing."""
    print(HANGING)
    while True:
        sum(range(100))


@process
def hang_in_c() -> None:
    """Block in a system call."""
    pipe = os.pipe()
    print(HANGING)
    os.read(pipe[0], 1)


@process
def hang_swallowing() -> None:
    """Swallow everything that is raised."""
    print(HANGING)
    while True:
        try:
            time.sleep(FOREVER)
        except BaseException:  # noqa: BLE001 (it resists all there is)
            continue


@process
async def hang_swallowing_in_await() -> None:
    """Swallow every cancellation."""
    print(HANGING)
    while True:
        try:
            await asyncio.sleep(FOREVER)
        except asyncio.CancelledError:
            continue


@process
def hang_without_signals() -> None:
    """Ignore the signal to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(HANGING)
    time.sleep(FOREVER)


@process
def hang_with_the_interpreter() -> None:
    """Compute in C: with the lock of the interpreter held, and deaf to signals."""
    print(HANGING)
    sum(range(10**12))


@process
def hang_with_threads() -> None:
    """Block in a thread that is waited for."""
    thread = threading.Thread(target=time.sleep, args=(FOREVER,))
    thread.start()
    print(HANGING)
    thread.join()


@process
def cleans_up() -> None:
    """Have something to clean up when it is interrupted."""
    try:
        print(HANGING)
        time.sleep(FOREVER)
    finally:
        Path("clean").touch()


@process
def was_done() -> Complete:
    """Finish within the grace, and say so."""
    token = keryx.get_token()
    assert token is not None
    token.raise_if_cancelled()  # whoever asked before the signal is left to end by itself
    print(HANGING)
    token.wait_cancelled_sync()
    return Complete("all of it")


@process
def complains() -> None:
    """Fail while it is being stopped."""
    try:
        print(HANGING)
        time.sleep(FOREVER)
    finally:
        raise ToolFailedError("could not clean up")


@tool(isolation="process", effects=NO_EFFECTS, timeout=0.05)
def hang_until_timeout() -> None:
    """Take longer than it may."""
    print(HANGING)
    time.sleep(FOREVER)


@process
def reads(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()
