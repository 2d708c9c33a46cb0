"""Counts what the processes of a keeper use together, and tells which order is to blame.

It looks and names; the keeper kills. Counted limits can be passed by what happens between two
looks. Memory that no process has mapped (the content of a memfd) is not seen.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

INTERVAL = 100  # milliseconds between two looks; a look at ten processes takes less than one
NOBODY = 0  # stands for the order of processes that belong to none

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


class Use(NamedTuple):
    """What one process uses: threads, seconds of CPU (with its ended children), bytes."""

    parent: int
    threads: int
    cpu: float
    memory: int


class Excess(NamedTuple):
    """A limit that was passed: which order is most to blame, its processes, and the words."""

    order: int
    pids: list[int]
    cause: str


def read(path: str) -> bytes:
    """The start of a file of /proc; nothing if the process has ended."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096)
    except OSError:
        return b""
    finally:
        os.close(fd)


def use_of(pid: int) -> Use | None:
    data = read(f"/proc/{pid}/stat")
    if not data:
        return None
    # The name in the second field may hold brackets and spaces; its own bracket is the last.
    fields = data[data.rindex(b")") + 2 :].split()
    cpu = sum(map(int, fields[11:15])) / TICKS
    return Use(int(fields[1]), int(fields[17]), cpu, int(fields[21]) * PAGE)


def fair_share(pid: int) -> int:
    """The memory of a process, with what it shares divided among those that share it."""
    for line in read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) << 10
    return 0


def everyone_else() -> list[int]:
    """All processes of this PID namespace but its first."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]  # noqa: PTH208 (importing pathlib would double the start)


def threads_of_user() -> int:
    """How many threads all processes of this user have."""
    user, count = os.getuid(), 0
    for name in os.listdir("/proc"):  # noqa: PTH208 (same)
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:  # noqa: PTH116 (same)
                use = use_of(int(name))
                count += 0 if use is None else use.threads
        except OSError:
            continue  # it has ended
    return count


def find_owners(
    uses: dict[int, Use], mains: dict[int, int], orphan: Callable[[int], int]
) -> dict[int, int]:
    """The order of each process: that of the main process above it, else as `orphan` says."""
    owners = dict(mains)

    def owner_of(pid: int) -> int:
        trail: list[int] = []
        while pid not in owners:
            trail.append(pid)
            parent = uses[pid].parent
            if parent not in uses:
                owners[pid] = orphan(pid)
                break
            pid = parent
        for below in trail:
            owners[below] = owners[pid]
        return owners[pid]

    return {pid: owner_of(pid) for pid in uses}


def find_excess(
    limits: Any, pids: Iterable[int], mains: dict[int, int], orphan: Callable[[int], int]
) -> Excess | None:
    """Whether these processes use too much."""
    found = ((pid, use_of(pid)) for pid in pids)
    uses = {pid: use for pid, use in found if use is not None}
    owners = find_owners(uses, mains, orphan)

    def blame(amounts: dict[int, float], cause: str) -> Excess:
        order = max(amounts, key=lambda owner: amounts[owner])
        return Excess(order, [pid for pid in uses if owners[pid] == order], cause)

    def by_order(amounts: dict[int, float]) -> dict[int, float]:
        sums: dict[int, float] = {}
        for pid, amount in amounts.items():
            sums[owners[pid]] = sums.get(owners[pid], 0) + amount
        return sums

    most = limits.get("processes")
    threads = by_order({pid: use.threads for pid, use in uses.items()})
    if most and sum(threads.values()) > most:
        return blame(threads, f"it ran more than {most} processes and threads")
    most = limits.get("memory")
    if most and sum(use.memory for use in uses.values()) > most:
        # What is shared was counted more than once; to count it right takes longer.
        memory = by_order({pid: fair_share(pid) for pid in uses})
        if sum(memory.values()) > most:
            return blame(memory, f"it used more than {most >> 20} MiB of memory")
    most = limits.get("cpu")
    cpu = by_order({pid: use.cpu for pid, use in uses.items()})
    if most and cpu and max(cpu.values()) > most:
        return blame(cpu, cpu_cause(most))
    return None


def cpu_cause(seconds: int) -> str:
    return f"it used more than {seconds} s of CPU time"


def cause_of(number: int, limits: Any) -> str:
    """The limit that a process died of, if its signal tells."""
    if number == signal.SIGXCPU and limits.get("cpu"):
        return cpu_cause(limits["cpu"])
    if number == signal.SIGXFSZ and limits.get("file_size"):
        return f"it wrote a file of more than {limits['file_size']} bytes"
    return ""
