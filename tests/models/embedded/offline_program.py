"""A program in a network namespace of its own: there is loopback, and nothing else.

It opens a session with SmolLM2, asks, and prints the pieces of the reply as they came. With `hang`
it prints the pid of the model's process in the middle of a reply, and waits to be killed.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import asyncio
import fcntl
import json
import socket
import struct
import sys
from pathlib import Path

from keryx import Keryx
from keryx import events as ev

SET_FLAGS, UP = 0x8914, 1


def raise_loopback() -> None:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh14x", b"lo", UP))


def outside_error() -> str:
    """Why nothing outside can be reached: the address is one of documents, which nobody has."""
    with socket.socket() as outside:
        try:
            outside.connect(("192.0.2.1", 80))
        except OSError as error:
            return error.strerror or ""
    return ""


async def main(folder: Path, question: str, hangs: bool) -> None:
    pieces: list[str] = []
    async with Keryx(model="local:smollm2", home=folder / "home", workspace=folder) as app:
        session = await app.open()
        turn = await session.send(question)
        async for event in turn.events():
            if isinstance(event, ev.TextDelta):
                pieces.append(event.text)
                if hangs:
                    (worker,) = app.host_client.models.local.workers.running
                    print(worker.pid, flush=True)
                    await asyncio.Event().wait()
        result = await turn.result()
    print(
        json.dumps(
            {
                "outside": outside_error(),
                "outcome": result.outcome,
                "text": result.text,
                "pieces": pieces,
            }
        )
    )


if __name__ == "__main__":
    if "hang" not in sys.argv:
        raise_loopback()
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], "hang" in sys.argv))
