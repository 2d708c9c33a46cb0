"""Starting one child: where its program is, and why it could not be started.

Used by `main.py`, which loads it by its place: standard library only, Python 3.8 and later.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from typing import Any


class RefusedError(Exception):
    """The child cannot be started; the text says what to do."""


def launch(wish: Any, fds: list[int], defaults: Iterable[int]) -> int:
    """Start a child in its own session; what it was not given is /dev/null, as ours is."""
    argv, env, cwd = wish["argv"], wish["env"], wish["cwd"]
    try:
        os.chdir(cwd)  # noqa: TID251 (the keeper has one thread, and its children start where it is)
    except (OSError, ValueError) as error:
        raise RefusedError(f"cannot start in the folder {cwd!r}: {error}") from error
    actions = [(os.POSIX_SPAWN_DUP2, fd, wish["fds"][i]) for i, fd in enumerate(fds)]
    try:
        return os.posix_spawn(
            find_program(argv[0], env),
            argv,
            env,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=defaults,
        )
    except (OSError, ValueError, RefusedError) as error:
        raise RefusedError(f"cannot start {argv[0]!r}: {explain(error)}") from error
    finally:
        os.chdir("/")  # noqa: TID251 (same; a folder that a child was started in is not held)


def find_program(name: str, env: dict[str, str]) -> str:
    """Where a program is, along the child's own PATH if its name has no slash."""
    if "/" in name:
        return name
    path, forbidden = env.get("PATH", os.defpath), False
    for folder in path.split(":"):
        candidate = f"{folder or '.'}/{name}"
        try:
            mode = os.stat(candidate).st_mode  # noqa: PTH116 (importing pathlib would double the start)
        except OSError:
            continue
        if stat.S_ISREG(mode):
            if os.access(candidate, os.X_OK):
                return candidate
            forbidden = True
    if forbidden:
        raise PermissionError(errno.EACCES, "found, but not executable")
    raise RefusedError(f"not found along PATH={path}; install it, or give its full path")


ADVICE = {
    errno.ENOENT: "no such file, or the interpreter that its first line names is missing",
    errno.EACCES: "permission denied; make a script executable, or name its interpreter",
    errno.ENOEXEC: "not a program; a script needs a first line that names its interpreter",
    errno.E2BIG: "its arguments and environment are too long; pass long text by stdin or a file",
    errno.EAGAIN: "too many processes are running; end some, or raise the limit (ulimit -u)",
    errno.EMFILE: "too many files are open; end some processes, or raise the limit (ulimit -n)",
}


def explain(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in ADVICE:
        return ADVICE[error.errno]
    return str(error)
