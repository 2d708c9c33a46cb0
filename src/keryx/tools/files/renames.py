"""The two renames that the standard library lacks: to a free name only, and of two files at once.

Both tell afterwards what really was at a name, so that nobody's work is lost between a look and a
rename. Where the system cannot do them, the caller is told and does without.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable
from typing import Final

# Of <linux/fs.h> and of <sys/stdio.h> on macOS.
_FLAGS: Final = {"linux": ("renameat2", 1, 2), "darwin": ("renameatx_np", 4, 2)}
_CANNOT: Final = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}

_Rename = Callable[[int, bytes, bytes, int], int]


@functools.cache
def _found() -> tuple[_Rename | None, int, int]:
    """The system's own rename, which tells what went wrong, and its two flags."""
    import ctypes  # noqa: PLC0415 (slow to load, and only needed once a file is written)

    name, free, both = _FLAGS.get(sys.platform, ("", 0, 0))
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None) if name else None
    if function is None:
        return None, free, both
    number, text = ctypes.c_int, ctypes.c_char_p
    function.argtypes = (number, text, number, text, ctypes.c_uint)

    def rename(folder: int, old: bytes, new: bytes, flag: int) -> int:
        done: int = function(folder, old, folder, new, flag)
        return 0 if done == 0 else ctypes.get_errno()

    return rename, free, both


def exchange(folder: int, one: str, other: str) -> bool:
    """Let two files of a folder change places, in one instant. False: that cannot be done here."""
    return _flagged(folder, one, other, _found()[2])


def rename_to_free(folder: int, old: str, new: str) -> None:
    """Rename within a folder; `FileExistsError` if the new name is taken."""
    if _flagged(folder, old, new, _found()[1]):
        return
    try:
        os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # No such links here either: all that is left is to look first.
        if _is_taken(folder, new):
            raise FileExistsError(errno.EEXIST, "the name is taken", new) from None
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        os.unlink(old, dir_fd=folder)


def _is_taken(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _flagged(folder: int, old: str, new: str, flag: int) -> bool:
    rename = _found()[0]
    if rename is None:
        return False
    number = rename(folder, os.fsencode(old), os.fsencode(new), flag)
    if number == 0:
        return True
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), new)
