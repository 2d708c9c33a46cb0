"""Landlock: a process gives up rights on files, TCP, signals and abstract sockets for good.

It knows rights and paths. Which paths are granted is decided by `confine`.
"""

from __future__ import annotations

import os
import stat
import struct

from . import kernel

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION = 1  # flag of landlock_create_ruleset: tell the version
RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
ALL_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE

LIST = READ_DIR
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = (1 << 16) - 1
DEVICE = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | IOCTL_DEVICE

TCP = 0b11  # bind and connect
SIGNALS_AND_ABSTRACT_SOCKETS = 0b11

TRUNCATE_SINCE, TCP_SINCE, SCOPES_SINCE = 3, 4, 6


def version() -> int:
    """The version of Landlock here; 0 if there is none."""
    try:
        return kernel.syscall("landlock", CREATE_RULESET, None, 0, VERSION)
    except OSError:
        return 0


def restrict(grants: list[tuple[str, int]], abi: int, *, tcp: bool) -> None:
    """From now on only what is granted; `tcp` leaves TCP alone. Needs no_new_privs."""
    handled = ALL_BY_VERSION[max(known for known in ALL_BY_VERSION if known <= abi)]
    attributes = struct.pack("Q", handled)
    if abi >= TCP_SINCE:
        attributes += struct.pack("Q", 0 if tcp else TCP)
    if abi >= SCOPES_SINCE:
        attributes += struct.pack("Q", SIGNALS_AND_ABSTRACT_SOCKETS)
    ruleset = kernel.syscall("landlock", CREATE_RULESET, attributes, len(attributes), 0)
    root = os.open("/", kernel.O_PATH | os.O_CLOEXEC)
    try:
        for path, rights in grants:
            _grant(ruleset, root, path, rights & handled)
        kernel.syscall("landlock_restrict_self", RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
        os.close(root)


def _grant(ruleset: int, root: int, path: str, rights: int) -> None:
    try:
        fd = kernel.open_path(root, path)
    except OSError:
        return  # what is not there needs no rule
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= ON_FILES
        rule = struct.pack("=Qi", rights, fd)
        kernel.syscall(f"landlock rule for {path}", ADD_RULE, ruleset, RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(fd)
