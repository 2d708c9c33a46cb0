"""Gaps: what children can do although they should not, as far as the walls that stand let them.

Each is the end of a sentence that starts "a child". It looks at the file system for hard links
only, before any wall is up.
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
LOOKED_AT = 256  # files of a hidden folder that are looked at for second names


class Walls(NamedTuple):
    """What can stand: kinds of namespaces, the version of Landlock, who bounds processes, and
    whether calls of the kernel can be refused."""

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
    return [*gaps, *second_names(policy)]


def file_gaps(policy: Any, walls: Walls) -> list[str]:
    if walls.mounts:
        return covered(policy)
    sockets = "can connect to the sockets of other programs, such as an ssh agent"
    if not walls.landlock:
        return ["can read and write all files of the user", sockets]
    gaps = [sockets, "can see the names of files elsewhere, and change their modes and times"]
    if walls.landlock < landlock.TRUNCATE_SINCE:
        gaps.append("can empty files elsewhere")
    return gaps


def covered(policy: Any) -> list[str]:
    """A cover slips off when another program puts something else in the place of what it covers.

    Programs do that with files, to write them at once; folders stay what they are.
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
    # Root without capabilities may not look into root that has them.
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


def second_names(policy: Any) -> list[str]:
    """Hidden files that have another name, which may be in a granted folder.

    A file with a name in the workspace belongs to the workspace, wherever else it has names; the
    kernel cannot tell. So hidden files that could be reached so are reported, of each hidden
    folder the first few hundred.
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
    found: list[str] = []
    left, waiting = LOOKED_AT, [path]
    while waiting and left:
        path = waiting.pop(0)
        left -= 1
        try:
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                waiting += (f"{path}/{name}" for name in sorted(os.listdir(path))[:left])  # noqa: PTH208 (importing pathlib would double the start)
            elif stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                found.append(path)
        except OSError:
            continue  # what we may not read, children may not either
    return found
