"""Checks whether a descriptor still refers to what we opened.

A script may close descriptors that it did not open (`os.closerange`), and its next files get their
numbers. Then our number refers to a file of the script, and we must not read, write or close it.
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
    """Return the device and inode of the open file; None if the descriptor is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError as error:
        if error.errno is None:
            raise  # a signal handler of the script raised it, not the system
        return None
    return status.st_dev, status.st_ino


class OwnedDescriptor:
    """A descriptor, with the identity of the file that it was opened for."""

    __slots__ = ("_identity", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self._identity = identity(number)

    @property
    def is_ours(self) -> bool:
        return self._identity is not None and identity(self.number) == self._identity

    def check(self) -> None:
        """Raise `OSError` if the number refers to another file by now."""
        if not self.is_ours:
            raise OSError(CLOSED)

    def close(self) -> None:
        if self.is_ours:
            os.close(self.number)
