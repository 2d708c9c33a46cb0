"""What the built-in tools cost against the plain calls that do the same, all through the executor.

Every write includes the durable commit of its `files.changed`.
With `--web` only web pages are measured.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import uvloop
from aiohttp import web

from keryx.app import Runtime
from keryx.engine.calls.session_resources import SessionResources
from keryx.events import FilesChanged
from keryx.messages import ToolCall
from keryx.ports.files import FileChange
from keryx.ports.store import Blob, Commit, blob_hash
from keryx.sandbox import Bounds, LocalPlace
from keryx.sandbox.local import Mode
from keryx.store.sqlite import SqliteStore
from keryx.tools.files import FileAccess, file_tools
from keryx.tools.files.searching import _installed  # pyright: ignore[reportPrivateUsage]  # the same program
from keryx.tools.shell.terminal import Shell, shell_tools
from keryx.tools.web.extract import extract_tool
from keryx.tools.web.extraction import extract
from keryx.tools.web.fetching import Fetched
from parts.report import Figure

ROUNDS = 300
LARGE_ROUNDS = 15
LARGE = 10 * 1024 * 1024
FILES = 100_000
SEARCHES = 5
SHORT_ROUNDS = 100

SMALL_READ = Figure("read_file of 2 KB", "ms")
SMALL_WRITE = Figure("write_file of 2 KB", "ms")
LARGE_READ = Figure("read_file of 10 MB", "ms")
LARGE_WRITE = Figure("write_file of 10 MB", "ms")
SEARCH = Figure(f"search_files in {FILES:,} files", "ms")
SEARCH_MANY = Figure("  the same, a hit in each", "ms")
NAMES = Figure("  the same by name", "ms")
TRUE = Figure("terminal `true`, unconfined", "ms")
TRUE_CONFINED = Figure("terminal `true`, confined", "ms")
TEN = Figure("ten terminals, against one", "ms")
PAGES = 50
PAGE_ROUNDS = 5
WEB = Figure(f"web_extract of {PAGES} pages", "ms")

TEXT = "a line of text that says nothing\n"


class Log:
    """A session's log on the disk, as the changes of files are committed to it."""

    def __init__(self, store: SqliteStore, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._seq = 0

    @classmethod
    async def open(cls, runtime: Runtime, folder: Path) -> Log:
        store = await SqliteStore.open(folder / "keryx.db", runtime.bridge)
        return cls(store, await store.claim("s"))

    async def keep(self, data: bytes) -> str:
        return blob_hash(data)

    async def changing(self, changes: Sequence[FileChange], call_id: str | None) -> None:
        events: list[FilesChanged] = []
        blobs: list[Blob] = []
        for change in changes:
            self._seq += 1
            if change.before is not None and change.before_hash is not None:
                blobs.append(Blob(change.before_hash, change.before))
            events.append(
                FilesChanged(
                    session_id="s",
                    at=0.0,
                    seq=self._seq,
                    turn_id=None,
                    call_id=call_id,
                    path=str(change.path),
                    before=change.before_hash,
                    after=change.after_hash,
                )
            )
        commit = Commit(session_id="s", epoch=self._epoch, events=tuple(events), blobs=tuple(blobs))
        await self._store.append(commit)

    async def close(self) -> None:
        await self._store.close()


class Bench:
    """A workspace, and one call at a time in it."""

    def __init__(self, runtime: Runtime, root: Path, log: Log, *, mode: Mode = "off") -> None:
        self.root = root
        self._runtime = runtime
        place = LocalPlace(runtime.warden, runtime.bridge, Bounds(mode=mode), workspace=root)
        self._environment = runtime.call_environment(
            "bench",
            [*file_tools(), *shell_tools(Shell())],
            workspace=root,
            place=place,
            env={"PATH": os.defpath},
        )
        self._environment.files = FileAccess(root, keep=log.keep, changing=log.changing)

    async def call(self, tool: str, **arguments: Any) -> str:
        return await self.run(ToolCall("c", tool, msgspec.json.encode(arguments).decode()))

    async def all(self, tool: str, several: Sequence[dict[str, Any]]) -> None:
        turn = self._runtime.scope.child("turn")
        calls = [
            ToolCall(f"c{number}", tool, msgspec.json.encode(arguments).decode())
            for number, arguments in enumerate(several)
        ]
        outcomes = await self._runtime.executor.run(self._environment, calls, turn)
        turn.close()
        assert all(outcome.outcome == "completed" for outcome in outcomes)

    async def run(self, call: ToolCall) -> str:
        turn = self._runtime.scope.child("turn")
        (outcome,) = await self._runtime.executor.run(self._environment, [call], turn)
        turn.close()
        assert outcome.outcome == "completed", outcome.text
        return outcome.text

    async def measure(
        self, rounds: int, bare: Callable[[], object], ours: Callable[[], Awaitable[object]]
    ) -> tuple[float, float]:
        """Median seconds of both, taken in turns."""
        floor, times = list[float](), list[float]()
        for _ in range(rounds + rounds // 10 + 1):
            began = time.perf_counter()
            bare()
            middle = time.perf_counter()
            await ours()
            times.append(time.perf_counter() - middle)
            floor.append(middle - began)
        warm = rounds // 10 + 1
        return statistics.median(floor[warm:]), statistics.median(times[warm:])


def plain_write(path: Path, content: str) -> None:
    """A temporary file and a rename, as any careful program does it."""
    beside = path.with_name(".beside")
    with beside.open("w") as file:
        file.write(content)
    beside.rename(path)


async def small(bench: Bench) -> None:
    path = bench.root / "small.txt"
    text = TEXT * 60
    path.write_text(text)
    floor, ours = await bench.measure(
        ROUNDS, path.read_text, lambda: bench.call("read_file", path="small.txt")
    )
    SMALL_READ.say(floor, ours, floor + 0.0005)
    versions = iter(range(10_000))
    floor, ours = await bench.measure(
        ROUNDS,
        lambda: plain_write(bench.root / "bare.txt", text),
        lambda: bench.call("write_file", path="small.txt", content=f"{text}{next(versions)}"),
    )
    SMALL_WRITE.say(floor, ours, floor + 0.001)


async def large(bench: Bench) -> None:
    path = bench.root / "large.txt"
    text = TEXT * (LARGE // len(TEXT))
    path.write_text(text)
    floor, ours = await bench.measure(
        LARGE_ROUNDS, path.read_text, lambda: bench.call("read_file", path="large.txt")
    )
    LARGE_READ.say(floor, ours, 3 * floor)
    # What the model writes comes as JSON; to make that is not the tool's work. Several files in
    # turn, since nobody writes the same one every few milliseconds.
    versions = [
        msgspec.json.encode({"path": f"{number % 5}.txt", "content": f"{text}{number}"}).decode()
        for number in range(10)
    ]
    calls = itertools.cycle([ToolCall("c", "write_file", version) for version in versions])
    floor, ours = await bench.measure(
        LARGE_ROUNDS,
        lambda: plain_write(bench.root / "bare.txt", text),
        lambda: bench.run(next(calls)),
    )
    LARGE_WRITE.say(floor, ours, 3 * floor)


def plant(root: Path) -> None:
    """Many small files, one of them with what is sought."""
    for folder in range(FILES // 100):
        below = root / str(folder % 10) / str(folder)
        below.mkdir(parents=True)
        for number in range(100):
            (below / f"{number}.txt").write_text(f"{TEXT}file {folder} {number}\n")
    (root / "0" / "0" / "needle.txt").write_text("the needle\n")


async def search(bench: Bench) -> None:
    program = _installed()
    assert program is not None
    env = {"PATH": os.defpath}

    def plain(*arguments: str) -> Callable[[], object]:
        command = [program, "--no-config", *arguments]
        return lambda: subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, cwd=bench.root, env=env
        )

    floor, ours = await bench.measure(
        SEARCHES,
        plain("--line-number", "needle", "."),
        lambda: bench.call("search_files", pattern="needle"),
    )
    SEARCH.say(floor, ours, 1.3 * floor)
    floor, ours = await bench.measure(
        SEARCHES,
        plain("--line-number", "nothing", "."),
        lambda: bench.call("search_files", pattern="nothing"),
    )
    SEARCH_MANY.say(floor, ours, 1.3 * floor)
    floor, ours = await bench.measure(
        SEARCHES,
        plain("--files", "--glob=needle*", "."),
        lambda: bench.call("search_files", pattern="needle*", kind="names"),
    )
    NAMES.say(floor, ours, 1.3 * floor)


async def shell(runtime: Runtime, root: Path, log: Log) -> None:
    """A command, and ten at once."""

    def plain() -> object:
        return subprocess.run(["/bin/sh", "-c", "true"], check=True, env={"PATH": os.defpath})

    modes: tuple[tuple[Mode, Figure, float], ...] = (
        ("off", TRUE, 0.003),
        ("required", TRUE_CONFINED, 0.006),
    )
    for mode, figure, more in modes:
        bench = Bench(runtime, root, log, mode=mode)
        await bench.call("terminal", command="true")  # the keeper is warm from here on
        floor, ours = await bench.measure(
            SHORT_ROUNDS, plain, partial(bench.call, "terminal", command="true")
        )
        figure.say(floor, ours, floor + more)
    bench = Bench(runtime, root, log, mode="required")
    began = time.perf_counter()
    await bench.call("terminal", command="sleep 0.5")
    one = time.perf_counter() - began
    began = time.perf_counter()
    await bench.all("terminal", [{"command": "sleep 0.5"}] * 10)
    TEN.say(one, time.perf_counter() - began, one * 1.1)


def page(number: int) -> bytes:
    """A page of 30 KB, as a newspaper has them."""
    words = " ".join(f"word{number * place % 9973}" for place in range(40))
    paragraphs = "".join(f"<p>Paragraph {place}: {words}.</p>" for place in range(80))
    menu = "<nav>" + "".join(f'<a href="/{at}">Link {at}</a>' for at in range(50)) + "</nav>"
    body = f"{menu}<article><h1>Page {number}</h1>{paragraphs}</article><footer>End</footer>"
    return f"<!doctype html><title>Page {number}</title><body>{body}</body>".encode()


async def pages(runtime: Runtime) -> None:
    """Many pages, against bare aiohttp and the same extractor in threads."""
    server = web.Server(_answer)
    runner = web.ServerRunner(server)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host = f"127.0.0.1:{runner.addresses[0][1]}"
    urls = [f"http://{host}/{number}" for number in range(PAGES)]
    scope = runtime.scope.child("session")
    environment = runtime.call_environment("w", [extract_tool((host,))], workspace=Path("/"))
    environment.resources = SessionResources(scope, lambda name, error: None)
    arguments = msgspec.json.encode({"urls": urls, "fresh": True}).decode()

    async def ours() -> None:
        turn = runtime.scope.child("turn")
        call = ToolCall("c", "web_extract", arguments)
        (outcome,) = await runtime.executor.run(environment, [call], turn)
        turn.close()
        assert outcome.outcome == "completed"
        assert "not read" not in outcome.text

    bare_times, our_times = list[float](), list[float]()
    async with aiohttp.ClientSession() as client:
        for _ in range(PAGE_ROUNDS + 1):
            began = time.perf_counter()
            await asyncio.gather(*(bare_page(client, url) for url in urls))
            middle = time.perf_counter()
            await ours()
            our_times.append(time.perf_counter() - middle)
            bare_times.append(middle - began)
    floor, time_of_ours = statistics.median(bare_times[1:]), statistics.median(our_times[1:])
    WEB.say(floor, time_of_ours, 1.2 * floor)
    await environment.resources.close()
    scope.close()
    await runner.cleanup()


async def _answer(request: web.BaseRequest) -> web.Response:
    return web.Response(body=page(int(request.path[1:])), content_type="text/html")


async def bare_page(client: aiohttp.ClientSession, url: str) -> None:
    async with client.get(url) as response:
        body = await response.read()
    fetched = Fetched(url, "text/html", None, body, truncated=False)
    text = await asyncio.to_thread(extract, fetched, lambda: None)
    assert text.text


async def main() -> None:
    async with Runtime() as runtime:
        await pages(runtime)
        if "--web" in sys.argv:
            return
        with tempfile.TemporaryDirectory() as store, tempfile.TemporaryDirectory() as folder:
            log = await Log.open(runtime, Path(store))
            bench = Bench(runtime, Path(folder), log)
            await small(bench)
            await large(bench)
            await shell(runtime, Path(folder), log)
            with tempfile.TemporaryDirectory() as forest:
                plant(Path(forest))
                await search(Bench(runtime, Path(forest), log))
            await log.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    sys.exit(0)
