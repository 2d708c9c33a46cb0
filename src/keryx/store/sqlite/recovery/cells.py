"""The rows that stand on one page of a database.

A row is taken only if all of it makes sense: its place on the page, its length, the types and
lengths of its values. It refuses to know which table a row belongs to.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from keryx.store.sqlite.recovery.pages import Pages

Value = int | float | str | bytes | None

_INNER_INDEX: Final = 0x02
_INNER_TABLE: Final = 0x05
_LEAF_INDEX: Final = 0x0A
_LEAF_TABLE: Final = 0x0D
_KINDS: Final = (_INNER_INDEX, _INNER_TABLE, _LEAF_INDEX, _LEAF_TABLE)
_FILE_HEADER: Final = 100
_MOST_VARINT: Final = 9
_INTEGERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_REAL: Final = 7
_FIRST_TEXT: Final = 12


class DamageError(ValueError):
    """Something makes no sense."""


class Row(NamedTuple):
    """One row; `number` is its rowid, if it is one of a table that has them."""

    number: int | None
    values: tuple[Value, ...]


class PageRows(NamedTuple):
    """What was read of one page."""

    rows: list[Row]
    is_whole: bool
    is_of_tree: bool
    """Whether it is a page with rows at all, or one of the others: free, or the rest of a row."""
    overflow: set[int]
    """Other pages that its rows go on."""


def rows_on(pages: Pages, number: int) -> PageRows:
    page = pages.read(number)
    start = _FILE_HEADER if number == 1 else 0
    found = PageRows([], is_whole=False, is_of_tree=True, overflow=set())
    if len(page) < pages.size:
        return found
    kind = page[start]
    if kind not in _KINDS:
        return found._replace(is_of_tree=False)
    (count,) = struct.unpack_from(">H", page, start + 3)
    table = start + (12 if kind in (_INNER_INDEX, _INNER_TABLE) else 8)
    end = table + 2 * count
    if end > pages.usable:
        return found
    is_whole = True
    for (pointer,) in struct.iter_unpack(">H", page[table:end]):
        try:
            if kind != _INNER_TABLE:
                found.rows.append(_row(pages, page, kind, pointer, found.overflow))
            is_whole = is_whole and pointer >= end
        except (DamageError, IndexError, struct.error, UnicodeDecodeError):
            is_whole = False
    return found._replace(is_whole=is_whole)


def _row(pages: Pages, page: bytes, kind: int, at: int, overflow: set[int]) -> Row:
    if kind == _INNER_INDEX:
        at += 4
    length, at = _varint(page, at)
    number = None
    if kind == _LEAF_TABLE:
        number, at = _varint(page, at)
    usable = pages.usable
    most = usable - 35 if kind == _LEAF_TABLE else (usable - 12) * 64 // 255 - 23
    if length <= most:
        if at + length > usable:
            raise DamageError("a row that is longer than its page")
        return Row(number, _values(page[at : at + length]))
    least = (usable - 12) * 32 // 255 - 23
    here = least + (length - least) % (usable - 4)
    here = here if here <= most else least
    if at + here + 4 > usable or length > pages.count * usable:
        raise DamageError("a row that is longer than its page")
    parts = [page[at : at + here]]
    chain = _follow(pages, int.from_bytes(page[at + here : at + here + 4], "big"), length - here)
    parts += [part for _, part in chain]
    overflow.update(each for each, _ in chain)
    return Row(number, _values(b"".join(parts)))


def _follow(pages: Pages, number: int, length: int) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    while length > 0:
        page = pages.read(number)
        if len(page) < pages.size:
            raise DamageError("a row whose rest is not there")
        part = page[4 : min(pages.usable, 4 + length)]
        found.append((number, part))
        length -= len(part)
        number = int.from_bytes(page[:4], "big")
    if number != 0:
        raise DamageError("a row that goes on after its end")
    return found


def _values(payload: bytes) -> tuple[Value, ...]:
    header, at = _varint(payload, 0)
    if header > len(payload):
        raise DamageError("a row without an end of its beginning")
    types: list[int] = []
    while at < header:
        kind, at = _varint(payload, at)
        types.append(kind)
    if at != header:
        raise DamageError("a row that is cut in its beginning")
    values: list[Value] = []
    for kind in types:
        value, at = _value(payload, kind, at)
        values.append(value)
    if at != len(payload):
        raise DamageError("a row of another length than it says")
    return tuple(values)


def _value(payload: bytes, kind: int, at: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind in _INTEGERS or kind == _REAL:
        end = at + _INTEGERS.get(kind, 8)
        data = payload[at:end]
        if end > len(payload):
            raise DamageError("a number that is cut")
        if kind == _REAL:
            return float(struct.unpack(">d", data)[0]), end
        return int.from_bytes(data, "big", signed=True), end
    if kind < _FIRST_TEXT:
        raise DamageError("a value of no type")
    end = at + (kind - _FIRST_TEXT) // 2
    if end > len(payload):
        raise DamageError("a value that is cut")
    data = payload[at:end]
    return (data.decode() if kind % 2 else data), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_MOST_VARINT - 1):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:  # noqa: PLR2004 (the last byte has no high bit)
            return value, at + place + 1
    value = value << 8 | data[at + _MOST_VARINT - 1]
    return (value - (1 << 64) if value >> 63 else value), at + _MOST_VARINT
