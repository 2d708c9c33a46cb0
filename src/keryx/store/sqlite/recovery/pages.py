"""The pages of a database file, with the committed pages of its write-ahead log.

It owns the layout of the two files. It refuses to know the content of a page.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

_MAGIC: Final = b"SQLite format 3\x00"
_USUAL_SIZE: Final = 4096
_LEAST_SIZE: Final = 512
_LOG_MAGIC: Final = (0x377F0682, 0x377F0683)
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_MASK: Final = 0xFFFFFFFF


class Pages:
    """All pages of one file, numbered from 1."""

    def __init__(self, file: BinaryIO, log: bytes) -> None:
        self._file = file
        header = file.read(100)
        self.size = _page_size(header)
        is_sane = header.startswith(_MAGIC)
        # Some programs reserve bytes at the end of each page; this program does not.
        self.usable = self.size - (header[20] if is_sane else 0)
        length = file.seek(0, 2)
        self._in_file = length // self.size
        self._logged, in_log = _committed_pages(log, self.size)
        stated_count = int.from_bytes(header[28:32], "big") if is_sane else 0
        if not in_log and header[24:28] != header[92:96]:
            stated_count = 0  # the last program that wrote the file did not update the count
        # Pages of the file after the count in the log are from before the file was made smaller.
        self.count = in_log or self._in_file
        self.missing = max(0, stated_count - self._in_file) if not in_log else 0
        self.is_cut = length % self.size > 0

    def __iter__(self) -> Iterator[int]:
        return iter(range(1, self.count + 1))

    def read(self, number: int) -> bytes:
        """Return one page; empty if there is none."""
        page = self._logged.get(number)
        if page is not None:
            return page
        if not 0 < number <= self._in_file:
            return b""
        self._file.seek((number - 1) * self.size)
        return self._file.read(self.size)


@contextmanager
def open_pages(path: Path) -> Generator[Pages]:
    log = path.with_name(path.name + "-wal")
    with path.open("rb") as file:
        yield Pages(file, log.read_bytes() if log.is_file() else b"")


def _page_size(header: bytes) -> int:
    size = int.from_bytes(header[16:18], "big")
    size = 65536 if size == 1 else size
    is_sane = header.startswith(_MAGIC) and size >= _LEAST_SIZE and size & (size - 1) == 0
    return size if is_sane else _USUAL_SIZE


def _committed_pages(log: bytes, size: int) -> tuple[dict[int, bytes], int]:
    """Return the last committed version of each page in the log, and the count of pages."""
    committed: dict[int, bytes] = {}
    if len(log) < _LOG_HEADER:
        return committed, 0
    magic, _, log_size = struct.unpack(">III", log[:12])
    if magic not in _LOG_MAGIC or log_size != size:
        return committed, 0
    order = ">" if magic & 1 else "<"
    salts = log[16:24]
    sums = _checksum(log[:24], order, (0, 0))
    if struct.pack(">II", *sums) != log[24:32]:
        return committed, 0
    pending: dict[int, bytes] = {}
    count = 0
    for at in range(_LOG_HEADER, len(log) - size - _FRAME_HEADER + 1, size + _FRAME_HEADER):
        head, page = log[at : at + 24], log[at + 24 : at + 24 + size]
        sums = _checksum(page, order, _checksum(head[:8], order, sums))
        if head[8:16] != salts or struct.pack(">II", *sums) != head[16:24]:
            break
        number, after = struct.unpack(">II", head[:8])
        pending[number] = page
        if after:
            committed.update(pending)
            pending.clear()
            count = after
    return {number: page for number, page in committed.items() if number <= count}, count


def _checksum(data: bytes, order: str, before: tuple[int, int]) -> tuple[int, int]:
    first, second = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _MASK
        second = (second + odd + first) & _MASK
    return first, second
