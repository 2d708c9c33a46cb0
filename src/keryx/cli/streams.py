"""The standard streams of a command: how they are read, and what a write that fails means.

It owns the errors of standard output and the encoding of both directions. It refuses to know what
is printed. Nothing heavy is imported: every command starts here.
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
"""Ways to write a letter that an encoding lacks; the others raise an error."""


class OutputError(OSError):
    """Standard output takes no more."""

    @property
    def is_reader_gone(self) -> bool:
        """Whether whoever read the output has ended, as `head` does."""
        return self.errno == errno.EPIPE


def prepare_streams() -> str | None:
    """Make all three usable for this process; the result says why it cannot work with them.

    A descriptor that is closed is opened on /dev/null: otherwise the next file or socket would get
    its number, and whoever prints would write into that.
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
    """All of standard input, as text; `UserMustActError` says why it is none."""
    # Whoever sets the encoding to ASCII means that nothing else may be printed.
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
    """A line of JSON to standard output. JSON is UTF-8, whatever the encoding of texts is."""
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
    """As Python made it, but able to show every letter; None if the stream was closed."""
    made = cast("io.TextIOWrapper[io.BufferedWriter] | None", before)
    errors = "" if made is None else made.errors or ""
    is_buffered = made is None or not made.write_through
    return io.TextIOWrapper(
        cast("BinaryIO", io.BufferedWriter(raw) if is_buffered else raw),
        encoding="utf-8" if made is None else made.encoding,
        errors=errors if errors in _CAN_SHOW_ALL else "backslashreplace",
        line_buffering=made is not None and made.line_buffering,
        write_through=not is_buffered,
    )


def _write(raw: io.FileIO, data: ReadableBuffer) -> int:
    """All of it: a text stream without a buffer takes what is left out for written."""
    left = memoryview(data).cast("B")
    while left:
        count = cast("int | None", io.FileIO.write(raw, left))
        if count is None:
            # It does not block, because someone who shares it wants it so, and it is full.
            select.select([], [raw], [])
        else:
            left = left[count:]
    return memoryview(data).nbytes


class _Output(io.FileIO):
    """Standard output, with errors that nobody takes for those of another file."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return _write(self, data)
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error


class _Notes(io.FileIO):
    """Standard error. What cannot be written there is dropped: it must not end the work."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return _write(self, data)
        except OSError:
            return memoryview(data).nbytes
