"""What a turn costs against a bare aiohttp + msgspec loop that does the same exchanges.

The model server runs in a process of its own; every figure of Keryx includes its durable log.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import aiohttp
import msgspec
import uvloop

from keryx import NO_EFFECTS, Keryx, tool

TURNS = 200
STEPS = 100
ROUNDS = 5


@tool(effects=NO_EFFECTS)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


ANSWER = {"text": "It is five, I think.", "fault": "one write"}
ASK = {"calls": [{"tool": "add", "arguments": {"a": 2, "b": 3}}], "fault": "one write"}


@contextmanager
def model_server(replies: list[dict[str, Any]]) -> Generator[str]:
    """A model server that says these for ever, and its address."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as script:
        json.dump({"replies": replies, "repeat": True}, script)
        script.flush()
        command = [sys.executable, "-m", "keryx.testing.modelserver", "--script", script.name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                yield server.stdout.readline().strip()
            finally:
                server.send_signal(signal.SIGTERM)


# -- the floor


class _Function(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class _Call(msgspec.Struct):
    id: str = ""
    function: _Function = msgspec.field(default_factory=_Function)


class _Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_Call] = []


class _Choice(msgspec.Struct):
    delta: _Delta


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []


decode = msgspec.json.Decoder(_Chunk).decode
TOOLS = msgspec.json.encode(
    [
        {
            "type": "function",
            "function": {
                "name": "add",
                "description": add.description,
                "parameters": add.parameters,
            },
        }
    ]
)


async def bare_exchange(
    client: aiohttp.ClientSession, url: str, history: list[bytes]
) -> tuple[str, str]:
    """One request and its reply: the text, and the id of the call that it asks for."""
    body = (
        b'{"model":"test-model","stream":true,"messages":['
        + b",".join(history)
        + b'],"tools":'
        + TOOLS
        + b"}"
    )
    headers = {"Content-Type": "application/json"}
    text, call = "", ""
    async with client.post(f"{url}/chat/completions", data=body, headers=headers) as response:
        assert response.status == 200, await response.text()
        pending = b""
        async for data in response.content.iter_any():
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    for choice in decode(line[6:]).choices:
                        text += choice.delta.content or ""
                        for asked in choice.delta.tool_calls:
                            call = asked.id or call
    return text, call


async def bare_turn(client: aiohttp.ClientSession, url: str) -> None:
    history = [b'{"role":"user","content":"hi"}']
    while True:
        _, call = await bare_exchange(client, url, history)
        if not call:
            return
        result = await add(2, 3)
        asked = {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": f"{call}{len(history)}",
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"a":2,"b":3}'},
                }
            ],
        }
        answer = {"role": "tool", "tool_call_id": f"{call}{len(history)}", "content": str(result)}
        history += [msgspec.json.encode(asked), msgspec.json.encode(answer)]


# -- both, interleaved


async def measure(url: str, turns: int) -> tuple[float, float]:
    """Median seconds of a turn: bare, and through Keryx with its log on disk."""
    bare, ours = list[float](), list[float]()
    os.environ["OPENAI_BASE_URL"] = url
    with tempfile.TemporaryDirectory() as home:
        async with (
            aiohttp.ClientSession() as client,
            Keryx(model="openai:test-model", tools=[add], home=home, workspace=home) as app,
        ):
            for _ in range(turns):
                began = time.perf_counter()
                await bare_turn(client, url)
                middle = time.perf_counter()
                # A session of its own, so that the history is as short as the bare one's.
                session = await app.open()
                opened = time.perf_counter()
                result = await (await session.send("hi")).result()
                ours.append(time.perf_counter() - opened)
                bare.append(middle - began)
                assert result.outcome == "completed", result.error
    warm = len(bare) // 10
    return statistics.median(bare[warm:]), statistics.median(ours[warm:])


COLD = """
import asyncio, sys, tempfile
from keryx import Keryx
async def main():
    with tempfile.TemporaryDirectory() as home:
        async with Keryx(model="openai:test-model", home=home, workspace=home) as app:
            print((await (await (await app.open()).send("hi")).result()).outcome)
from keryx.aio.loops import run_loop
run_loop(main())
"""
COLD_BARE = """
import asyncio, sys, os, aiohttp, msgspec
async def main():
    async with aiohttp.ClientSession() as client:
        body = msgspec.json.encode({"model": "test-model", "stream": True,
                                    "messages": [{"role": "user", "content": "hi"}]})
        async with client.post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", data=body,
                               headers={"Content-Type": "application/json"}) as response:
            print(len(await response.read()))
asyncio.run(main())
"""


def cold(url: str, program: str) -> float:
    """Seconds from nothing to the first answered turn, best of some."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        env = {**os.environ, "OPENAI_BASE_URL": url}
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=env)
        best = min(best, time.perf_counter() - began)
    return best


def say(name: str, bare: float, ours: float, limit: float, unit: str) -> None:
    scale = 1e3 if unit == "ms" else 1.0
    said = "met" if ours <= limit else "MISSED"
    print(
        f"{name:<34} floor {bare * scale:8.3f} {unit}  keryx {ours * scale:8.3f} {unit}  "
        f"ratio {ours / bare:5.2f}  limit {limit * scale:7.3f}: {said}"
    )


def main() -> int:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        with model_server([ANSWER]) as url:
            bare, ours = cold(url, COLD_BARE), cold(url, COLD)
            say("cold start to the first turn", bare, ours, bare + 0.1, "s")
            say("a turn without tools", *runner.run(measure(url, TURNS)), 0.0012, "ms")
        with model_server([*[ASK] * STEPS, ANSWER]) as url:
            say(f"a turn of {STEPS} tool steps", *runner.run(measure(url, ROUNDS)), 0.35, "s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
