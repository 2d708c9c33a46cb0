"""How a script gets to a place that shares nothing with the host: through this process's stdin.

Nobody imports this: the host passes its text to `python -c`, for all else is in what it unpacks. A
length in four bytes and so much JSON come first: files, arguments, and what the environment lacks.
What follows on stdin is the host's side of the calls.

The script runs in a child. This process only waits for it, so that the folder is removed also when
both are told to end. One that was killed leaves its folder to the next who comes.
"""

from __future__ import annotations

import sys

if sys.path[:1] == [""]:
    del sys.path[0]  # what lies in the working folder must not stand in for a module

import contextlib
import fcntl
import json
import os
import shutil
import signal
import stat
import struct
import tempfile
import time
from typing import Any, NoReturn

PREFIX = "keryx-run-"
LOCK = "lock"
SCRIPT = "script.py"
GRANTED = "granted.json"
# A folder is locked a moment after it was made; so long after that, no lock means no owner.
ABANDONED = 60.0
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    # They are for the script. This process ends with it.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    packed = json.loads(_read(*struct.unpack(">I", _read(4))))
    folder = _made()
    try:
        _unpack(packed["files"], folder)
        child = os.fork()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if child:
        _outlive(child, folder)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    _run(packed, folder)


def _read(size: int) -> bytes:
    """Exactly so much: what comes after is not for this process."""
    data = bytearray()
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            sys.exit("the host went away before all of the script had come")
        data += piece
    return bytes(data)


def _run(packed: dict[str, Any], folder: str) -> None:
    os.environ.update(packed["environment"])
    os.environ["KERYX_TOOLS_GRANTED"] = os.path.join(folder, GRANTED)
    os.environ["KERYX_TOOLS_FOLDER"] = folder
    os.environ["PYTHONPATH"] = folder
    sys.path.insert(0, folder)
    sys.argv[:] = ["keryx_tools", os.path.join(folder, SCRIPT), *packed["arguments"]]
    from keryx_tools.__main__ import main as run  # noqa: PLC0415 (it was not there before)

    run()


def _outlive(child: int, folder: str) -> NoReturn:
    """Wait for the script, clean up, and end as it did."""
    for number in signal.sigpending() & set(ENDING):
        os.kill(child, number)  # it came before there was a child to get it
    null = os.open(os.devnull, os.O_RDWR)
    for taken in (0, 1):
        os.dup2(null, taken)
    _, status = os.waitpid(child, 0)
    shutil.rmtree(folder, ignore_errors=True)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError):  # not all can be set
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def _made() -> str:
    """A folder of this run's own, locked for as long as it or its script lives."""
    where = tempfile.gettempdir()
    _sweep(where)
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=where)
    fcntl.flock(os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)
    return folder


def _sweep(where: str) -> None:
    for name in os.listdir(where):
        if name.startswith(PREFIX):
            with contextlib.suppress(OSError):
                _remove_if_abandoned(os.path.join(where, name))


def _remove_if_abandoned(folder: str) -> None:
    seen = os.lstat(folder)
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid():
        return
    if time.time() - seen.st_mtime < ABANDONED:
        return
    lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(lock)


def _unpack(files: dict[str, str], folder: str) -> None:
    for name, text in files.items():
        path = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)


if __name__ == "__main__":
    main()
