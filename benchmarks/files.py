"""What the file tools cost against the plain calls that do the same, all through the executor."""

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
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from keryx.app import Runtime
from keryx.messages import ToolCall
from keryx.ports.files import FileChange
from keryx.ports.store import blob_hash
from keryx.tools.files import FileSpace, file_tools
from keryx.tools.files.searching import _installed  # pyright: ignore[reportPrivateUsage]  # the same program
from parts.report import Figure

ROUNDS = 300
LARGE_ROUNDS = 15
LARGE = 10 * 1024 * 1024
FILES = 100_000
SEARCHES = 5

SMALL_READ = Figure("read_file of 2 KB", "ms")
SMALL_WRITE = Figure("write_file of 2 KB", "ms")
LARGE_READ = Figure("read_file of 10 MB", "ms")
LARGE_WRITE = Figure("write_file of 10 MB", "ms")
SEARCH = Figure(f"search_files in {FILES:,} files", "ms")
SEARCH_MANY = Figure("  the same, a hit in each", "ms")
NAMES = Figure("  the same by name", "ms")

TEXT = "a line of text that says nothing\n"


async def keep(data: bytes) -> str:
    return blob_hash(data)


async def changing(changes: Sequence[FileChange], call_id: str | None) -> None:
    """What the log costs is measured elsewhere."""


class Bench:
    """A workspace, and one call at a time in it."""

    def __init__(self, runtime: Runtime, root: Path) -> None:
        self.root = root
        self._runtime = runtime
        self._lane = runtime.lane("bench", file_tools(), workspace=root)
        self._lane.files = FileSpace(root, keep=keep, changing=changing)

    async def call(self, tool: str, **arguments: Any) -> str:
        return await self.run(ToolCall("c", tool, msgspec.json.encode(arguments).decode()))

    async def run(self, call: ToolCall) -> str:
        turn = self._runtime.scope.child("turn")
        (outcome,) = await self._runtime.executor.run(self._lane, [call], turn)
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


async def main() -> None:
    async with Runtime() as runtime:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(runtime, Path(folder))
            await small(bench)
            await large(bench)
        with tempfile.TemporaryDirectory() as folder:
            plant(Path(folder))
            await search(Bench(runtime, Path(folder)))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    sys.exit(0)
