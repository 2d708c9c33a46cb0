"""Bounds that the kernel keeps: on one process at a time, and on all processes of a namespace.

What all of them use together is counted by `watch`.
"""

from __future__ import annotations

import os
import resource
from typing import Any

from . import watch

HEADROOM = 32  # what the kernel allows past the limit, so that passing it is seen and not only felt
ROOM_FOR_OTHERS = 1024  # processes that the user may start elsewhere later
RESERVED_PIDS = 300  # numbers below are not given out again
NPROC_BY_NAMESPACE = (5, 14)
PIDS_BY_NAMESPACE = (6, 14)
LIKELY_VICTIM = "500"  # of 1000


def kernel_version() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    digits = minor[: next((i for i, c in enumerate(minor) if not c.isdigit()), len(minor))]
    return int(major), int(digits or 0)


def most_pids(limits: Any) -> int:
    """The largest number of a process in a PID namespace of its own; 0 if it cannot be set there.

    In older kernels the same setting is that of the whole machine.
    """
    most = limits.get("processes")
    if not most or kernel_version() < PIDS_BY_NAMESPACE:
        return 0
    return max(int(most) + HEADROOM, 1) + RESERVED_PIDS + 1


def nproc_limit(limits: Any, *, own_user_namespace: bool) -> int:
    """The limit on processes of the user that is to be set; 0 if it would bound nothing.

    Root has none. In a user namespace it counts the processes there; elsewhere all of the user's,
    so there must be room for those that run already and for some more.
    """
    most = limits.get("processes")
    if not most or os.getuid() == 0:
        return 0
    if own_user_namespace and kernel_version() >= NPROC_BY_NAMESPACE:
        return int(most) + HEADROOM
    return int(most) + watch.threads_of_user() + ROOM_FOR_OTHERS


def open_all_files() -> None:
    """As many as this process may: it holds one for every path of a private root."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def bound_self(limits: Any, nproc: int) -> None:
    """What this process and all that it starts may use, each for itself."""
    lower(resource.RLIMIT_CORE, 0)
    if limits.get("open_files"):
        lower(resource.RLIMIT_NOFILE, limits["open_files"])
    if limits.get("file_size"):
        lower(resource.RLIMIT_FSIZE, limits["file_size"])
    if nproc:
        lower(resource.RLIMIT_NPROC, nproc)


def offer_to_oom_killer() -> None:
    """Out of memory, the kernel takes these before the host."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return  # best effort: it helps only when the machine is out of memory
    try:
        os.write(fd, LIKELY_VICTIM.encode())
    except OSError:
        return  # it is higher already
    finally:
        os.close(fd)


def lower(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most))


def bound_child(pid: int, limits: Any) -> None:
    """What must not be set for the keeper itself, because it lives on."""
    seconds = limits.get("cpu")
    if seconds:
        try:
            resource.prlimit(pid, resource.RLIMIT_CPU, (seconds, seconds + 1))
        except OSError:
            return  # it has ended
