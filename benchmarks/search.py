"""How fast history is found: lists, searches over a million messages, and what the index costs.

Texts are made of a vocabulary whose words are as frequent as Zipf's law says, with numbers and
names that occur once. Everything goes through the store, as the server does it. A fiftieth of it is
built, and all of it with `--whole`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import uvloop

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.events import LoggedEvent
from keryx.ports.store import Commit
from keryx.store.sqlite import SqliteStore
from keryx.testing.event_factory import EventFactory

SESSIONS = 100_000
TURNS = 5
SEARCHES = 300
LISTED = 10_000
TOGETHER = 64
COMMITS = 2_000
TARGET = 50.0


class Texts:
    """Texts that look like those of people and models, as far as an index can tell."""

    def __init__(self, chance: random.Random, words: int = 100_000) -> None:
        self.chance = chance
        parts = [a + b for a in ("", *"bcdfghklmnprstvw") for b in ("a", "e", "i", "o", "u", "er")]
        parts += ["tion", "ing", "ment", "th", "st", "con", "pre", "de"]
        made: dict[str, None] = {}
        while len(made) < words:
            length = 1 + min(4, int(chance.expovariate(0.7)) + (len(made) > 200))
            made["".join(chance.choices(parts, k=length))] = None
        self.words = list(made)
        # Frequent words are short.
        self.words[:2000] = sorted(self.words[:2000], key=len)
        self._weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(words)))

    def text(self, median: int) -> str:
        length = max(3, min(600, int(self.chance.lognormvariate(0, 0.8) * median)))
        words = self.chance.choices(self.words, cum_weights=self._weights, k=length)
        for place in range(0, length, 40):
            words[place] = f"{self.chance.randrange(16**7):x}"
        return " ".join(words)


def ideographs(chance: random.Random, median: int) -> str:
    """A text in a script without spaces: three thousand characters, as frequent as Zipf says."""
    length = max(3, int(chance.lognormvariate(0, 0.8) * median))
    ranks = [int(3000 ** chance.random()) - 1 for _ in range(length)]
    return "".join(" " if rank == 7 else chr(0x4E00 + 5 * rank) for rank in ranks)


def session(facts: EventFactory, say: Callable[[int], str]) -> Iterator[LoggedEvent]:
    yield facts.opened()
    for number in range(TURNS):
        turn = f"turn-{number}"
        yield facts.accepted(turn, say(20), turn)
        yield facts.delivered(turn, turn)
        yield facts.started(turn, turn)
        yield facts.step(turn_id=turn)
        yield facts.replied(say(50), turn_id=turn)
        yield facts.finished(turn)


def letters_of(events: tuple[LoggedEvent, ...]) -> int:
    texts = (getattr(event, "text", "") for event in events)
    return sum(len(text.encode()) for text in texts)


async def build(store: SqliteStore, sessions: int, say: Callable[[int], str]) -> int:
    """Bytes of text in all the messages."""
    letters = 0

    async def add(number: int) -> int:
        facts = EventFactory(f"s-{number:032x}")
        epoch = await store.claim(facts.session_id)
        events = tuple(session(facts, say))
        await store.append(Commit(session_id=facts.session_id, epoch=epoch, events=events))
        return letters_of(events)

    for start in range(0, sessions, TOGETHER):
        added = [add(number) for number in range(start, min(start + TOGETHER, sessions))]
        letters += sum(await asyncio.gather(*added))
    return letters


async def indexed(store: SqliteStore) -> float:
    """Seconds until all is in the index."""
    began = time.perf_counter()
    while not (await store.covered()).is_whole:
        pass
    return time.perf_counter() - began


def queries(texts: Texts, samples: list[str]) -> dict[str, list[str]]:
    """What people type: words of messages that there are, most of them not the most frequent."""
    chance = texts.chance

    def some(count: int) -> list[str]:
        words = chance.choice(samples).split()
        return chance.sample(words, k=min(count, len(words)))

    def begun(words: list[str], letters: int) -> str:
        return " ".join([*words[:-1], words[-1][:letters]])

    often = texts.words[:200]
    kinds: dict[str, Callable[[], str]] = {
        "a word": lambda: some(1)[0] + " ",
        "two words": lambda: " ".join(some(2)) + " ",
        "three words": lambda: " ".join(some(3)) + " ",
        "one of the most frequent": lambda: chance.choice(often) + " ",
        "two of the most frequent": lambda: " ".join(chance.sample(often, k=2)) + " ",
        "a word once": lambda: f"{chance.randrange(16**7):x} ",
        "one letter": lambda: begun(some(1), 1),
        "two letters": lambda: begun(some(1), 2),
        "three letters": lambda: begun(some(1), 3),
        "a word and a letter": lambda: begun(some(2), 1),
        "a word and three letters": lambda: begun(some(2), 3),
        "a rare word and a letter": lambda: f"{chance.choice(texts.words[-50_000:])} s",
    }
    return {kind: [make() for _ in range(SEARCHES // 10)] for kind, make in kinds.items()}


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


def quantile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


async def searches(store: SqliteStore, texts: Texts, samples: list[str]) -> bool:
    everything: list[float] = []
    for kind, asked in queries(texts, samples).items():
        took: list[float] = []
        hits = 0
        for words in asked:
            began = time.perf_counter()
            hits += len(await store.search(words))
            took.append((time.perf_counter() - began) * 1000)
        everything += took
        print(
            f"  {kind:<26} p50 {statistics.median(took):6.1f} ms   p95 {quantile(took, 0.95):6.1f}"
            f" ms   {hits / len(asked):4.1f} found"
        )
    middle, high = statistics.median(everything), quantile(everything, 0.95)
    print(f"  {'all':<26} p50 {middle:6.1f} ms   p95 {high:6.1f} ms   (target {TARGET:.0f} ms)")
    return high <= TARGET


async def lists(path: Path, bridge: Bridge) -> bool:
    store = await SqliteStore.open(path, bridge)
    for number in range(LISTED):
        facts = EventFactory(f"s-{number:032x}")
        epoch = await store.claim(facts.session_id)
        events = (facts.opened(f"a title of some length, number {number}"),)
        await store.append(Commit(session_id=facts.session_id, epoch=epoch, events=events))
    found: dict[int, float] = {}
    for limit in (50, LISTED):
        took = [await timed(lambda limit=limit: store.sessions(limit=limit)) for _ in range(20)]
        found[limit] = statistics.median(took)
        print(f"  a page of {limit:>6}: p50 {found[limit]:5.2f} ms   worst {max(took):5.2f} ms")
    await store.close()
    return found[LISTED] <= TARGET


async def commits(store: SqliteStore, name: str) -> list[float]:
    facts = EventFactory(name)
    epoch = await store.claim(name)
    took: list[float] = []
    for number in range(COMMITS):
        commit = Commit(session_id=name, epoch=epoch, events=(facts.replied(f"{number}"),))
        took.append(await timed(lambda commit=commit: store.append(commit)))
    return took


async def beside_indexing(path: Path, bridge: Bridge, texts: Texts) -> None:
    """What a commit takes while everything before it is being indexed, and while nothing is."""
    store = await SqliteStore.open(path, bridge)
    await build(store, 2000, texts.text)
    await indexed(store)
    quiet = await commits(store, "quiet")
    await store.close()
    path.with_name("search.db").unlink()
    store = await SqliteStore.open(path, bridge)
    behind = asyncio.ensure_future(indexed(store))
    busy: list[float] = []
    for number in itertools.count():
        busy += await commits(store, f"busy {number}")
        if behind.done() or number > 10:
            break
    await behind
    await store.close()
    for kind, took in (("nothing to index", quiet), ("indexing all the time", busy)):
        print(
            f"  {kind:<26} p50 {statistics.median(took):6.2f} ms   p99 {quantile(took, 0.99):6.2f}"
            f" ms"
        )


async def cjk(path: Path, bridge: Bridge, chance: random.Random) -> None:
    store = await SqliteStore.open(path, bridge)
    letters = await build(store, 2000, lambda median: ideographs(chance, median))
    await indexed(store)
    await store.close()
    size = path.with_name("search.db").stat().st_size
    print(f"  Chinese characters: {letters / 1e6:.1f} MB of text, index {size / letters:.2f} of it")


async def measure(sessions: int, folder: Path) -> bool:
    bridge = Bridge(Scope("benchmark"), threads=8)
    texts = Texts(random.Random(1))
    print(f"lists of {LISTED:,} sessions")
    is_good = await lists(folder / "lists" / "store.db", bridge)
    print("commits")
    await beside_indexing(folder / "beside" / "store.db", bridge, texts)
    path = folder / "large" / "store.db"
    store = await SqliteStore.open(path, bridge)
    print(f"{sessions * TURNS * 2:,} messages in {sessions:,} sessions")
    began = time.perf_counter()
    letters = await build(store, sessions, texts.text)
    built = time.perf_counter() - began
    took = await indexed(store)
    await store.close()
    size = path.with_name("search.db").stat().st_size
    print(
        f"  text {letters / 1e6:.0f} MB, store {path.stat().st_size / 1e6:.0f} MB, index"
        f" {size / 1e6:.0f} MB: {size / letters:.2f} of the text"
    )
    print(f"  built in {built:.0f} s, the rest indexed in {took:.0f} s more")
    await cjk(folder / "cjk" / "store.db", bridge, texts.chance)
    store = await SqliteStore.open(path, bridge)
    rows = await store.sessions(limit=20_000)
    samples: list[str] = []
    for row in texts.chance.sample(rows, k=500):
        entries = await store.transcript(row.session_id, limit=2)
        samples += [str(getattr(entry.event, "text", "")) for entry in entries]
    print("searches, through the store")
    is_good = await searches(store, texts, samples) and is_good
    name = rows[len(rows) // 2].session_id
    print(f"  deleting a session: {await timed(lambda: store.delete(name)):.0f} ms")
    await store.close()
    await bridge.close()
    return is_good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--whole", action="store_true", help="all messages, and not a fiftieth")
    sessions = SESSIONS if parser.parse_args().whole else SESSIONS // 50
    with tempfile.TemporaryDirectory(prefix="search-") as folder:
        is_good = uvloop.run(measure(sessions, Path(folder)))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
