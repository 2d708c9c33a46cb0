"""Hosts that go away, refuse, or talk nonsense: always an error that says what happened."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.guest.script_processes import run, running
from tests.guest.server import PATIENCE, Server

BLOCKING = """
import json
from keryx_tools import TOOL, ToolConnectionError
try:
    TOOL("x")
except ToolConnectionError as error:
    print(json.dumps([str(error), error.may_have_run]))
"""
ASYNC = """
import asyncio, json
from keryx_tools import ToolConnectionError
from keryx_tools.aio import TOOL
async def main():
    try:
        await TOOL("x")
    except ToolConnectionError as error:
        print(json.dumps([str(error), error.may_have_run]))
asyncio.run(main())
"""
CALLERS = {"blocking": BLOCKING, "async": ASYNC}

UNKNOWN = "It is unknown whether the call ran; it is not sent again."
DID_NOT_RUN = "The call did not run."


@pytest.fixture(params=CALLERS)
def script(request: pytest.FixtureRequest) -> str:
    return CALLERS[request.param].replace("TOOL", "count")


def frame(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def received(connected: socket.socket) -> bytes:
    head = connected.recv(4, socket.MSG_WAITALL)
    return connected.recv(struct.unpack(">I", head)[0], socket.MSG_WAITALL)


@contextmanager
def nonsense(path: Path, greeting: bytes, reply: bytes) -> Generator[list[bytes]]:
    """A host that answers the greeting with one thing, the call with another, and hangs up."""
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(PATIENCE)

        def serve() -> None:
            connected, _ = listening.accept()
            with connected:
                connected.settimeout(PATIENCE)
                for answer in (greeting, reply):
                    heard.append(received(connected))
                    connected.sendall(answer)
                    if answer is not WELCOME:
                        break
                connected.shutdown(socket.SHUT_WR)
                # Read until the script closes, to record anything that it sends again.
                heard.extend(iter(lambda: connected.recv(1 << 16), b""))

        thread = threading.Thread(target=serve, name="keryx-nonsense")
        thread.start()
        try:
            yield heard
        finally:
            thread.join(PATIENCE)


WELCOME = frame(b'{"jsonrpc":"2.0","id":1,"result":{"version":1}}')


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (b"", "it was closed"),
        (b"\0\0", "it was closed"),
        (frame(b'{"jsonrpc":"2.0","id":2,"result":{}}')[:-5], "it was closed"),
        (struct.pack(">I", 1 << 30), "it announced 1073741824 bytes"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it announced 1213486160 bytes"),
        (frame(b"\xff\xfe{}"), "it sent data that is not JSON"),
        (frame(b"[1, 2]"), "it sent JSON that is not an object"),
    ],
    ids=["half closed", "bad length", "truncated", "1 GB", "http", "garbage", "no object"],
)
def test_nonsense_in_place_of_an_answer(
    tmp_path: Path, script: str, reply: bytes, why: str
) -> None:
    with nonsense(tmp_path / "s", WELCOME, reply) as heard:
        text, may_have_run = run(tmp_path, script, f"unix:{tmp_path / 's'}")
    assert why in text
    assert text.endswith(UNKNOWN)
    assert may_have_run
    assert len(heard) == 2  # the greeting and the call; nothing was sent again


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (b"", "it hung up on our greeting"),
        (struct.pack(">I", 1 << 30), "it hung up on our greeting"),
        (frame(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}'), "it refused us: no"),
    ],
    ids=["closed", "1 GB", "refused"],
)
def test_nonsense_in_place_of_a_greeting(
    tmp_path: Path, script: str, reply: bytes, why: str
) -> None:
    with nonsense(tmp_path / "s", reply, b"") as heard:
        text, may_have_run = run(tmp_path, script, f"unix:{tmp_path / 's'}")
    assert why in text
    assert text.endswith(DID_NOT_RUN)
    assert not may_have_run
    assert len(heard) == 1


def test_what_passes_before_the_answer_is_not_the_answer(tmp_path: Path) -> None:
    progress = frame(b'{"jsonrpc":"2.0","method":"progress","params":{"id":2,"value":1}}')
    answer = frame(b'{"jsonrpc":"2.0","id":2,"result":{"text":"t","value":{"count":7}}}')
    calls = {
        "blocking": "from keryx_tools import count; print(count('x')['count'])",
        "async": "import asyncio; from keryx_tools.aio import count; "
        "print(asyncio.run(count('x'))['count'])",
    }
    for name, script in calls.items():
        with nonsense(tmp_path / name, WELCOME, progress * 500 + answer):
            assert run(tmp_path, script, f"unix:{tmp_path / name}") == 7


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("unix:/nowhere/at/all", "No such file or directory"),
        ("", "KERYX_TOOLS_ADDRESS is not set"),
        ("carrier pigeon", "KERYX_TOOLS_ADDRESS is 'carrier pigeon'"),
        ("files:/nowhere/at/all", "No such file or directory"),
    ],
)
def test_no_host_at_all(tmp_path: Path, script: str, address: str, why: str) -> None:
    text, may_have_run = run(tmp_path, script, address)
    assert why in text
    assert text.endswith(DID_NOT_RUN)
    assert not may_have_run


def test_a_wrong_secret_gets_nowhere(
    tmp_path: Path, server: Server, address: str, script: str
) -> None:
    text, may_have_run = run(tmp_path, script, address, KERYX_TOOLS_SECRET="guess")
    assert "it refused us: the secret is wrong" in text
    assert not may_have_run
    assert not server.tools.ran


@pytest.mark.parametrize("caller", CALLERS)
def test_a_host_that_ends_in_mid_call(
    tmp_path: Path, server: Server, address: str, caller: str
) -> None:
    with running(tmp_path, CALLERS[caller].replace("TOOL", "hang"), address) as guest:
        assert server.tools.hung.get(timeout=PATIENCE) == "x"
        server.die()
        output, _ = guest.communicate(timeout=PATIENCE)
    text, may_have_run = json.loads(output)
    assert text.endswith(UNKNOWN)
    assert may_have_run
    assert server.tools.ran["x"] == 1


def test_a_greeting_that_is_never_answered_ends_by_the_deadline(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        result = run(
            tmp_path,
            """
            import asyncio, json
            from keryx_tools import ToolTimeoutError, aio, count
            said = []
            try:
                count("x", _deadline=0.05)
            except ToolTimeoutError as error:
                said.append(str(error))
            async def main():
                try:
                    await aio.count("x", _deadline=0.05)
                except ToolTimeoutError as error:
                    said.append(str(error))
            asyncio.run(main())
            print(json.dumps(said))
            """,
            f"unix:{tmp_path / 's'}",
        )
    assert result == ["count: no answer within 0.05 s; the call was given up."] * 2
