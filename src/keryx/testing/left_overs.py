"""Finds what code left behind or changed, by comparing the process before and after.

Children and descriptors are read from /proc, so they are checked on Linux only.
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
# Seconds that all threads together may take to end. A thread that was asked to end needs a moment
# of the scheduler's; a stuck one never ends.
THREAD_EXIT: Final = 2.0


@dataclass(frozen=True, slots=True)
class State:
    """The state of a process that all code in it shares."""

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
        """Return what differs now, one sentence each; threads get a moment to end."""
        deadline = time.monotonic() + THREAD_EXIT
        for thread in set(threading.enumerate()) - self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        now = State.now()
        if now.descriptors.keys() - self.descriptors.keys():
            # A reference cycle may keep a closed loop's sockets open until it is collected.
            gc.collect()
            now = State.now()
        changes = [f"thread left over: {thread.name}" for thread in now.threads - self.threads]
        changes += [f"process left over: {name}" for name in now.children - self.children]
        changes += [
            f"descriptor left over: {number} -> {target}"
            for number, target in now.descriptors.items()
            if number not in self.descriptors
        ]
        changes += [f"temporary file left over: {name}" for name in now.temporary - self.temporary]
        if now.environment != self.environment:
            changed = now.environment.items() ^ self.environment.items()
            changes.append(f"environment changed: {sorted({name for name, _ in changed})}")
        if now.directory != self.directory:
            changes.append(f"working directory changed to {now.directory}")
        return changes


def tasks_left_over() -> list[str]:
    """Return the tasks of the running loop, without the current one."""
    current = asyncio.current_task()
    return [f"task left over: {task.get_name()}" for task in asyncio.all_tasks() if task != current]


def _environment() -> dict[str, str]:
    variables = dict(os.environ)  # noqa: TID251 (reads it to prove that nobody changed it)
    # pytest itself changes this one with every test.
    variables.pop("PYTEST_CURRENT_TEST", None)
    return variables


def _children() -> frozenset[str]:
    pids: list[str] = []
    for task in (_PROC / "task").glob("*/children"):
        try:
            pids += task.read_text().split()
        except OSError:
            continue  # that thread has just ended
    return frozenset(f"{pid} ({_command(pid)})" for pid in pids)


def _command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"


def _descriptors() -> dict[str, str]:
    targets: dict[str, str] = {}
    if _PROC.exists():
        for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 (the names are all that is needed)
            try:
                targets[number] = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115 (a text, not a path)
            except OSError:
                continue  # the descriptor that listed the folder
    return targets


def _temporary() -> frozenset[str]:
    return frozenset(path.name for path in Path(tempfile.gettempdir()).glob("keryx*"))
