"""What the index promises beyond the contract: it lags behind no commit, delays none, and can be
made anew from the log at any time."""

from __future__ import annotations

import random
import shutil
import sqlite3
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from keryx.aio.bridge import Bridge
from keryx.errors import StoreError
from keryx.ports.store import Commit, Store
from keryx.store.sqlite import SqliteStore
from keryx.store.sqlite.index import index_step
from keryx.testing.event_factory import EventFactory
from tests.store.contracts.history import Log, log_of, names

pytestmark = pytest.mark.promise("server.7")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest_asyncio.fixture
async def store(path: Path, bridge: Bridge) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(path, bridge)
    yield opened
    await opened.close()


async def say(store: Store, name: str, text: str) -> None:
    log = await log_of(store, name)
    await log.say(text)


async def fill(store: Store, sessions: int, replies: int = 4) -> None:
    for number in range(sessions):
        log = await log_of(store, f"s{number}")
        facts = log.facts
        await log.add(*(facts.replied(f"common word{number} n{turn}") for turn in range(replies)))


async def test_what_was_not_indexed_before_the_end_is_at_the_next_start(
    path: Path, bridge: Bridge
) -> None:
    store = await SqliteStore.open(path, bridge)
    await say(store, "a", "first needle")
    assert await names(store, "needle") == "a"
    await say(store, "b", "second needle")
    await store.close()
    with closing(sqlite3.connect(path.with_name("search.db"))) as index:
        assert index.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
    store = await SqliteStore.open(path, bridge)
    assert await names(store, "needle") == "ba"
    assert (await store.covered()).is_whole
    await store.close()


async def test_an_index_that_was_removed_is_made_anew(path: Path, bridge: Bridge) -> None:
    store = await SqliteStore.open(path, bridge)
    await fill(store, 5)
    assert len(await store.search("common")) == 20
    await store.close()
    path.with_name("search.db").unlink()
    store = await SqliteStore.open(path, bridge)
    assert len(await store.search("common")) == 20
    await store.close()


@pytest.mark.parametrize("at", [0, 18, 1024, 4096 * 3])
async def test_a_damaged_index_is_made_anew_and_the_store_goes_on(
    path: Path, bridge: Bridge, at: int
) -> None:
    store = await SqliteStore.open(path, bridge)
    await fill(store, 40, replies=20)
    assert len(await store.search("word7 n3")) == 1
    await store.close()
    with path.with_name("search.db").open("r+b") as file:
        file.seek(at)
        file.write(random.Random(at).randbytes(40_000))
    store = await SqliteStore.open(path, bridge)
    await say(store, "new", "needle")
    for _ in range(2):
        # One search may be needed to find the damage.
        await store.search("word7 n3")
    assert len(await store.search("word7 n3")) == 1
    assert await names(store, "needle") == "new"
    assert (await store.covered()).problem is None
    await say(store, "newer", "needle")
    assert await names(store, "needle") == "newernew"
    await store.close()


async def test_the_index_of_another_store_is_not_taken_for_this_one_s(
    tmp_path: Path, bridge: Bridge
) -> None:
    for name in ("one", "two"):
        store = await SqliteStore.open(tmp_path / name / "store.db", bridge)
        await say(store, name, f"needle of {name}")
        assert await names(store, "needle") == name
        await store.close()
    shutil.copy(tmp_path / "one" / "search.db", tmp_path / "two" / "search.db")
    store = await SqliteStore.open(tmp_path / "two" / "store.db", bridge)
    assert await names(store, "needle") == "two"
    await store.close()


async def test_a_store_that_was_put_back_to_an_earlier_state_is_indexed_anew(
    path: Path, bridge: Bridge
) -> None:
    store = await SqliteStore.open(path, bridge)
    await say(store, "a", "early needle")
    await store.close()
    shutil.copy(path, path.with_name("backup"))
    store = await SqliteStore.open(path, bridge)
    await say(store, "b", "later needle")
    assert await names(store, "needle") == "ba"
    await store.close()
    shutil.copy(path.with_name("backup"), path)
    store = await SqliteStore.open(path, bridge)
    assert await names(store, "needle") == "a"
    await say(store, "c", "another needle")
    assert await names(store, "needle") == "ca"
    await store.close()


async def test_who_only_reads_can_search_and_indexes_nothing(
    store: SqliteStore, path: Path, bridge: Bridge
) -> None:
    reader = await SqliteStore.open(path, bridge, read_only=True)
    assert await reader.search("needle") == []
    await say(store, "a", "needle")
    assert await reader.search("needle") == []
    assert not (await reader.covered()).is_whole
    assert await names(store, "needle") == "a"
    assert await names(reader, "needle") == "a"
    assert (await reader.covered()).is_whole
    await say(store, "b", "needle")
    assert await names(reader, "needle") == "a"
    assert not (await reader.covered()).is_whole
    await reader.close()


async def test_two_stores_on_one_file_index_each_fact_once(
    store: SqliteStore, path: Path, bridge: Bridge
) -> None:
    other = await SqliteStore.open(path, bridge)
    for number in range(5):
        await say(store, f"a{number}", "needle")
        await say(other, f"b{number}", "needle")
        assert len(await store.search("needle")) == 2 * number + 2
        assert len(await other.search("needle")) == 2 * number + 2
    await other.close()
    with closing(sqlite3.connect(path.with_name("search.db"))) as index:
        assert index.execute("SELECT count(*) FROM entries").fetchone() == (10,)


async def test_commits_do_not_wait_for_an_index_that_is_locked(
    store: SqliteStore, path: Path
) -> None:
    await say(store, "a", "needle")
    assert await names(store, "needle") == "a"
    shelf = path.with_name("search.db")
    with closing(sqlite3.connect(shelf, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        await say(store, "b", "needle")
        # What is indexed already is found meanwhile.
        assert await names(store, "needle") == "a"
        assert (await store.session("b")) is not None
    await say(store, "c", "needle")
    assert await names(store, "needle") == "cba"


async def test_an_index_that_cannot_be_written_is_a_problem_of_searches_only(
    path: Path, bridge: Bridge
) -> None:
    path.with_name("search.db").mkdir()
    store = await SqliteStore.open(path, bridge)
    await say(store, "a", "needle")
    assert await store.search("needle") == []
    covered = await store.covered()
    assert not covered.is_whole
    assert covered.problem is not None
    assert len(await store.events("a")) > 0
    assert await store.delete("a")
    await store.close()


async def test_many_volumes_are_searched_and_those_that_were_touched_written_anew(
    path: Path, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_step, "VOLUME_ENTRIES", 10)
    store = await SqliteStore.open(path, bridge)
    await fill(store, 30)
    assert len(await store.search("common", limit=500)) == 120
    assert [hit.session_id for hit in await store.search("word3 ")] == ["s3"] * 4
    assert len(await store.search("n2 word")) == 20
    assert len(await store.search("common n2 word1", limit=50)) == 11
    for number in (3, 17, 29):
        assert await store.delete(f"s{number}")
    assert len(await store.search("common", limit=500)) == 108
    assert (await store.covered()).is_whole
    assert await store.search("word17") == []
    assert len(await store.search("word16")) == 4
    await store.close()


async def test_the_same_is_found_whether_words_are_indexed_one_by_one_or_all_at_once(
    tmp_path: Path, bridge: Bridge
) -> None:
    chance = random.Random(4)
    path = tmp_path / "one" / "store.db"
    store = await SqliteStore.open(path, bridge)
    logs: dict[str, Log] = {}
    for number in range(60):
        name = chance.choice("abcde")
        if name not in logs:
            logs[name] = await log_of(store, name)
        words = " ".join(chance.choices(["red", "green", "blue", "bluish", "grey"], k=3))
        await logs[name].say(words, words[::-1], turn_id=f"t{number}")
        if number % 7 == 0:
            await logs[name].add(logs[name].facts.undone(f"t{number}"))
        await store.search("green")
    queries = ("red", "blu", "red blue", "blue red", "gre", "grey green blui")
    by_one = [await store.search(words, limit=200) for words in queries]
    await store.close()
    path.with_name("search.db").unlink()
    store = await SqliteStore.open(path, bridge)
    assert [await store.search(words, limit=200) for words in queries] == by_one
    await store.close()


async def test_few_long_replies_are_in_memory_while_they_are_indexed(
    path: Path, bridge: Bridge
) -> None:
    store = await SqliteStore.open(path, bridge)
    log = await log_of(store, "a")
    for number in range(40):
        await log.add(log.facts.replied(f"needle{number} " + "word " * 200_000))
    await store.close()
    path.with_name("search.db").unlink(missing_ok=True)
    tracemalloc.start()
    try:
        store = await SqliteStore.open(path, bridge)
        assert len(await store.search("needle39")) == 1
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    await store.close()
    assert most < 25_000_000  # all of them have 40 million letters


async def test_a_damaged_fact_keeps_no_other_from_being_found(path: Path, bridge: Bridge) -> None:
    store = await SqliteStore.open(path, bridge)
    for name in "abc":
        await say(store, name, "needle")
    await store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE events SET body = x'ff' WHERE no = 2")
    path.with_name("search.db").unlink(missing_ok=True)
    store = await SqliteStore.open(path, bridge)
    assert await names(store, "needle") == "ca"
    with pytest.raises(StoreError):
        await store.events("b")
    await store.close()


async def test_the_index_is_much_smaller_than_the_text(path: Path, bridge: Bridge) -> None:
    chance = random.Random(5)
    vocabulary = [f"{chance.randrange(36**4):x}word{number}" for number in range(3000)]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    store = await SqliteStore.open(path, bridge)
    letters = 0
    for number in range(20):
        facts = EventFactory(f"s{number}")
        epoch = await store.claim(facts.session_id)
        texts = [" ".join(chance.choices(vocabulary, weights, k=60)) for _ in range(100)]
        letters += sum(map(len, texts))
        events = tuple(facts.replied(text) for text in texts)
        await store.append(Commit(session_id=facts.session_id, epoch=epoch, events=events))
    while not (await store.covered()).is_whole:
        pass
    await store.close()
    assert path.with_name("search.db").stat().st_size < letters / 2
