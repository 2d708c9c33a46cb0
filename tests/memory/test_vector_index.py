"""The index of vectors: what is found, in which order, and what happens to models and removals."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from keryx.errors import StoreError
from keryx.events import RecalledMemory
from keryx.memory.providers.vector import index_tables
from keryx.memory.providers.vector.matrices import Matrices
from keryx.memory.providers.vector.minilm import MiniLM
from keryx.memory.providers.vector.provider import VectorProvider
from keryx.memory.providers.vector.result_order import ordered
from keryx.ports.memory import Memory, MemoryItem, MemoryScope, TurnText, Withdrawal
from keryx.testing.memory_contract import SCOPE, memory, store, turn
from tests.memory.vector_index import EMBEDDERS, vector_index
from tests.server.served_host import in_thread

pytestmark = pytest.mark.promise("003.1")

MINILM = EMBEDDERS["minilm"]
TEA = memory(1, "The user drinks green tea.")
PORT = memory(2, "The server listens on port 8080.")
CAT = memory(3, "Momo is the name of the cat.")


class OneVector:
    """A model for which all texts mean the same. It may wait before it embeds texts."""

    def __init__(self, name: str, gate: threading.Event | None = None, at: str = TEA.text) -> None:
        self.name = name
        self.dimension = 2
        self.digest = f"digest of {name}"
        self._gate = gate
        self._at = at

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        if self._gate is not None and self._at in texts:
            self._gate.wait(20)
        return [np.array([1, 0], "<f4").tobytes() for _ in texts]


async def stored(provider: VectorProvider, *items: MemoryItem) -> None:
    for item in items:
        await store(provider, item)
    await provider.wait_indexed()


def ids(results: Iterable[RecalledMemory]) -> list[str]:
    return [result.memory_id for result in results]


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


async def test_a_text_is_found_by_its_meaning_without_a_common_word(tmp_path: Path) -> None:
    async with vector_index(tmp_path, MINILM) as index:
        provider = index.open()
        await stored(provider, PORT, TEA, CAT)
        for words, expected in (
            ("Which beverage does this person enjoy?", TEA),
            ("At what network address can I reach the HTTP service?", PORT),
            ("What is my pet called?", CAT),
        ):
            assert ids(await provider.recall(SCOPE, words, 10))[0] == expected.id
            assert ids(await provider.context(SCOPE, words, 10))[0] == expected.id
        await provider.close()
        assert index.errors == []


async def test_without_a_model_words_are_searched(tmp_path: Path) -> None:
    async with vector_index(tmp_path, None) as index:
        provider = index.open()
        await stored(provider, PORT, TEA)
        assert ids(await provider.recall(SCOPE, "Is it green tea or black tea?", 10)) == [TEA.id]
        assert ids(await provider.recall(SCOPE, "Which beverage?", 10)) == []
        await provider.close()


async def test_turns_are_recalled_with_a_label_and_never_given_by_themselves(
    tmp_path: Path,
) -> None:
    async with vector_index(tmp_path, MINILM) as index:
        provider = index.open()
        said = turn(1, "Where should I travel to see old temples?", "Visit Kyoto in autumn.")
        await stored(provider, said)
        results = await provider.recall(SCOPE, "a trip to ancient shrines", 10)
        assert [(r.memory_id, r.text, r.trust, r.provider) for r in results] == [
            ("m1", f"The user said: {said.texts[0].text}", "person", "vector"),
            ("p1", f"The assistant answered: {said.texts[1].text}", "page", "vector"),
        ]
        assert await provider.context(SCOPE, "a trip to ancient shrines", 10) == []
        matches = await provider.search_turns(SCOPE, "a trip to ancient shrines", 10)
        assert [(m.id, m.turn_id, m.session_id, m.by) for m in matches] == [
            ("m1", "t1", "s1", "user"),
            ("p1", "t1", "s1", "assistant"),
        ]
        assert await provider.search_turns(MemoryScope("default", "/other"), "shrines", 10) == []
        await provider.close()


async def test_equal_ids_of_messages_in_two_sessions_are_two_texts(tmp_path: Path) -> None:
    async with vector_index(tmp_path, None) as index:
        provider = index.open()
        first = turn(1, "The first kettle", "One.")
        second = turn(2, "The second kettle", "Two.", session_id="s2")
        second = structs.replace(second, texts=(TurnText("m1", "user", "The second kettle"),))
        await stored(provider, first, second)
        await store(provider, Withdrawal(id="w1", session_id="s1", items=(first.id,)))
        results = await provider.recall(SCOPE, "kettle", 10)
        assert [result.text for result in results] == ["The user said: The second kettle"]
        await provider.close()


async def test_a_forgotten_session_takes_its_turns_with_it_to_the_last_byte(tmp_path: Path) -> None:
    async with vector_index(tmp_path, MINILM) as index:
        provider = index.open()
        secret = memory(7, "The safe opens with quetzalcoatl.", session_id="s2")
        await stored(provider, TEA, secret)
        await stored(provider, turn(9, "My door code is xylophone", "Noted.", session_id="s2"))
        (vector,) = await in_thread(
            rows,
            index.path,
            "SELECT vector FROM vectors JOIN texts ON no = text_no WHERE id = 'm9'",
        )
        erase = Withdrawal(id="w", session_id="s2", items=("mem_7", "s2"), erase=True)
        await store(provider, erase)
        assert list(await provider.remaining(["mem_7", "s2", "t9", TEA.id])) == [TEA.id]
        assert ids(await provider.recall(SCOPE, "xylophone quetzalcoatl safe code", 10)) == []
        await provider.close()
        for file in await in_thread(lambda: list(tmp_path.iterdir())):
            data = await in_thread(file.read_bytes)
            assert b"xylophone" not in data
            assert b"quetzalcoatl" not in data
            assert vector[0] not in data


async def test_vectors_of_another_model_are_not_searched_and_are_rebuilt(tmp_path: Path) -> None:
    async with vector_index(tmp_path, None) as index:
        provider = index.open(OneVector("first"))
        await stored(provider, TEA)
        assert ids(await provider.recall(SCOPE, "anything", 10)) == [TEA.id]
        await provider.close()
        gate = threading.Event()
        provider = index.open(OneVector("second", gate))
        # The old vector would be the best hit; the new one is not there yet.
        assert ids(await provider.recall(SCOPE, "anything", 10)) == []
        assert ids(await provider.recall(SCOPE, "tea", 10)) == [TEA.id]
        gate.set()
        await provider.wait_indexed()
        assert ids(await provider.recall(SCOPE, "anything", 10)) == [TEA.id]
        await provider.close()
        query = "SELECT name, dimension, digest FROM vectors JOIN models ON no = model"
        assert await in_thread(rows, index.path, query) == [("second", 2, "digest of second")]


async def test_other_weights_are_refused_with_advice_and_words_still_work(tmp_path: Path) -> None:
    weights = tmp_path / "model.onnx"
    await in_thread(weights.write_bytes, b"not the model")
    async with vector_index(tmp_path, None) as index:
        provider = index.open(MiniLM(weights))
        await stored(provider, TEA)
        for _ in range(2):
            assert ids(await provider.recall(SCOPE, "green", 10)) == [TEA.id]
        await provider.close()
        (error,) = index.errors
        assert "is not the one that Keryx was tested with" in error
        assert "pip install --force-reinstall 'keryx[vector]'" in error


async def test_a_new_file_takes_all_memories_again(tmp_path: Path) -> None:
    async def memories() -> list[Memory]:
        return [TEA, CAT]

    async with vector_index(tmp_path, None) as index:
        provider = index.open(memories=memories)
        assert ids(await provider.recall(SCOPE, "tea", 10)) == [TEA.id]
        await store(provider, Withdrawal(id="w1", session_id="s1", items=(TEA.id,)))
        await provider.close()
        provider = index.open(memories=memories)
        assert ids(await provider.recall(SCOPE, "tea Momo", 10)) == [CAT.id]
        await provider.close()


async def test_a_file_that_cannot_be_opened_is_an_error_until_it_can(tmp_path: Path) -> None:
    async with vector_index(tmp_path, MINILM) as index:
        await in_thread(index.path.mkdir)
        provider = index.open()
        for _ in range(2):
            with pytest.raises(StoreError, match=r"vectors\.db cannot be read or written"):
                await store(provider, TEA)
        await in_thread(index.path.rmdir)
        await stored(provider, TEA)
        assert ids(await provider.recall(SCOPE, "Which beverage?", 10)) == [TEA.id]
        await provider.close()
        assert index.errors == []


async def test_a_model_is_used_after_a_failure_of_the_file_alone(tmp_path: Path) -> None:
    gate = threading.Event()
    async with vector_index(tmp_path, OneVector("one", gate, at="")) as index:
        provider = index.open()
        await store(provider, TEA)
        # The model is being loaded. When that ends, its name cannot be written.
        connection = sqlite3.connect(index.path)
        connection.execute("ALTER TABLE models RENAME TO hidden")
        gate.set()
        with pytest.raises(StoreError):
            await provider.recall(SCOPE, "Which beverage?", 10)
        connection.execute("ALTER TABLE hidden RENAME TO models")
        connection.close()
        assert ids(await provider.recall(SCOPE, "Which beverage?", 10)) == []
        await stored(provider, PORT)
        assert set(ids(await provider.recall(SCOPE, "Which beverage?", 10))) == {TEA.id, PORT.id}
        await provider.close()
        (error,) = index.errors
        assert error.startswith("embed texts: the memories in ")


def test_words_of_a_great_many_texts_are_left_out(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "index.db")
    connection.executescript(index_tables.INDEX.statements)
    count = index_tables.MAX_RANKED + 1
    notes = [memory(at, f"The note {at} of the user") for at in range(1, count)]
    index_tables.apply(connection, [*notes, memory(count, "The user has a Märchenbuch")])

    def find(words: str, *, or_newest: bool = False) -> list[int]:
        return index_tables.find_words(connection, SCOPE, words, 2, "all", or_newest=or_newest)

    assert find("the user and the note 17") == [17]
    assert find("the märchenbuch and the user") == [count]
    assert find("the user, perhaps") == []
    assert find("the user, perhaps", or_newest=True) == [count, count - 1]
    assert find("perhaps", or_newest=True) == []
    connection.close()


def test_one_of_five_places_is_for_the_words() -> None:
    meaning, words = [1, 2, 3, 4, 5, 6, 7, 8, 9], [70, 2, 80]
    assert ordered(meaning, words, 5) == [1, 2, 3, 4, 70]
    assert ordered(meaning, words, 10) == [1, 2, 3, 4, 70, 5, 6, 7, 8, 80]
    assert ordered(meaning, [2], 5) == [1, 2, 3, 4, 5]
    assert ordered([1, 2], words, 10) == [1, 2, 70, 80]
    assert ordered([], words, 2) == [70, 2]


@pytest.mark.parametrize("max_bytes", [0, 100_000, 300_000, 10**9])
def test_the_bound_of_the_matrices_changes_no_result(max_bytes: int, tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    vectors = chance.standard_normal((9_000, 8)).astype("<f4")
    connection = sqlite3.connect(tmp_path / "index.db")
    connection.executescript(index_tables.INDEX.statements)
    rows_ = [(at, "/a" if at % 3 else "", at % 2, v.tobytes()) for at, v in enumerate(vectors, 1)]
    statement = (
        "INSERT INTO vectors (text_no, model, profile, workspace, is_turn, vector)"
        " VALUES (?, 1, 'p', ?, ?, ?)"
    )
    matrices = Matrices(max_bytes)
    for new in (rows_[:5_000], rows_[5_000:8_999], rows_[8_999:], []):
        connection.executemany(statement, new)
        # The nearest ones of before are gone.
        for no in chance.integers(1, 9_000, 20) if new else range(1, 9_000, 2):
            connection.execute("DELETE FROM vectors WHERE text_no = ?", (int(no),))
            connection.execute("INSERT INTO removals (text_no) VALUES (?)", (int(no),))
        for scope in (MemoryScope("p", "/a"), MemoryScope("p", "/b"), MemoryScope("q", "/a")):
            near = matrices.nearest(connection, 1, scope, vectors[0].tobytes(), 7, "turns")
            seen = connection.execute(
                "SELECT text_no FROM vectors WHERE profile = ? AND workspace IN ('', ?)"
                " AND is_turn",
                (scope.profile, scope.workspace),
            )
            scores = sorted((float(vectors[no - 1] @ vectors[0]), no) for (no,) in seen)
            assert [no for _, no in near] == [no for _, no in reversed(scores[-7:])]
    connection.close()


def test_the_model_writes_nothing_and_leaves_the_environment_alone(tmp_path: Path) -> None:
    program = (
        "from keryx.memory.providers.vector.minilm import MiniLM, missing\n"
        "assert missing() is None\n"
        "assert len(MiniLM().embed(['one', 'two'])[1]) == 4 * 384\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)
    assert list(home.rglob("*")) == []
