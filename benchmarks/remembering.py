"""What remembering costs a turn and a start, how fast 100,000 texts are searched, and how well.

Turns with and without a memory are measured in turn in the same run, against a model server on
another core. The vectors of the 100,000 texts are random, not embedded: only the question is.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import numpy as np
import uvloop

from keryx import Keryx
from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.memory import intake_rows
from keryx.memory.memory_file import MemoryFile
from keryx.memory.providers.vector import index_tables
from keryx.memory.providers.vector.index_tables import INDEX
from keryx.memory.providers.vector.matrices import Matrices
from keryx.memory.providers.vector.minilm import MiniLM
from keryx.memory.providers.vector.provider import VectorProvider
from keryx.memory.providers.vector.result_order import ordered
from keryx.ports.memory import Memory, MemoryScope, TurnMemory, TurnText
from keryx.ports.store import Commit
from keryx.store.sqlite import SqliteStore
from keryx.testing.event_factory import EventFactory
from parts import no_provider
from parts.labelled_notes import PAIRS, distractors
from parts.machine import model_server
from startup import cpu_seconds

TURNS: Final = 150
FRESH: Final = 40
"""Turns after which a session is exchanged for a new one, so that its history stays short."""
PAUSE: Final = 0.03
"""Seconds between turns in which a memory does its work in the background; people pause longer."""
COMMITS: Final = 2_000
NAMES: Final = {
    "": "no memory",
    "nothing": "a memory, its provider idle",
    "vector": "`vector`, embedding meanwhile",
}
MOST_TURN: Final = 1.05
ITEMS: Final = 100_000
TEMPLATES: Final = 2_000
RECALLS: Final = 100
MOST_RECALL: Final = 100.0
"""Milliseconds; tens of them are wanted."""
DISTRACTORS: Final = 1_000
STARTS: Final = 12
SCOPE: Final = MemoryScope("default", "/work")
MODEL: Final = MiniLM()


def verdict(value: float, limit: float) -> str:
    return f"limit <= {limit:g}: {'met' if value <= limit else 'MISSED'}"


def quantile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


# -- a turn


class Turns:
    """Turns of one host, one after the other."""

    def __init__(self, app: Keryx) -> None:
        self._app = app
        self.seconds: list[float] = []

    async def one(self, number: int) -> None:
        if number % FRESH == 0:
            self._session = await self._app.open()
        began = time.perf_counter()
        await (await self._session.send("hi")).result()
        self.seconds.append(time.perf_counter() - began)


async def turns(url: str, folder: Path) -> None:
    os.environ["OPENAI_BASE_URL"] = url
    no_provider.install(folder / "packages")
    sys.path.insert(0, str(folder / "packages"))
    hosts: dict[str, Turns] = {}
    medians: list[float] = []
    async with AsyncExitStack() as stack:
        for name in NAMES:
            home = home_with(folder / f"home-{name}", name)
            app = Keryx(model="openai:answer-5", home=home, workspace=home)
            hosts[name] = Turns(await stack.enter_async_context(app))
        for pause, kind in ((PAUSE, f"after a pause of {PAUSE * 1e3:.0f} ms"), (0.0, "at once")):
            for number in range(TURNS):
                for host in hosts.values():
                    await asyncio.sleep(pause)
                    await host.one(number)
            medians.append(say_turns(f"a turn without tools, {kind}", hosts))
            for host in hosts.values():
                host.seconds.clear()
    row = await row_seconds(folder / "rows" / "store.db")
    ratio = (medians[0] + row) / medians[0]
    print(
        f"  the row of the outbox alone, in its commit: {row * 1e6:.0f} us, so the turn has a ratio"
        f" of {ratio:.3f}   {verdict(ratio, MOST_TURN)}"
    )


def say_turns(title: str, hosts: Mapping[str, Turns]) -> float:
    """Print the medians of all hosts; return that of the host without a memory."""
    warm = TURNS // 10
    print(f"{title}: median of {TURNS - warm}, in turn with the others")
    bare = statistics.median(hosts[""].seconds[warm:])
    for name, label in NAMES.items():
        median = statistics.median(hosts[name].seconds[warm:])
        ratio = median / bare
        limit = f"   {verdict(ratio, MOST_TURN)}" if name == "nothing" else ""
        print(f"  {label:<30} {median * 1e3:7.3f} ms   ratio {ratio:.3f}{limit}")
    return bare


async def row_seconds(path: Path) -> float:
    """Return what a row of the outbox adds to the commit of a turn's end."""
    scope = Scope("benchmark")
    bridge = Bridge(scope)
    store = await SqliteStore.open(path, bridge)
    facts = EventFactory("s-rows")
    epoch = await store.claim(facts.session_id)
    took: tuple[list[float], list[float]] = ([], [])
    for number in range(COMMITS):
        for with_row, times in enumerate(took):
            name = f"turn-{number}-{with_row}"
            texts = (TurnText(f"m{name}", "user", "hi"), TurnText(f"p{name}", "assistant", "yes"))
            turn = TurnMemory(
                id=name,
                session_id=facts.session_id,
                profile="default",
                workspace="/work",
                at=1.0,
                seq=number,
                texts=texts,
            )
            event = facts.replied("yes")
            began = time.perf_counter()
            rows = (intake_rows.turn_row(turn),) if with_row else ()
            commit = Commit(session_id=facts.session_id, epoch=epoch, events=(event,), outbox=rows)
            await store.append(commit)
            times.append(time.perf_counter() - began)
    await store.close()
    await bridge.close()
    return statistics.median(took[1]) - statistics.median(took[0])


def home_with(home: Path, provider: str) -> Path:
    home.mkdir(parents=True)
    if provider:
        (home / "config.toml").write_text(f'[memory]\nproviders = ["{provider}"]\n')
    return home


# -- many texts


def build(path: Path, texts: Sequence[str]) -> None:
    """Write an index of these texts with random vectors."""
    chance = np.random.default_rng(1)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(INDEX.statements)
    connection.execute(f"PRAGMA user_version = {INDEX.version}")
    index_tables.fill(connection, (note(number, text) for number, text in enumerate(texts)))
    model = index_tables.use_model(connection, MODEL)
    for start in range(0, len(texts), 10_000):
        count = min(10_000, len(texts) - start)
        vectors = chance.standard_normal((count, MODEL.dimension)).astype("<f4")
        vectors /= np.sqrt(np.square(vectors).sum(axis=1, keepdims=True))
        rows = [(start + at + 1, vector.tobytes()) for at, vector in enumerate(vectors)]
        index_tables.put_vectors(connection, model, rows)
    connection.commit()
    connection.close()


def note(number: int, text: str) -> Memory:
    return Memory(
        id=f"mem_{number}",
        text=text,
        kind="fact",
        about="user",
        trust="person",
        profile=SCOPE.profile,
        workspace="" if number % 2 else SCOPE.workspace,
        created_at=float(number),
    )


async def recalls(folder: Path) -> None:
    templates = distractors(TEMPLATES)
    texts = [f"{templates[at % TEMPLATES]} Case {at}." for at in range(ITEMS)]
    path = folder / "vectors.db"
    build(path, texts)
    scope = Scope("benchmark")
    bridge = Bridge(scope)
    provider = VectorProvider(
        MemoryFile(path, bridge, INDEX), scope, bridge, embedder=MODEL, report=print
    )
    questions = [question for _, question in PAIRS]
    first = await timed(lambda: provider.recall(SCOPE, questions[0], 10))
    took = [
        await timed(lambda at=at: provider.recall(SCOPE, questions[at % len(questions)], 10))
        for at in range(RECALLS)
    ]
    high = quantile(took, 0.95)
    print(f"recall over {ITEMS:,} texts of a scope (random vectors; the question is embedded)")
    print(f"  the first, which reads the vectors and loads the model {first:7.0f} ms")
    print(
        f"  p50 {statistics.median(took):6.1f} ms   p95 {high:6.1f} ms   "
        f"{verdict(high, MOST_RECALL)}"
    )
    await provider.close()
    await bridge.close()
    parts(path, questions)


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1e3


def parts(path: Path, questions: Sequence[str]) -> None:
    """Print the CPU time of the parts of a recall, which the load of the machine hardly changes."""
    connection = sqlite3.connect(path)
    matrices = Matrices()
    took: dict[str, list[float]] = {"embedding": [], "vectors": [], "words": []}
    for question in [questions[0], *questions]:
        marks = [time.process_time()]
        (vector,) = MODEL.embed([question])
        marks.append(time.process_time())
        matrices.nearest(connection, 1, SCOPE, vector, 10, "all")
        marks.append(time.process_time())
        index_tables.find_words(connection, SCOPE, question, 10, "all")
        marks.append(time.process_time())
        for name, began, ended in zip(took, marks, marks[1:], strict=False):
            took[name].append((ended - began) * 1e3)
    said = ", ".join(f"{name} {statistics.median(times[1:]):.1f}" for name, times in took.items())
    print(f"  of it CPU, p50 in ms: {said}; reading all vectors once {took['vectors'][0]:.0f}")
    connection.close()


# -- quality


def quality(count: int) -> None:
    notes = [text for text, _ in PAIRS]
    texts = notes + distractors(count)
    connection = sqlite3.connect(":memory:")
    connection.executescript(INDEX.statements)
    index_tables.fill(connection, (note(number, text) for number, text in enumerate(texts)))
    vectors = [
        vector for at in range(0, len(texts), 32) for vector in MODEL.embed(texts[at : at + 32])
    ]
    index_tables.put_vectors(connection, 1, list(enumerate(vectors, 1)))
    matrices = Matrices()
    hits: dict[str, list[int]] = {"BM25": [], "meaning": [], "meaning, one of five by words": []}
    likeness: list[float] = []
    for number, (_, question) in enumerate(PAIRS, 1):
        (vector,) = MODEL.embed([question])
        near = matrices.nearest(connection, 1, SCOPE, vector, 50, "all")
        likeness += [score for score, no in near if no == number]
        by_meaning = [no for _, no in near]
        by_words = index_tables.find_words(connection, SCOPE, question, 50, "all")
        for name, order in (
            ("BM25", by_words),
            ("meaning", by_meaning),
            ("meaning, one of five by words", ordered(by_meaning, by_words, 5)),
        ):
            hits[name].append(order.index(number) if number in order[:5] else 99)
    print(f"{len(PAIRS)} questions, {len(PAIRS)} notes, {count:,} distractors")
    for name, ranks in hits.items():
        print(f"  {name:<30} first {ranks.count(0):>3}   in five {sum(r < 5 for r in ranks):>3}")
    low = sorted(likeness)[: len(likeness) // 10 + 1]
    print(
        f"  likeness of note and question: median {statistics.median(likeness):.2f}, the lowest "
        f"tenth up to {low[-1]:.2f}, {len(PAIRS) - len(likeness)} not among the nearest 50"
    )
    connection.close()


# -- cold start


def starts(url: str, folder: Path) -> None:
    command = str(Path(sys.executable).with_name("keryx"))
    homes = {name: home_with(folder / f"start-{name}", name) for name in ("", "vector")}
    os.environ["OPENAI_BASE_URL"] = url
    run = ["run", "--model", "openai:answer-5", "hi", "--home"]
    took: dict[tuple[str, str], list[float]] = {}
    for _ in range(STARTS):
        for name, home in homes.items():
            os.environ["KERYX_HOME"] = str(home)
            for kind, words in (("--version", ["--version"]), ("run", [*run, str(home)])):
                took.setdefault((kind, name), []).append(cpu_seconds([command, *words]))
    print(
        f"CPU seconds of a process, median of {STARTS}, in turn; bare python {bare_python():.3f} s"
    )
    for kind in ("--version", "run"):
        bare, vector = (statistics.median(took[kind, name]) for name in ("", "vector"))
        print(
            f"  keryx {kind:<10} no memory {bare:.3f} s   `vector` {vector:.3f} s   ratio"
            f" {vector / bare:.3f}"
        )
    del os.environ["KERYX_HOME"]


def bare_python() -> float:
    return statistics.median(cpu_seconds([sys.executable, "-c", ""]) for _ in range(STARTS))


def main() -> int:
    print(f"(load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
    with tempfile.TemporaryDirectory(prefix="remembering-") as name:
        folder = Path(name)
        with model_server() as server:
            uvloop.run(turns(server.url, folder))
            starts(server.url, folder)
        uvloop.run(recalls(folder))
    for count in (0, DISTRACTORS):
        quality(count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
