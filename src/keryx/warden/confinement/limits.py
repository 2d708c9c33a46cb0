"""Limits that the kernel enforces: on each process, and on all processes of a namespace.

`watch` counts what all processes use together.
"""

from __future__ import annotations

import os
import resource
from typing import Any

from . import watch

HEADROOM = 32  # the kernel's limit is higher by this, so that `watch` sees and reports the excess
ROOM_FOR_OTHERS = 1024  # processes that the user may start elsewhere later
RESERVED_PIDS = 300  # the kernel does not reuse pids below this
NPROC_BY_NAMESPACE = (5, 14)
PIDS_BY_NAMESPACE = (6, 14)
LIKELY_VICTIM = "500"  # of 1000


def kernel_version() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    digits = minor[: next((i for i, c in enumerate(minor) if not c.isdigit()), len(minor))]
    return int(major), int(digits or 0)


def most_pids(limits: Any) -> int:
    """Return the largest pid for a PID namespace; 0 if it cannot be set per namespace.

    In older kernels the same setting is for the whole machine.
    """
    most = limits.get("processes")
    if not most or kernel_version() < PIDS_BY_NAMESPACE:
        return 0
    return max(int(most) + HEADROOM, 1) + RESERVED_PIDS + 1


def nproc_limit(limits: Any, *, own_user_namespace: bool) -> int:
    """Return the value for RLIMIT_NPROC; 0 if it would limit nothing.

    Root has no such limit. In a user namespace it counts the processes there; elsewhere all
    processes of the user, so it leaves room for those that run already and for some more.
    """
    most = limits.get("processes")
    if not most or os.getuid() == 0:
        return 0
    if own_user_namespace and kernel_version() >= NPROC_BY_NAMESPACE:
        return int(most) + HEADROOM
    return int(most) + watch.threads_of_user() + ROOM_FOR_OTHERS


def open_all_files() -> None:
    """Raise the limit of open files: this process holds one per path of a private root."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def bound_self(limits: Any, nproc: int) -> None:
    """Set the limits of this process and of each process that it starts."""
    lower_limit(resource.RLIMIT_CORE, 0)
    if limits.get("open_files"):
        lower_limit(resource.RLIMIT_NOFILE, limits["open_files"])
    if limits.get("file_size"):
        lower_limit(resource.RLIMIT_FSIZE, limits["file_size"])
    if nproc:
        lower_limit(resource.RLIMIT_NPROC, nproc)


def offer_to_oom_killer() -> None:
    """If the machine is out of memory, let the kernel kill these before the host."""
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


def lower_limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most))


def bound_child(pid: int, limits: Any) -> None:
    """Set the limit of a child that must not apply to the keeper: its CPU time."""
    seconds = limits.get("cpu")
    if seconds:
        try:
            resource.prlimit(pid, resource.RLIMIT_CPU, (seconds, seconds + 1))
        except OSError:
            return  # it has ended
