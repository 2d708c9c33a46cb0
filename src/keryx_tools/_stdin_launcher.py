"""Starts a script in a place that shares nothing with the host: all files come through stdin.

No module imports this file: the host passes its text to `python -c`. Stdin starts with a length in
four bytes and JSON of that length: files, arguments and variables for the environment. After that,
stdin carries the host's side of the calls.

The script runs in a child. This process only waits for it, so that the folder is removed also when
both get SIGTERM. If this process is killed, a later launcher removes the folder.
"""

from __future__ import annotations

import sys

if sys.path[:1] == [""]:
    del sys.path[0]  # files of the working directory must not be imported as modules

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
# A new folder is locked at once; one that is older than this and not locked has no owner.
ABANDONED = 60.0
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    # These signals are for the script. This process ends when the script ends.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    packed = json.loads(_read(*struct.unpack(">I", _read(4))))
    folder = _create_folder()
    try:
        _unpack(packed["files"], folder)
        child = os.fork()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if child:
        _wait_for_script(child, folder)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    _run(packed, folder)


def _read(size: int) -> bytes:
    """Read exactly so many bytes: the bytes after them belong to the calls."""
    data = bytearray()
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            sys.exit("the host closed the connection before it had sent the whole script")
        data += piece
    return bytes(data)


def _run(packed: dict[str, Any], folder: str) -> None:
    os.environ.update(packed["environment"])
    os.environ["KERYX_TOOLS_GRANTED"] = os.path.join(folder, GRANTED)
    os.environ["KERYX_TOOLS_FOLDER"] = folder
    os.environ["PYTHONPATH"] = folder
    sys.path.insert(0, folder)
    sys.argv[:] = ["keryx_tools", os.path.join(folder, SCRIPT), *packed["arguments"]]
    from keryx_tools.__main__ import main as run  # noqa: PLC0415 (it was unpacked just now)

    run()


def _wait_for_script(child: int, folder: str) -> NoReturn:
    """Wait for the script, remove the folder, and exit with the script's status."""
    for number in signal.sigpending() & set(ENDING):
        os.kill(child, number)  # it came before the child was started
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    _, status = os.waitpid(child, 0)
    shutil.rmtree(folder, ignore_errors=True)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError):  # the handler of SIGKILL cannot be set
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def _create_folder() -> str:
    """Create a folder for this run, locked as long as this process or its script lives."""
    parent = tempfile.gettempdir()
    _sweep(parent)
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
    fcntl.flock(os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)
    return folder


def _sweep(parent: str) -> None:
    for name in os.listdir(parent):
        if name.startswith(PREFIX):
            with contextlib.suppress(OSError):
                _remove_if_abandoned(os.path.join(parent, name))


def _remove_if_abandoned(folder: str) -> None:
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return
    if time.time() - status.st_mtime < ABANDONED:
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
