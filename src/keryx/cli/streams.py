"""The standard streams of a command: their encoding, and the errors of reading and writing them.

This module does not know what is printed. Nothing heavy is imported: every command starts here.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO, cast

from keryx.errors import UserMustActError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDIN, STDOUT, STDERR = range(3)
_CAN_SHOW_ALL: Final = ("backslashreplace", "replace", "xmlcharrefreplace", "namereplace", "ignore")
"""Error handlers that can write a character which the encoding lacks; the others raise."""


class OutputError(OSError):
    """Standard output cannot be written."""

    @property
    def is_reader_gone(self) -> bool:
        """Return whether the process that read the output has ended, as `head` does."""
        return self.errno == errno.EPIPE


def prepare_streams() -> str | None:
    """Set up all three streams; return an error text if the process cannot work with them.

    A closed descriptor is opened on /dev/null: otherwise the next file or socket would get its
    number, and prints would go there.
    """
    closed = [number for number in (STDIN, STDOUT, STDERR) if _open_if_closed(number)]
    if STDIN in closed or sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(STDIN, closefd=False)))
    sys.stdout = _text(_Output(STDOUT, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Notes(STDERR, "w", closefd=False), sys.stderr)
    if STDOUT in closed:
        return "standard output is closed; redirect it to a file, or to /dev/null"
    return None


def read_stdin() -> str:
    """Return all of standard input as text; `UserMustActError` if it cannot be decoded."""
    # An ASCII locale limits what may be printed; it does not say how the input is encoded.
    encoding = "utf-8" if sys.stdin.encoding.lower() in ("ascii", "us-ascii") else None
    try:
        return sys.stdin.buffer.read().decode(encoding or sys.stdin.encoding)
    except UnicodeDecodeError as error:
        raise UserMustActError(
            f"standard input is not {error.encoding} (byte {error.object[error.start]:#04x} at "
            f"position {error.start}); convert it, for example with iconv"
        ) from error
    except OSError as error:
        raise UserMustActError(
            f"standard input cannot be read: {error.strerror}; pipe text in, or redirect a file"
        ) from error


def write_json(line: bytes) -> None:
    """Write a line of JSON to standard output, always in UTF-8."""
    sys.stdout.flush()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _open_if_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)
        return True
    return False


def _text(raw: io.FileIO, before: TextIO | None) -> io.TextIOWrapper:
    """Return a text stream like Python's own, but able to show every character.

    `before` is Python's own stream; None if its descriptor was closed.
    """
    stream = cast("io.TextIOWrapper[io.BufferedWriter] | None", before)
    errors = "" if stream is None else stream.errors or ""
    is_buffered = stream is None or not stream.write_through
    return io.TextIOWrapper(
        cast("BinaryIO", io.BufferedWriter(raw) if is_buffered else raw),
        encoding="utf-8" if stream is None else stream.encoding,
        errors=errors if errors in _CAN_SHOW_ALL else "backslashreplace",
        line_buffering=stream is not None and stream.line_buffering,
        write_through=not is_buffered,
    )


def _write(raw: io.FileIO, data: ReadableBuffer) -> int:
    """Write all of the data: an unbuffered text stream ignores a partial write."""
    remaining = memoryview(data).cast("B")
    while remaining:
        count = cast("int | None", io.FileIO.write(raw, remaining))
        if count is None:
            # Another process that shares the descriptor made it non-blocking, and it is full.
            select.select([], [raw], [])
        else:
            remaining = remaining[count:]
    return memoryview(data).nbytes


class _Output(io.FileIO):
    """Standard output; its errors are told apart from those of other files."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return _write(self, data)
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error


class _Notes(io.FileIO):
    """Standard error. A write that fails is ignored: it must not end the work."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return _write(self, data)
        except OSError:
            return memoryview(data).nbytes
