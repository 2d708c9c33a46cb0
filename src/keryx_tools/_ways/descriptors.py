"""Whether a descriptor is still what it was when it was opened here.

A script may close descriptors that it did not open (`os.closerange`), and its next file gets their
numbers. Then a number leads to a file of the script: nothing may be read, written or closed there.
"""

from __future__ import annotations

import os
from typing import Optional, Tuple

Identity = Optional[Tuple[int, int]]

CLOSED = (
    "this script has closed its connection, with os.close or os.closerange; close only what it "
    "has opened itself"
)


def identity(descriptor: int) -> Identity:
    """What it leads to; None if it is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError as error:
        if error.errno is None:
            raise  # not the system's: a signal handler of the script raised it
        return None
    return status.st_dev, status.st_ino


class Held:
    """A descriptor with what it led to when it was opened."""

    __slots__ = ("_identity", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self._identity = identity(number)

    @property
    def is_ours(self) -> bool:
        return self._identity is not None and identity(self.number) == self._identity

    def check(self) -> None:
        """`OSError` if it leads elsewhere by now."""
        if not self.is_ours:
            raise OSError(CLOSED)

    def close(self) -> None:
        if self.is_ours:
            os.close(self.number)
