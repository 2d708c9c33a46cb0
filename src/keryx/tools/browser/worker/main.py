"""The worker: serves the host's requests until the pipe closes, Chromium ends or SIGTERM comes."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from typing import Any

from .actions import Actions
from .chromium import Chromium
from .request_queue import RequestQueue

FOLDER = "keryx-browser"
# The kernel takes 107 characters; Chromium adds /org.chromium.Chromium.123456/SingletonSocket.
LONGEST_FOLDER = 60


def run(settings: dict[str, Any]) -> None:
    """Run the worker in this process."""
    # Only frames go to the original standard output; what libraries print goes to standard error.
    answers = os.dup(1)
    os.set_inheritable(answers, False)
    os.dup2(2, 1)
    profile = own_folder(settings["tmp"] or tempfile.gettempdir())
    # Chromium's and playwright's own files go there too. This process belongs to the browser alone.
    os.environ["TMPDIR"] = profile  # noqa: TID251 (same)
    settings["environment"] = {**os.environ, "TMPDIR": short_path(profile)}  # noqa: TID251 (same)
    asyncio.new_event_loop().run_until_complete(serve(settings, answers))
    shutil.rmtree(profile, ignore_errors=True)
    sys.stderr.flush()
    # Nothing is waited for: the host ends the whole tree, playwright's driver and Chromium too.
    os._exit(0)


def own_folder(tmp: str) -> str:
    """Return a new folder for the profile, and remove those of browsers that were killed."""
    folder = os.path.join(tmp, FOLDER)  # noqa: PTH118 (a text)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 (a text)
    return tempfile.mkdtemp(dir=folder)


def short_path(folder: str) -> str:
    """Return a path by which Chromium can make a socket in the folder; such paths must be short."""
    if len(folder) <= LONGEST_FOLDER or not os.path.isdir("/proc/self/fd"):  # noqa: PTH112 (a text)
        return folder
    return f"/proc/{os.getpid()}/fd/{os.open(folder, os.O_RDONLY | os.O_DIRECTORY)}"


async def serve(settings: dict[str, Any], answers: int) -> None:
    chromium = Chromium(settings)
    queue = RequestQueue(Actions(chromium).handle, answers)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    waits = (queue.read(), queue.work(), chromium.ended.wait(), stopped.wait())
    tasks = [asyncio.ensure_future(wait) for wait in waits]  # noqa: TID251 (a program of its own)
    ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    if tasks[2] in ended:
        print("Chromium has ended", file=sys.stderr)  # noqa: T201 (the host reads it)
    for task in ended:
        if task.exception() is not None:
            print(f"the browser's worker failed: {task.exception()!r}", file=sys.stderr)  # noqa: T201 (same)
