"""What each wire format costs: CPU per token against bare readers, long turns, and their prefixes.

200 streams at 100 tokens a second are read through each adapter, and by a bare reader that decodes
the same bytes. A turn of 100 steps is compared with one of 50. A strict server keeps what it was
sent, to see how much of a request is the same in the next one.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
import uvloop

from keryx import NO_EFFECTS, Keryx, tool
from keryx.messages import Text, UserMessage
from keryx.models.formats import adapter
from keryx.models.http import model_clients
from keryx.ports.model import ModelRequest, TextPiece
from keryx.testing.modelserver import Call, ModelServer, ReceivedRequest, Reply
from parts.floor import new_client
from parts.machine import Server, model_server
from parts.meter import PACED, RATE, Meter, OnText, Paced, Stream
from parts.report import Figure
from parts.wire_formats import FORMATS, WireFormat

STREAMS: Final = 200
ROUNDS: Final = 3
MOST_CPU: Final = 1.4
MOST_GROWTH: Final = 2.3
"""Twice the steps may take so much longer."""
STEPS: Final = 20
ITEMS: Final = {
    "chat": "messages",
    "responses": "input",
    "anthropic": "messages",
    "gemini": "contents",
}

Streams = Callable[[], AbstractAsyncContextManager[list[Stream]]]


@tool(effects=NO_EFFECTS)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def read_model(model: Any, on_text: OnText) -> None:
    message = model.encode(UserMessage((Text("hi"),)))
    async for piece in model.stream(ModelRequest(system="", history=(message,))):
        if isinstance(piece, TextPiece):
            on_text(piece.text)


@asynccontextmanager
async def adapted(wire: WireFormat, url: str) -> AsyncGenerator[list[Stream]]:
    clients = model_clients()
    model = adapter(wire.name)(
        name=f"here:{PACED}",
        model=PACED,
        base_url=url,
        api_key="k",
        clients=clients.get,
    )
    yield [partial(read_model, model) for _ in range(STREAMS)]
    await clients.close()


async def read_bare(
    client: aiohttp.ClientSession, wire: WireFormat, url: str, on_text: OnText
) -> None:
    body = b'{"model":"%b"}' % PACED.encode()
    async with client.post(url, data=body) as response:
        pending = b""
        async for data in response.content.iter_any():
            *lines, pending = (pending + data).split(b"\n")
            text = "".join(wire.read(line[6:]) for line in lines if line.startswith(b"data: "))
            if text:
                on_text(text)


@asynccontextmanager
async def bare(wire: WireFormat, url: str) -> AsyncGenerator[list[Stream]]:
    path = f"/models/{PACED}:stream{wire.path.decode()}" if wire.name == "gemini" else wire.path
    address = f"{url}{path if isinstance(path, str) else path.decode()}"
    async with new_client() as client:
        yield [partial(read_bare, client, wire, address) for _ in range(STREAMS)]


async def paced(make: Streams) -> Paced:
    async with make() as streams:
        meter = Meter(streams)
        result = await meter.paced()
        await meter.wait_ended()
        return result


async def measure_streams(server: Server) -> None:
    for wire in FORMATS:
        results: dict[str, list[Paced]] = {"bare": [], "adapter": []}
        for _ in range(ROUNDS):
            results["bare"].append(await paced(partial(bare, wire, server.url)))
            results["adapter"].append(await paced(partial(adapted, wire, server.url)))
        best = {
            name: min(runs, key=lambda run: (not run.is_steady, run.cpu_per_token))
            for name, runs in results.items()
        }
        floor, ours = best["bare"].cpu_per_token, best["adapter"].cpu_per_token
        is_steady = all(run.is_steady for run in best.values())
        note = "" if is_steady else "  NOT STEADY, the machine is busy: this figure means nothing"
        name = f"{wire.name}: CPU per token, {STREAMS} x {RATE}/s"
        Figure(name, "us", digits=2).say(floor, ours, floor * MOST_CPU, note=note)


def configure(home: Path, wire: WireFormat, url: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        f'[providers.here]\nbase_url = "{url}"\napi_key = "k"\nformat = "{wire.name}"\n'
    )


async def turn_seconds(home: Path, steps: int) -> float:
    async with Keryx(model=f"here:steps-{steps}", tools=[add], home=home, workspace=home) as app:
        session = await app.open()
        started = time.process_time()
        result = await (await session.send("go")).result()
        assert result.outcome == "completed", result
        assert len(result.calls) == steps
        return time.process_time() - started


async def measure_turns(server: Server, folder: Path) -> None:
    for wire in FORMATS:
        home = folder / wire.name
        configure(home, wire, server.url)
        await turn_seconds(home, 10)
        half = min([await turn_seconds(home, 50) for _ in range(ROUNDS)])
        whole = min([await turn_seconds(home, 100) for _ in range(ROUNDS)])
        verdict = "linear" if whole / half <= MOST_GROWTH else "NOT LINEAR"
        print(
            f"{wire.name}: 50 steps {half:.3f} s CPU, 100 steps {whole:.3f} s, "
            f"ratio {whole / half:.2f}: {verdict}"
        )


def script(request: ReceivedRequest) -> Reply:
    done = len(request.body[ITEMS[request.api]])
    return (
        Reply(calls=(Call("add", {"a": done, "b": 1}),)) if done < 2 * STEPS else Reply(text="ok")
    )


async def measure_prefixes(folder: Path) -> None:
    for wire in FORMATS:
        home = folder / f"prefix-{wire.name}"
        async with ModelServer(script) as server:
            configure(home, wire, server.url_of(wire.name))
            async with Keryx(
                model="here:test-model", tools=[add], home=home, workspace=home
            ) as app:
                await (await (await app.open()).send("go")).result()
            shares = [
                shared_part(before, after, ITEMS[wire.name])
                for before, after in zip(server.asked, server.asked[1:], strict=False)
            ]
        print(
            f"{wire.name}: of the history of {len(shares)} requests, "
            f"{100 * min(shares):.0f} % begins the next request, byte for byte"
        )


def shared_part(before: ReceivedRequest, after: ReceivedRequest, items: str) -> float:
    """Return the part of the first request's history that is the same in the second."""
    last = msgspec.json.encode(before.body[items][-1])
    end = before.raw.rindex(last) + len(last)
    pairs = enumerate(zip(before.raw[:end], after.raw, strict=False))
    return next((at for at, (one, other) in pairs if one != other), end) / end


async def measure(server: Server, folder: Path) -> None:
    await measure_prefixes(folder)
    await measure_turns(server, folder)
    await measure_streams(server)


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="keryx-models-") as folder,
        model_server() as server,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(measure(server, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
