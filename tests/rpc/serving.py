"""A process that serves calls and never answers them, to be killed: `python serving.py HOW PATH`.

It says on stdout when it serves, and when a call has begun.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
from pathlib import Path

from keryx.aio.bridge import Bridge
from keryx.aio.loops import run_loop
from keryx.aio.scope import Scope
from keryx.rpc import Call, Listener
from keryx.rpc.file_transport import FileTransport


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def handle(call: Call) -> bytes:
    if call.method == "big":
        return b'"' + b"x" * int(call.params) + b'"'
    if call.method == "limit":
        # No file may grow beyond that, the answers neither.
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(call.params), resource.RLIM_INFINITY))
        return b"1"
    say("begun")
    await asyncio.Event().wait()
    return b"1"


async def main(how: str, path: str) -> None:
    scope = Scope("serving")
    if how == "socket":
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(path)
        listening.listen()
        Listener(scope, lambda: handle).listen(listening)
        say("serving")
        await asyncio.Event().wait()
    server = await FileTransport.open(Path(path), scope, Bridge(scope), handle)
    say("serving")
    await asyncio.Event().wait()
    await server.close()


if __name__ == "__main__":
    run_loop(main(sys.argv[1], sys.argv[2]))
