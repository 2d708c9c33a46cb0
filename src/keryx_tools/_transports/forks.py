"""Closes the parent's connections in a forked child.

If the child kept them open, the host would not notice that the parent closes them or dies.
"""

from __future__ import annotations

import contextlib
import os
from weakref import WeakSet

from keryx_tools._transports.descriptors import OwnedDescriptor


class ForkAware:
    """Base of objects whose descriptors only the process that opened them may use."""

    descriptor: OwnedDescriptor | None = None
    """The connection's descriptor, once it has one."""

    @property
    def is_ours(self) -> bool:
        """Whether the descriptor still belongs to the connection."""
        return self.descriptor is None or self.descriptor.is_ours

    def __init__(self) -> None:
        self.pid = os.getpid()
        _instances.add(self)

    def close_in_child(self) -> None:
        """Close the child's copies; the parent's stay open."""


_instances: WeakSet[ForkAware] = WeakSet()


def point_at_null(descriptor: int) -> None:
    """Replace a descriptor by /dev/null, because other code will still close its number."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.dup2(null, descriptor, False)
    finally:
        os.close(null)


def _close_all_in_child() -> None:
    for instance in list(_instances):
        _instances.discard(instance)
        with contextlib.suppress(OSError):
            instance.close_in_child()


os.register_at_fork(after_in_child=_close_all_in_child)
