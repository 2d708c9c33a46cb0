"""The process tree: which process descends from which, and signals to descendants only.

`main.py` loads this file by its path: standard library only, Python 3.8 and later. It reads
/proc and knows nothing of orders, sockets or hosts. All functions expect to run in a process
with one thread that reaps its children itself.
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
    """Return the parent's pid; 0 if there is no such process."""
    try:
        data = read_file(f"/proc/{pid}/stat")
    except OSError:
        return 0
    # The name in the second field may hold brackets and spaces; the last bracket ends it.
    return int(data[data.rindex(b")") + 1 :].split(None, 2)[1])


def _children_of_main_thread(pid: int) -> list[int]:
    return list(map(int, read_file(f"/proc/{pid}/task/{pid}/children").split()))


def children_by_file(pid: int) -> list[int]:
    """Return the children that any thread of a process started, zombies included."""
    children: list[int] = []
    try:
        with os.scandir(f"/proc/{pid}/task") as threads:
            for thread in threads:
                try:
                    children += map(int, read_file(f"{thread.path}/children").split())
                except OSError:
                    continue  # that thread has ended
    except OSError:
        pass  # that process has ended
    return children


def children_by_scan() -> Callable[[int], list[int]]:
    """Return the same as a function, from a scan of /proc, for kernels without children files."""
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
    """Return our children. The list is exact: only we reap them, so none vanishes meanwhile."""
    me = os.getpid()
    return _children_of_main_thread(me) if CHILDREN_FILE else children_by_scan()(me)


def descendants(root: int) -> list[int]:
    """Return all descendants of a process, parents first."""
    children_of = children_by_file if CHILDREN_FILE else children_by_scan()
    pids = dict.fromkeys(children_of(root))
    level = list(pids)
    while level:
        level = [child for pid in level for child in children_of(pid) if child not in pids]
        pids.update(dict.fromkeys(level))
    return list(pids)


def is_descendant(pid: int) -> bool:
    """Return whether a process descends from this one, by its chain of parents right now."""
    me = os.getpid()
    while pid > 1:
        pid = parent_of(pid)
        if pid == me:
            return True
    return False


def signal_descendant(pid: int, number: int) -> bool:
    """Signal a descendant and no other process; False if it has ended or may not be signalled.

    Its parent may have reaped it since the scan, and another process may have its pid by now.
    So a pidfd pins the process first, and the descent is checked after that.
    """
    fd = -1
    try:
        if sys.platform == "linux" and PIDFD:
            fd = os.pidfd_open(pid)
            if not is_descendant(pid):
                return False
            signal.pidfd_send_signal(fd, number)
        else:
            if not is_descendant(pid):
                return False
            os.kill(pid, number)
    except OSError:
        return False
    finally:
        if fd >= 0:
            os.close(fd)
    return True


def signal_tree(child: int, number: int) -> bool:
    """Signal our child and all its descendants; False if the child itself cannot be signalled.

    Only we can reap our own child, so no other process gets its pid until we do.
    """
    pids = descendants(child)
    try:
        os.kill(child, number)
        is_signalled = True
    except OSError:
        is_signalled = False
    for pid in pids:
        signal_descendant(pid, number)
    return is_signalled


def signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except OSError:
        return  # no process of the group is left


def kill_namespace() -> None:
    """Kill all processes of our PID namespace at once. Only its first process may call this."""
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        return  # no other process is left


def sweep(groups: Iterable[int], *, everyone: bool = False) -> None:
    """Kill all descendants, and return once `waitpid` says that no child is left.

    The first process of a PID namespace may kill `everyone` at once. Without a process table
    only these groups can be killed; keepers kill their own children.
    """
    while True:
        if everyone:
            kill_namespace()
        elif LINUX:
            for pid in descendants(os.getpid()):
                signal_descendant(pid, signal.SIGKILL)
        else:
            for group in groups:
                signal_group(group, signal.SIGKILL)
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
        return  # the hard limit is finite; orphans of these children then carry no valid tag


def tag_of(pid: int) -> int:
    if sys.platform != "linux":
        return -1
    try:
        return resource.prlimit(pid, RLIMIT_LOCKS)[0]
    except (OSError, ValueError):
        return -1


def kill_tagged(tag: int) -> None:
    """Kill all processes with a tag, also if they fork fast: stopped processes cannot fork.

    This is faster than a walk down the tree, because it reads only each process's tag.
    """
    stopped: set[int] = set()
    for _ in range(PASSES):
        running = {pid for pid in all_pids() if tag_of(pid) == tag} - stopped
        for pid in running:
            signal_if_tagged(pid, tag, signal.SIGSTOP)
        stopped |= running
        if not running:
            break
    for pid in stopped:
        signal_if_tagged(pid, tag, signal.SIGKILL)


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 (importing pathlib would double the start)


def signal_if_tagged(pid: int, tag: int, number: int) -> None:
    """Signal a process if it has this tag; a pidfd pins it first, as in `signal_descendant`."""
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
    """Make orphaned descendants children of this process. A fork must call this again."""
    import ctypes  # noqa: PLC0415 (not in every build of Python, and only needed on Linux)

    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become the subreaper of the children")
