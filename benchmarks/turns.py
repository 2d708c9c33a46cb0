"""What a turn costs against a bare aiohttp + msgspec loop that does the same exchanges.

The model server runs in a process of its own; every figure of Keryx includes its durable log.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time

import msgspec
import uvloop

from keryx import NO_EFFECTS, Keryx, tool
from parts.floor import USER, Floor, new_client
from parts.machine import model_server
from parts.peers import requested_peers
from parts.report import Figure

TURNS = 200
STEPS = 100
ROUNDS = 5

COLD = Figure("cold start to the first turn", "s")
COLD_ABOVE_FLOOR = 0.1
SHORT = Figure("a turn without tools", "ms")
MOST_SHORT = 0.0012
LONG = Figure(f"a turn of {STEPS} tool steps", "s")
MOST_LONG = 0.35


@tool(effects=NO_EFFECTS)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


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


async def bare_turn(floor: Floor) -> None:
    history = [USER]
    while True:
        _, call = await floor.exchange(history, TOOLS)
        if not call:
            return
        result = await add(2, 3)
        function = {"name": "add", "arguments": '{"a":2,"b":3}'}
        request = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call, "type": "function", "function": function}],
        }
        answer = {"role": "tool", "tool_call_id": call, "content": str(result)}
        history += [msgspec.json.encode(request), msgspec.json.encode(answer)]


async def measure(url: str, model: str, turns: int) -> tuple[float, float]:
    """Median seconds of a turn: bare, and through Keryx with its log on disk."""
    bare, ours = list[float](), list[float]()
    os.environ["OPENAI_BASE_URL"] = url
    with tempfile.TemporaryDirectory() as home:
        async with (
            new_client() as client,
            Keryx(model=f"openai:{model}", tools=[add], home=home, workspace=home) as app,
        ):
            floor = Floor(client, url, model)
            for _ in range(turns):
                began = time.perf_counter()
                await bare_turn(floor)
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


COLD_KERYX = """
import asyncio, sys, tempfile
from keryx import Keryx
async def main():
    with tempfile.TemporaryDirectory() as home:
        async with Keryx(model="openai:answer-5", home=home, workspace=home) as app:
            print((await (await (await app.open()).send("hi")).result()).outcome)
from keryx.aio.loops import run_loop
run_loop(main())
"""
COLD_BARE = """
import asyncio, sys, os, aiohttp, msgspec
async def main():
    async with aiohttp.ClientSession() as client:
        body = msgspec.json.encode({"model": "answer-5", "stream": True,
                                    "messages": [{"role": "user", "content": "hi"}]})
        async with client.post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", data=body,
                               headers={"Content-Type": "application/json"}) as response:
            print(len(await response.read()))
asyncio.run(main())
"""


def cold(url: str) -> tuple[float, float]:
    """Seconds from nothing to the first answered turn: bare and Keryx, each the best of some."""
    best = [float("inf"), float("inf")]
    with tempfile.TemporaryDirectory() as compiled:
        # Installed packages are compiled once. So is what runs here, whatever the environment
        # says of it and whether or not the sources may be written to.
        env = {**os.environ, "OPENAI_BASE_URL": url, "PYTHONPYCACHEPREFIX": compiled}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(ROUNDS + 1):
            for number, program in enumerate((COLD_BARE, COLD_KERYX)):
                began = time.perf_counter()
                command = [sys.executable, "-c", program]
                subprocess.run(command, check=True, capture_output=True, env=env)
                best[number] = min(best[number], time.perf_counter() - began)
    return best[0], best[1]


def main() -> int:
    peers = requested_peers()
    with (
        model_server() as server,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        url = server.url
        bare, ours = cold(url)
        COLD.say(bare, ours, bare + COLD_ABOVE_FLOOR)
        COLD.say_peers(peers, "cold", url)
        SHORT.say(*runner.run(measure(url, "answer-5", TURNS)), MOST_SHORT)
        SHORT.say_peers(peers, "turn", url)
        LONG.say(*runner.run(measure(url, f"steps-{STEPS}", ROUNDS)), MOST_LONG)
        LONG.say_peers(peers, "steps", url)
    return 0


if __name__ == "__main__":
    sys.exit(main())
