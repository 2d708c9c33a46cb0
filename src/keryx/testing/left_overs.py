"""What a piece of code may leave behind or change by accident, found by looking before and after.

Linux shows children and descriptors under /proc; elsewhere those two are not looked for.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_PROC: Final = Path("/proc/self")
# A thread that was told to end, or whose child has ended, needs a moment of the scheduler's; a
# stuck one never ends. All share this time, whoever started them: names differ between versions.
THREAD_EXIT: Final = 2.0


@dataclass(frozen=True, slots=True)
class State:
    """All that a process shares between whatever runs in it."""

    threads: frozenset[threading.Thread]  # noqa: TID251 (a type; none is started)
    children: frozenset[str]
    descriptors: dict[str, str]
    temporary: frozenset[str]
    environment: dict[str, str]
    directory: str

    @classmethod
    def now(cls) -> Self:
        return cls(
            threads=frozenset(threading.enumerate()),
            children=_children(),
            descriptors=_descriptors(),
            temporary=_temporary(),
            environment=_environment(),
            directory=os.getcwd(),  # noqa: PTH109 (the string itself is compared)
        )

    def changes(self) -> list[str]:
        """What differs now, each as a sentence; threads get a moment to end."""
        deadline = time.monotonic() + THREAD_EXIT
        for thread in set(threading.enumerate()) - self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        now = State.now()
        if now.descriptors.keys() - self.descriptors.keys():
            # A cycle may keep a closed loop's sockets until the collector has been.
            gc.collect()
            now = State.now()
        found = [f"thread left over: {thread.name}" for thread in now.threads - self.threads]
        found += [f"process left over: {name}" for name in now.children - self.children]
        found += [
            f"descriptor left over: {number} -> {target}"
            for number, target in now.descriptors.items()
            if number not in self.descriptors
        ]
        found += [f"temporary file left over: {name}" for name in now.temporary - self.temporary]
        if now.environment != self.environment:
            changed = now.environment.items() ^ self.environment.items()
            found.append(f"environment changed: {sorted({name for name, _ in changed})}")
        if now.directory != self.directory:
            found.append(f"working directory changed to {now.directory}")
        return found


def tasks_left_over() -> list[str]:
    """The tasks of the running loop besides the one that asks."""
    current = asyncio.current_task()
    return [f"task left over: {task.get_name()}" for task in asyncio.all_tasks() if task != current]


def _environment() -> dict[str, str]:
    now = dict(os.environ)  # noqa: TID251 (reads it to prove that nobody changed it)
    # pytest itself tells in this one where it is.
    now.pop("PYTEST_CURRENT_TEST", None)
    return now


def _children() -> frozenset[str]:
    found: list[str] = []
    for task in (_PROC / "task").glob("*/children"):
        try:
            found += task.read_text().split()
        except OSError:
            continue  # that thread has just ended
    return frozenset(f"{pid} ({_command(pid)})" for pid in found)


def _command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"


def _descriptors() -> dict[str, str]:
    found: dict[str, str] = {}
    if _PROC.exists():
        for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 (the names are all that is needed)
            try:
                found[number] = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115 (a text, not a path)
            except OSError:
                continue  # the descriptor that listed the folder
    return found


def _temporary() -> frozenset[str]:
    return frozenset(path.name for path in Path(tempfile.gettempdir()).glob("keryx*"))
