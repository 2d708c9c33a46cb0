"""The process table: who is below whom, and signals that reach a descendant and nobody else.

Used by `main.py`, which loads it by its place: standard library only, Python 3.8 and
later. It reads /proc and knows nothing of orders, sockets or hosts. All functions expect to
run in a process with one thread that is the only one to reap its children.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable

LINUX = sys.platform == "linux"
PR_SET_CHILD_SUBREAPER = 36
RLIMIT_LOCKS = 10
READ_SIZE = 1 << 16
PASSES = 10  # over a tree that grows while it is stopped


def read_file(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(fd, READ_SIZE)]
        while parts[-1]:
            parts.append(os.read(fd, READ_SIZE))
    finally:
        os.close(fd)
    return b"".join(parts)


def parent_of(pid: int) -> int:
    """The parent's pid; 0 if there is no such process."""
    try:
        data = read_file(f"/proc/{pid}/stat")
    except OSError:
        return 0
    # The name in the second field may hold brackets and spaces; its own bracket is the last.
    return int(data[data.rindex(b")") + 1 :].split(None, 2)[1])


def _children_of_main_thread(pid: int) -> list[int]:
    return list(map(int, read_file(f"/proc/{pid}/task/{pid}/children").split()))


def children_by_file(pid: int) -> list[int]:
    """The children that any thread of a process started, zombies included."""
    found: list[int] = []
    try:
        with os.scandir(f"/proc/{pid}/task") as threads:
            for thread in threads:
                try:
                    found += map(int, read_file(f"{thread.path}/children").split())
                except OSError:
                    continue  # that thread has ended
    except OSError:
        pass  # that process has ended
    return found


def children_by_scan() -> Callable[[int], list[int]]:
    """The same from every process's own entry, for kernels without the children file."""
    table: dict[int, list[int]] = {}
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                pid = int(entry.name)
                table.setdefault(parent_of(pid), []).append(pid)
    return lambda pid: table.get(pid, [])


def _has_children_file() -> bool:
    try:
        _children_of_main_thread(os.getpid())
    except OSError:
        return False
    return True


def _has_pidfd() -> bool:
    if sys.version_info < (3, 9) or sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


CHILDREN_FILE = _has_children_file()
PIDFD = _has_pidfd()


def own_children() -> list[int]:
    """Exact, unlike the list of any other process: none of them can vanish while we read."""
    me = os.getpid()
    return _children_of_main_thread(me) if CHILDREN_FILE else children_by_scan()(me)


def below(root: int) -> list[int]:
    """All descendants, parents first."""
    look = children_by_file if CHILDREN_FILE else children_by_scan()
    found = dict.fromkeys(look(root))
    fresh = list(found)
    while fresh:
        fresh = [kid for pid in fresh for kid in look(pid) if kid not in found]
        found.update(dict.fromkeys(fresh))
    return list(found)


def descends(pid: int) -> bool:
    """Whether a process is below this one, by its chain of parents right now."""
    me = os.getpid()
    while pid > 1:
        pid = parent_of(pid)
        if pid == me:
            return True
    return False


def strike(pid: int, number: int) -> bool:
    """Signal a descendant and nobody else; False if it is gone or not ours to signal.

    Its parent may have reaped it since the scan and its pid may be another's by now. So the
    process is pinned by a pidfd first and its descent checked after that.
    """
    fd = -1
    try:
        if sys.platform == "linux" and PIDFD:
            fd = os.pidfd_open(pid)
            if not descends(pid):
                return False
            signal.pidfd_send_signal(fd, number)
        else:
            if not descends(pid):
                return False
            os.kill(pid, number)
    except OSError:
        return False
    finally:
        if fd >= 0:
            os.close(fd)
    return True


def strike_tree(child: int, number: int) -> bool:
    """Signal a child of ours and all below it; False if the child itself did not take it.

    Only we can reap our own child, so its pid is its own until we do.
    """
    kin = below(child)
    try:
        os.kill(child, number)
        taken = True
    except OSError:
        taken = False
    for pid in kin:
        strike(pid, number)
    return taken


def strike_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except OSError:
        return  # none of it is left


def strike_everyone() -> None:
    """Kill all processes of a PID namespace at once; only for its first one, which is spared."""
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        return  # nobody is left


def sweep(groups: Iterable[int], *, everyone: bool = False) -> None:
    """Kill everything below and return once nothing is left; that no child is left proves it.

    The first process of a PID namespace may kill `everyone` at once. Without a process table
    only these groups are known, and children that sweep on their own.
    """
    while True:
        if everyone:
            strike_everyone()
        elif LINUX:
            for pid in below(os.getpid()):
                strike(pid, signal.SIGKILL)
        else:
            for group in groups:
                strike_group(group, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def tag_self(tag: int) -> None:
    """Mark all children that start from now on, and all that they will start."""
    if sys.platform != "linux":
        return
    try:
        resource.setrlimit(RLIMIT_LOCKS, (tag, resource.getrlimit(RLIMIT_LOCKS)[1]))
    except (OSError, ValueError):
        return  # a finite hard limit; their orphans then carry the tag of nobody


def tag_of(pid: int) -> int:
    if sys.platform != "linux":
        return -1
    try:
        return resource.prlimit(pid, RLIMIT_LOCKS)[0]
    except (OSError, ValueError):
        return -1


def strike_tagged(tag: int) -> None:
    """Kill all that carry a tag, however fast it forks: stopped processes cannot.

    Faster than a walk down the tree, because it asks each process only for its tag.
    """
    stopped: set[int] = set()
    for _ in range(PASSES):
        fresh = {pid for pid in all_pids() if tag_of(pid) == tag} - stopped
        for pid in fresh:
            strike_if_tagged(pid, tag, signal.SIGSTOP)
        stopped |= fresh
        if not fresh:
            break
    for pid in stopped:
        strike_if_tagged(pid, tag, signal.SIGKILL)


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 (importing pathlib would double the start)


def strike_if_tagged(pid: int, tag: int, number: int) -> None:
    """Pinned first, as in `strike`, so that the tag is that of the process that is signalled."""
    if sys.platform != "linux" or not PIDFD or pid == os.getpid():
        return
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if tag_of(pid) == tag:
            signal.pidfd_send_signal(fd, number)
    except OSError:
        return
    finally:
        os.close(fd)


def become_subreaper() -> None:
    """From now on orphans below are handed to this process. Forks must ask for it anew."""
    import ctypes  # noqa: PLC0415 (not in every build of Python, and only needed on Linux)

    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become the subreaper of the children")
