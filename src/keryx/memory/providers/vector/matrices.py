"""The vectors of each scope in memory, as matrices; compares them with the vector of a question.

A matrix follows its rows: those that are new are read, those that were removed are dropped. All
matrices together are bounded: what is beyond is read from the file for every question. Used by one
thread at a time.
"""

from __future__ import annotations

import heapq
import importlib
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from keryx.memory.providers.vector import index_tables
from keryx.memory.providers.vector.index_tables import Part
from keryx.ports.memory import MemoryScope

MAX_BYTES: Final = 256 * 1024 * 1024
"""Memory for all matrices: 170,000 vectors of 384 numbers."""
# Rows that are read and multiplied at once.
BLOCK: Final = 4_096


class Block:
    """Some vectors, the numbers of their texts, and which of them are of turns."""

    __slots__ = ("numbers", "turns", "vectors")

    def __init__(self, numbers: Any, turns: Any, vectors: Any) -> None:
        self.numbers = numbers
        self.turns = turns
        self.vectors = vectors


class Matrix:
    """The vectors of one profile and one workspace, as far as there is room."""

    def __init__(self, removals: int) -> None:
        self.removals = removals
        """The last removal that it follows."""
        self.last = 0
        self.blocks: list[Block] = []

    @property
    def size(self) -> int:
        return sum(block.vectors.nbytes for block in self.blocks)


class Matrices:
    """All matrices, those that were used last at the end."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._matrices: dict[tuple[int, str, str], Matrix] = {}

    def nearest(
        self,
        connection: sqlite3.Connection,
        model: int,
        scope: MemoryScope,
        vector: bytes,
        limit: int,
        part: Part,
    ) -> list[tuple[float, int]]:
        """Return the nearest texts of this scope: their likeness and number, the nearest first."""
        if not scope.profile:
            return []
        numpy: Any = importlib.import_module("numpy")
        question = numpy.frombuffer(vector, "<f4")
        best: list[tuple[float, int]] = []
        for workspace in dict.fromkeys(("", scope.workspace)):
            for block in self._blocks(connection, numpy, (model, scope.profile, workspace)):
                best = heapq.nlargest(limit, [*best, *_best(numpy, block, question, limit, part)])
        return best

    def _blocks(
        self, connection: sqlite3.Connection, numpy: Any, key: tuple[int, str, str]
    ) -> Iterator[Block]:
        """Yield the vectors of a scope; keep those that are new, as far as there is room."""
        removals = index_tables.last_removal(connection)
        matrix = self._matrices.pop(key, None) or Matrix(removals)
        self._matrices[key] = matrix
        if matrix.removals != removals:
            gone = index_tables.removed_since(connection, matrix.removals)
            matrix.blocks = _without(numpy, matrix.blocks, gone)
            matrix.removals = removals
        is_full = False
        for last, block in _read(connection, numpy, key, matrix.last):
            is_full = is_full or not self._make_room(key, block.vectors.nbytes)
            if is_full:
                yield block
            else:
                _append(numpy, matrix, block)
                matrix.last = last
        yield from matrix.blocks

    def _make_room(self, key: tuple[int, str, str], size: int) -> bool:
        while sum(matrix.size for matrix in self._matrices.values()) + size > self._max_bytes:
            oldest = next(iter(self._matrices))
            if oldest == key:
                return False
            del self._matrices[oldest]
        return True


def _read(
    connection: sqlite3.Connection, numpy: Any, key: tuple[int, str, str], after: int
) -> Iterator[tuple[int, Block]]:
    """Yield the vectors behind a place, with the last place of each block."""
    model, profile, workspace = key
    cursor = connection.execute(
        "SELECT place, text_no, is_turn, vector FROM vectors WHERE profile = ? AND workspace = ?"
        " AND model = ? AND place > ? ORDER BY place",
        (profile, workspace, model, after),
    )
    while rows := cursor.fetchmany(BLOCK):
        places, texts, turns, vectors = zip(*rows, strict=True)
        matrix = numpy.frombuffer(b"".join(vectors), "<f4").reshape(len(rows), -1)
        yield places[-1], Block(numpy.array(texts), numpy.array(turns, bool), matrix)


def _append(numpy: Any, matrix: Matrix, block: Block) -> None:
    if matrix.blocks and len(matrix.blocks[-1].numbers) + len(block.numbers) <= BLOCK:
        last = matrix.blocks.pop()
        block = Block(
            numpy.concatenate((last.numbers, block.numbers)),
            numpy.concatenate((last.turns, block.turns)),
            numpy.concatenate((last.vectors, block.vectors)),
        )
    matrix.blocks.append(block)


def _without(numpy: Any, blocks: Sequence[Block], gone: Sequence[int]) -> list[Block]:
    """Return the blocks without these texts; nothing of their vectors stays in memory."""
    rest: list[Block] = []
    for block in blocks:
        stays = numpy.isin(block.numbers, gone, invert=True)
        if stays.all():
            rest.append(block)
        elif stays.any():
            rest.append(Block(block.numbers[stays], block.turns[stays], block.vectors[stays]))
    return rest


def _best(
    numpy: Any, block: Block, question: Any, limit: int, part: Part
) -> list[tuple[float, int]]:
    # Not `@`: its library would wait for threads of its own, and was no faster when they were free.
    likeness = numpy.einsum("ij,j->i", block.vectors, question)
    if part != "all":
        likeness[block.turns != (part == "turns")] = -numpy.inf
    places = range(len(likeness))
    if len(likeness) > limit:
        places = numpy.argpartition(-likeness, limit - 1)[:limit]
    return [
        (float(likeness[at]), int(block.numbers[at])) for at in places if likeness[at] != -numpy.inf
    ]
