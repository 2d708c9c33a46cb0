"""Lets a thread of root's be refused like anyone else's, so that modes mean something to it."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Generator

_VERSION = 0x20080522  # of <linux/capability.h>: two words a set
_DAC = 1 << 1 | 1 << 2  # to read, write and search whatever the mode says


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Words(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextlib.contextmanager
def modes_count() -> Generator[None]:
    """In this thread, until it is left, a mode without bits refuses even root."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, words = _Header(_VERSION, 0), (_Words * 2)()
    assert libc.capget(ctypes.byref(header), words) == 0
    had: int = words[0].effective
    words[0].effective = had & ~_DAC
    assert libc.capset(ctypes.byref(header), words) == 0
    try:
        yield
    finally:
        words[0].effective = had
        assert libc.capset(ctypes.byref(header), words) == 0
