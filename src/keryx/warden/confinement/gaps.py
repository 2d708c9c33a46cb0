"""Gaps: what children can do although they should not, because a wall is missing.

Each gap is the end of a sentence that starts with "a child". This module reads the file system
only for hard links, before any wall is up.
"""

from __future__ import annotations

import os
import stat
from typing import Any, NamedTuple

from . import landlock

CALLS = (
    "can make programs that run with the rights of their owner or group",
    "can open sockets of every family, also those that no namespace holds",
    "can make calls of the kernel that ordinary programs do without",
    "can outlive a call that was cancelled while another one runs",
)
MOST_CHECKED = 256  # files of a hidden folder that are checked for hard links


class Walls(NamedTuple):
    """The possible walls: kinds of namespaces, the version of Landlock (0: none), the limits of
    processes (0: none), and whether system calls can be filtered."""

    kinds: frozenset[str]
    landlock: int
    most_pids: int
    nproc: int
    seccomp: bool

    @property
    def pids(self) -> bool:
        return "pids" in self.kinds

    @property
    def mounts(self) -> bool:
        return "mounts" in self.kinds


def find_gaps(policy: Any, walls: Walls) -> list[str]:
    gaps = [*file_gaps(policy, walls), *process_gaps(walls), *network_gaps(policy, walls)]
    if "ipc" not in walls.kinds:
        gaps.append("can use the System V shared memory of other programs of the same user")
    if policy["limits"].get("processes") and not (walls.most_pids or walls.nproc):
        gaps.append("can start processes faster than they are counted and killed")
    if not walls.seccomp:
        gaps += CALLS
    gaps += (
        f"can read files of {folder!r} that only their owner should: there are too many to look at"
        for folder in policy["too_large"]
    )
    return [*gaps, *hard_link_gaps(policy)]


def file_gaps(policy: Any, walls: Walls) -> list[str]:
    if walls.mounts:
        return cover_gaps(policy)
    sockets = "can connect to the sockets of other programs, such as an ssh agent"
    if not walls.landlock:
        return ["can read and write all files of the user", sockets]
    gaps = [sockets, "can see the names of files elsewhere, and change their modes and times"]
    if walls.landlock < landlock.TRUNCATE_SINCE:
        gaps.append("can empty files elsewhere")
    return gaps


def cover_gaps(policy: Any) -> list[str]:
    """Return the gaps of covered files: a cover is lost when a program replaces the file below it.

    Programs replace files to write them atomically; they do not replace folders.
    """
    files = [path for path in policy["hidden"] if not os.path.isdir(path)]  # noqa: PTH112 (importing pathlib would double the start)
    return [
        f"can read hidden files of {folder!r} once another program has replaced or made them"
        for folder in (policy["workspace"], *policy["writable"])
        if any(path.startswith(f"{folder.rstrip('/')}/") for path in files)
    ]


def process_gaps(walls: Walls) -> list[str]:
    if walls.pids:
        return []
    gaps = ["can see other processes and their arguments"]
    if walls.landlock < landlock.SCOPES_SINCE:
        gaps.append("can signal other processes of the same user")
    # Root without capabilities may not read the memory of root with capabilities.
    if not (walls.landlock or walls.mounts) and os.getuid() != 0:
        gaps.append("can look into other processes of the same user")
    return gaps


def network_gaps(policy: Any, walls: Walls) -> list[str]:
    if "net" in walls.kinds:
        return []
    gaps: list[str] = []
    if not policy["network"]:
        tcp = walls.landlock >= landlock.TCP_SINCE
        gaps.append("can use the network by UDP" if tcp else "can use the network")
    if walls.landlock < landlock.SCOPES_SINCE:
        gaps.append("can connect to the abstract sockets of other programs")
    return gaps


def hard_link_gaps(policy: Any) -> list[str]:
    """Return the gaps of hidden files that have hard links, which may be in a granted folder.

    The kernel checks the path that is opened, not the file, so a hidden file is readable by
    another name. Of each hidden folder only the first few hundred files are checked.
    """
    devices = {device_of(path) for path in (policy["workspace"], *policy["writable"])}
    return [
        f"may know {path!r} by another name: it has hard links"
        for hidden in policy["hidden"]
        if device_of(hidden) in devices
        for path in linked_files(hidden)
    ]


def device_of(path: str) -> int:
    try:
        return os.lstat(path).st_dev
    except OSError:
        return -1


def linked_files(path: str) -> list[str]:
    paths: list[str] = []
    remaining, waiting = MOST_CHECKED, [path]
    while waiting and remaining:
        path = waiting.pop(0)
        remaining -= 1
        try:
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                waiting += (f"{path}/{name}" for name in sorted(os.listdir(path))[:remaining])  # noqa: PTH208 (importing pathlib would double the start)
            elif stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                paths.append(path)
        except OSError:
            continue  # what we may not read, children may not either
    return paths
