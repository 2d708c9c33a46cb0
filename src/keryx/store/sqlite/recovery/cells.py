"""The rows on one page of a database.

A row is accepted only if all of it is valid: its place on the page, its length, the types and
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
_MAX_VARINT: Final = 9
_INTEGERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_REAL: Final = 7
_FIRST_TEXT: Final = 12


class DamageError(ValueError):
    """The bytes are not a valid row."""


class Row(NamedTuple):
    """One row; `number` is its rowid, or None if its table has no rowids."""

    number: int | None
    values: tuple[Value, ...]


class PageRows(NamedTuple):
    """The rows that were read from one page."""

    rows: list[Row]
    is_complete: bool
    is_of_tree: bool
    """Whether the page has rows; other pages are free, or have the overflow of a row."""
    overflow: set[int]
    """The numbers of the pages on which its long rows continue."""


def read_rows(pages: Pages, number: int) -> PageRows:
    page = pages.read(number)
    start = _FILE_HEADER if number == 1 else 0
    page_rows = PageRows([], is_complete=False, is_of_tree=True, overflow=set())
    if len(page) < pages.size:
        return page_rows
    kind = page[start]
    if kind not in _KINDS:
        return page_rows._replace(is_of_tree=False)
    (count,) = struct.unpack_from(">H", page, start + 3)
    table = start + (12 if kind in (_INNER_INDEX, _INNER_TABLE) else 8)
    end = table + 2 * count
    if end > pages.usable:
        return page_rows
    is_complete = True
    for (pointer,) in struct.iter_unpack(">H", page[table:end]):
        try:
            if kind != _INNER_TABLE:
                page_rows.rows.append(_row(pages, page, kind, pointer, page_rows.overflow))
            is_complete = is_complete and pointer >= end
        except (DamageError, IndexError, struct.error, UnicodeDecodeError):
            is_complete = False
    return page_rows._replace(is_complete=is_complete)


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
            raise DamageError("a row is longer than its page")
        return Row(number, _values(page[at : at + length]))
    least = (usable - 12) * 32 // 255 - 23
    local = least + (length - least) % (usable - 4)
    local = local if local <= most else least
    if at + local + 4 > usable or length > pages.count * usable:
        raise DamageError("a row is longer than its page")
    parts = [page[at : at + local]]
    chain = _follow(pages, int.from_bytes(page[at + local : at + local + 4], "big"), length - local)
    parts += [part for _, part in chain]
    overflow.update(page_number for page_number, _ in chain)
    return Row(number, _values(b"".join(parts)))


def _follow(pages: Pages, number: int, length: int) -> list[tuple[int, bytes]]:
    parts: list[tuple[int, bytes]] = []
    while length > 0:
        page = pages.read(number)
        if len(page) < pages.size:
            raise DamageError("the overflow page of a row is missing")
        part = page[4 : min(pages.usable, 4 + length)]
        parts.append((number, part))
        length -= len(part)
        number = int.from_bytes(page[:4], "big")
    if number != 0:
        raise DamageError("a row continues after its end")
    return parts


def _values(payload: bytes) -> tuple[Value, ...]:
    header, at = _varint(payload, 0)
    if header > len(payload):
        raise DamageError("the header of a row has no end")
    types: list[int] = []
    while at < header:
        kind, at = _varint(payload, at)
        types.append(kind)
    if at != header:
        raise DamageError("the header of a row is cut off")
    values: list[Value] = []
    for kind in types:
        value, at = _value(payload, kind, at)
        values.append(value)
    if at != len(payload):
        raise DamageError("a row does not have the length that its header says")
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
            raise DamageError("a number is cut off")
        if kind == _REAL:
            return float(struct.unpack(">d", data)[0]), end
        return int.from_bytes(data, "big", signed=True), end
    if kind < _FIRST_TEXT:
        raise DamageError("a value has an unknown type")
    end = at + (kind - _FIRST_TEXT) // 2
    if end > len(payload):
        raise DamageError("a value is cut off")
    data = payload[at:end]
    return (data.decode() if kind % 2 else data), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_MAX_VARINT - 1):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:  # noqa: PLR2004 (the last byte has no high bit)
            return value, at + place + 1
    value = value << 8 | data[at + _MAX_VARINT - 1]
    return (value - (1 << 64) if value >> 63 else value), at + _MAX_VARINT
