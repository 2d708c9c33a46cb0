"""The system calls that confinement needs and Python does not offer.

Each raises OSError with the name of the call. What the calls are for is the business of others.
The numbers from 424 on are the same on every architecture.
"""

from __future__ import annotations

import ctypes
import os
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

READ_ONLY = 1
NO_SUID = 2
NO_DEVICES = 4
NO_EXEC = 8

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
O_PATH = 0o10000000
OPEN_TREE_CLONE = 1
FSOPEN_CLOEXEC = 1
FSCONFIG_SET_STRING = 1
FSCONFIG_CMD_CREATE = 6
MOVE_MOUNT_EMPTY_PATHS = 0x04 | 0x40
RESOLVE_NO_SYMLINKS = 0x04

PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
# Being user 0 gives no capability, none is kept or made ambient; all of it locked.
SECUREBITS = 0b1110_1011
CAPABILITY_VERSION = 0x20080522

KEYCTL = {"x86_64": 250, "aarch64": 219}
KEYCTL_JOIN_SESSION_KEYRING = 1

libc = ctypes.CDLL(None, use_errno=True)


def failed(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def syscall(what: str, number: int, *arguments: int | bytes | None) -> int:
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = int(libc.syscall(ctypes.c_long(number), *wide))
    if result < 0:
        raise failed(what)
    return result


def unshare(flags: int) -> None:
    if libc.unshare(flags) != 0:
        raise failed("unshare")


def prctl(option: int, value: int = 0) -> None:
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise failed(f"prctl {option}")


# -- mounts


def keep_mounts_private() -> None:
    """What is mounted from now on stays in this namespace, and what others mount out of it."""
    if libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None) != 0:
        raise failed("mount --make-rprivate")


def open_path(root: int, path: str, flags: int = 0) -> int:
    """A path below an open folder, as a descriptor that cannot be led astray by a symlink."""
    how = struct.pack("QQQ", O_PATH | os.O_CLOEXEC | flags, 0, RESOLVE_NO_SYMLINKS)
    name = os.fsencode(path.strip("/") or ".")
    return syscall(f"open {path}", 437, root, name, how, len(how))


def copy_tree(fd: int) -> int:
    """A copy of the mounts at and below a path, attached nowhere yet."""
    flags = OPEN_TREE_CLONE | AT_EMPTY_PATH | AT_RECURSIVE | os.O_CLOEXEC
    return syscall("open_tree", 428, fd, b"", flags)


def make_filesystem(kind: str, options: dict[str, str], attributes: int) -> int:
    """A new file system, attached nowhere yet."""
    fd = syscall(f"fsopen {kind}", 430, kind.encode(), FSOPEN_CLOEXEC)
    try:
        for name, value in options.items():
            what = f"{kind} {name}={value}"
            syscall(what, 431, fd, FSCONFIG_SET_STRING, name.encode(), value.encode(), 0)
        syscall(f"create {kind}", 431, fd, FSCONFIG_CMD_CREATE, None, None, 0)
        return syscall(f"fsmount {kind}", 432, fd, FSOPEN_CLOEXEC, attributes)
    finally:
        os.close(fd)


def set_attributes(tree: int, attributes: int, *, below: bool = True) -> None:
    """Of a mount, and of all that are mounted below it."""
    how = struct.pack("QQQQ", attributes, 0, 0, 0)
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if below else 0)
    syscall("mount_setattr", 442, tree, b"", flags, how, len(how))


def attach(tree: int, target: int) -> None:
    syscall("move_mount", 429, tree, b"", target, b"", MOVE_MOUNT_EMPTY_PATHS)


def change_root(root: int) -> None:
    """Make a mount the root of everything; the old one is gone."""
    os.fchdir(root)
    if libc.pivot_root(b".", b".") != 0:
        raise failed("pivot_root")
    if libc.umount2(b".", MNT_DETACH) != 0:
        raise failed("umount of the old root")
    os.chdir("/")  # noqa: TID251 (a keeper's own process, before it serves)


# -- privileges


def drop_privileges() -> None:
    """No capability is left, and no program that is started can bring one back."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    for step in (_clear_ambient, _set_securebits, _empty_bounding_set):
        try:
            step()
        except OSError:
            continue  # only who has capabilities may give them up; an ordinary user has none
    header = struct.pack("Ii", CAPABILITY_VERSION, 0)
    if libc.capset(header, bytes(24)) != 0:
        raise failed("capset")


def _clear_ambient() -> None:
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)


def _set_securebits() -> None:
    prctl(PR_SET_SECUREBITS, SECUREBITS)


def _empty_bounding_set() -> None:
    for capability in range(64):
        prctl(PR_CAPBSET_DROP, capability)  # ends with EINVAL at the first that does not exist


def leave_keyring() -> None:
    """The keys of the session that the host was started in stay there."""
    number = KEYCTL.get(os.uname().machine)
    if number is not None:
        try:
            syscall("keyctl", number, KEYCTL_JOIN_SESSION_KEYRING, None)
        except OSError:
            return  # a kernel without keys


def refuse_tracing() -> None:
    """Children run as the same user; none of them may look into this process."""
    prctl(PR_SET_DUMPABLE, 0)
