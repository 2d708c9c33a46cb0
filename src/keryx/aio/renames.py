"""Two renames that the standard library lacks: to a free name only, and an exchange of two files.

Both are atomic, so that no file of someone else is lost between a check and a rename. If the system
does not support them, the caller gets to know and uses another way.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable
from typing import Final

# The flags of <linux/fs.h>, and of <sys/stdio.h> on macOS.
_FLAGS: Final = {"linux": ("renameat2", 1, 2), "darwin": ("renameatx_np", 4, 2)}
_UNSUPPORTED: Final = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}

_Rename = Callable[[int, bytes, bytes, int], int]


@functools.cache
def _system_rename() -> tuple[_Rename | None, int, int]:
    """Return the system's rename function, which returns an error number, and its two flags."""
    import ctypes  # noqa: PLC0415 (slow to load, and only needed once a file is written)

    name, no_replace, exchange_flag = _FLAGS.get(sys.platform, ("", 0, 0))
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None) if name else None
    if function is None:
        return None, no_replace, exchange_flag
    number, text = ctypes.c_int, ctypes.c_char_p
    function.argtypes = (number, text, number, text, ctypes.c_uint)

    def rename(folder: int, old: bytes, new: bytes, flag: int) -> int:
        result: int = function(folder, old, folder, new, flag)
        return 0 if result == 0 else ctypes.get_errno()

    return rename, no_replace, exchange_flag


def exchange(folder: int, first: str, second: str) -> bool:
    """Exchange two files of a folder atomically. Return False if the system does not support it."""
    return _rename(folder, first, second, _system_rename()[2])


def rename_to_free(folder: int, old: str, new: str) -> None:
    """Rename within a folder. Raise `FileExistsError` if the new name exists."""
    if _rename(folder, old, new, _system_rename()[1]):
        return
    try:
        os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # Hard links are not supported either: check the name first, then rename.
        if _exists(folder, new):
            raise FileExistsError(errno.EEXIST, "the name exists already", new) from None
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        os.unlink(old, dir_fd=folder)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _rename(folder: int, old: str, new: str, flag: int) -> bool:
    rename = _system_rename()[0]
    if rename is None:
        return False
    number = rename(folder, os.fsencode(old), os.fsencode(new), flag)
    if number == 0:
        return True
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), new)
