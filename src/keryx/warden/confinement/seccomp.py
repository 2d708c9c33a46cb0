"""Seccomp: system calls that ordinary programs do without are refused, in a filter made here.

The filter is a program for the kernel's packet filter. It compares numbers and looks at arguments
that are numbers themselves; what a pointer leads to it cannot see, so calls that hide what counts
behind one (`clone3`, `openat2`) are "not there", and programs then use the older ones.

One call is for the keeper alone: the one that sets the tag of its children. It carries a secret in
arguments that the kernel does not read.

It refuses to know paths, networks and processes. Those are walls of their own.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct
from collections.abc import Iterable
from typing import NamedTuple

from . import kernel

PR_SET_SECCOMP, MODE_FILTER = 22, 2
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16
OTHER_TABLE = 0x40000000  # numbers from here on are those of x32, on x86_64

SET_ID_BITS = 0o6000
MAKES_FILE = os.O_CREAT | 0o20000000  # O_TMPFILE without the bit of O_DIRECTORY
NEW_NAMESPACES = 0x7E020080  # all CLONE_NEW… of unshare; 0x80 is that of time
FAMILIES = (1, 2, 10, 16)  # unix, inet, inet6, netlink
PUSH_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
ATTACH = (16, 0x4206)  # PTRACE_ATTACH, PTRACE_SEIZE
EXIT_SIGNAL = 0xFF  # of clone: there the bit of time namespaces means something else

# (x86_64, aarch64); -1 where there is none. From 424 on they are the same everywhere.
NUMBERS: dict[str, tuple[int, int]] = {
    "open": (2, -1),
    "creat": (85, -1),
    "openat": (257, 56),
    "openat2": (437, 437),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ioctl": (16, 29),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
}
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

MODE_AT = {
    **dict.fromkeys(("creat", "chmod", "fchmod", "mknod"), 1),
    **dict.fromkeys(("fchmodat", "fchmodat2", "mknodat"), 2),
}
FLAGS_AT = {"open": 1, "openat": 2}
ABSENT = ("openat2", "clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")
OF_OTHERS = ("process_vm_readv", "process_vm_writev", "pidfd_getfd")
FORBIDDEN = (
    *("setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen"),
    *("fsconfig", "fsmount", "fspick", "mount_setattr", "userfaultfd", "bpf", "perf_event_open"),
    *("add_key", "request_key", "keyctl", "open_by_handle_at", "init_module", "finit_module"),
    *("delete_module", "kexec_load", "kexec_file_load", "swapon", "swapoff", "reboot", "acct"),
    *("quotactl", "quotactl_fd"),
)


# The limit that tags are; see `main`. The secret is this keeper's, in two halves.
TAG = 10
SECRET_AT = 4
_secret: list[int] = []


class Step(NamedTuple):
    """One instruction; `yes` and `no` are how many of the next ones are skipped."""

    code: int
    value: int
    yes: int = 0
    no: int = 0


def is_there() -> bool:
    """Whether this kernel takes filters, and the numbers of its calls are known here."""
    if os.uname().machine not in ARCHITECTURES:
        return False
    # Without a program it cannot be put up; a kernel that knows of them says so by this error.
    refused = kernel.libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(MODE_FILTER), None, 0, 0) != 0
    return refused and ctypes.get_errno() == errno.EFAULT


def restrict(*, tracing: bool) -> None:
    """Put it up for this process and all that it starts. Needs no_new_privs.

    `tracing` leaves debuggers alone, where other walls keep them to the session's own processes.
    """
    _secret[:] = struct.unpack("QQ", bytes(byte & 0x7F for byte in os.urandom(16)))
    program = b"".join(
        struct.pack("HBBI", s.code, s.yes, s.no, s.value) for s in steps(tracing=tracing)
    )
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HP", len(program) // 8, ctypes.addressof(code))
    if kernel.libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(MODE_FILTER), head, 0, 0) != 0:
        raise kernel.failed("seccomp")


def set_tag(tag: int) -> None:
    """Of this process and what it starts from now on; only who put the filter up can."""
    _, hard = resource.getrlimit(TAG)
    limit = struct.pack("Qq", tag, hard)
    number = NUMBERS["prlimit64"][ARCHITECTURES[os.uname().machine][0]]
    try:
        kernel.syscall("prlimit64", number, 0, TAG, limit, None, *_secret)
    except OSError:
        return  # a finite hard limit; their orphans then carry the tag of nobody


def steps(*, tracing: bool) -> list[Step]:
    column, architecture = ARCHITECTURES[os.uname().machine]
    program = [
        Step(LOAD, ARCHITECTURE_AT),
        Step(EQUAL, architecture, yes=1),
        refuse(errno.ENOSYS),  # of another architecture, with other numbers
        Step(LOAD, NUMBER_AT),
        Step(AT_LEAST, OTHER_TABLE, no=1),
        refuse(errno.ENOSYS),
    ]
    for name, body in rules(tracing=tracing):
        number = NUMBERS[name][column]
        if number >= 0:
            program += (Step(EQUAL, number, no=len(body)), *body)
    return [*program, Step(RETURN, ALLOW)]


def rules(*, tracing: bool) -> Iterable[tuple[str, list[Step]]]:
    """What is done when a call comes; each ends by itself."""
    for name, place in FLAGS_AT.items():
        yield name, [*unless_any_bit(place, MAKES_FILE), *if_any_bit(place + 1, SET_ID_BITS)]
    for name, place in MODE_AT.items():
        yield name, if_any_bit(place, SET_ID_BITS)
    for name in ("socket", "socketpair"):
        yield name, if_none_of(0, FAMILIES, errno.EAFNOSUPPORT)
    yield "ioctl", if_one_of(1, PUSH_INPUT)
    yield "setrlimit", if_one_of(0, (TAG,))
    yield "prlimit64", if_tag_is_set(_secret)
    yield "unshare", if_any_bit(0, NEW_NAMESPACES)
    yield "clone", if_any_bit(0, NEW_NAMESPACES & ~EXIT_SIGNAL)
    if not tracing:
        yield "ptrace", if_one_of(0, ATTACH)
        for name in OF_OTHERS:
            yield name, [refuse(errno.EPERM)]
    for name in FORBIDDEN:
        yield name, [refuse(errno.EPERM)]
    for name in ABSENT:
        yield name, [refuse(errno.ENOSYS)]


# -- what a rule is made of


def refuse(error: int) -> Step:
    return Step(RETURN, REFUSE | error)


def load(place: int) -> Step:
    """The lower half of an argument, all that counts of a number here; both are little-endian."""
    return Step(LOAD, ARGUMENTS_AT + 8 * place)


def unless_any_bit(place: int, bits: int) -> list[Step]:
    """Goes on only if one of them is set."""
    return [load(place), Step(ANY_BIT, bits, yes=1), Step(RETURN, ALLOW)]


def if_any_bit(place: int, bits: int) -> list[Step]:
    refused = refuse(errno.EPERM)
    return [load(place), Step(ANY_BIT, bits, no=1), refused, Step(RETURN, ALLOW)]


def if_one_of(place: int, values: tuple[int, ...]) -> list[Step]:
    return [load(place), *among(values), Step(RETURN, ALLOW), refuse(errno.EPERM)]


def if_none_of(place: int, values: tuple[int, ...], error: int) -> list[Step]:
    return [load(place), *among(values), refuse(error), Step(RETURN, ALLOW)]


def among(values: tuple[int, ...]) -> list[Step]:
    """The step after the next one if it is one of them, else the next."""
    return [Step(EQUAL, value, yes=len(values) - at) for at, value in enumerate(values)]


def if_tag_is_set(secret: list[int]) -> list[Step]:
    """Another limit, or only a look at this one, is free."""
    halves = [half for number in secret for half in (number & 0xFFFFFFFF, number >> 32)]
    parts: list[Step] = []
    for at, half in enumerate(halves):
        left = 2 * (len(halves) - at) - 1
        parts += (Step(LOAD, ARGUMENTS_AT + 8 * SECRET_AT + 4 * at), Step(EQUAL, half, no=left))
    return [
        *(load(1), Step(EQUAL, TAG, yes=1), Step(RETURN, ALLOW)),
        *(load(2), Step(EQUAL, 0, no=3)),
        *(Step(LOAD, ARGUMENTS_AT + 8 * 2 + 4), Step(EQUAL, 0, no=1), Step(RETURN, ALLOW)),
        *(*parts, Step(RETURN, ALLOW), refuse(errno.EPERM)),
    ]
