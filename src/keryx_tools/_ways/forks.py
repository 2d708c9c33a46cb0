"""What a forked child must let go of: the connections of its parent.

A child that kept them open would keep the host from noticing when the parent hangs up or dies.
"""

from __future__ import annotations

import contextlib
import os
from weakref import WeakSet

from keryx_tools._ways.descriptors import Held


class Inherited:
    """Holds descriptors that only the process that opened them may use."""

    held: Held | None = None
    """That of a connection, once it has one."""

    @property
    def is_ours(self) -> bool:
        """Whether the descriptor is still that of the connection."""
        return self.held is None or self.held.is_ours

    def __init__(self) -> None:
        self.pid = os.getpid()
        _held.add(self)

    def forget(self) -> None:
        """In the child: close its copies, and leave the parent's alone."""


_held: WeakSet[Inherited] = WeakSet()


def blank(descriptor: int) -> None:
    """Let go of a descriptor whose number someone else still means to close."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.dup2(null, descriptor, False)
    finally:
        os.close(null)


def _forget_all() -> None:
    for held in list(_held):
        _held.discard(held)
        with contextlib.suppress(OSError):
            held.forget()


os.register_at_fork(after_in_child=_forget_all)
