"""Namespaces: which kinds this machine allows, and how a process gets into them.

It makes them and maps the user; what is mounted inside is the business of `root`.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct

from . import kernel

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
OTHERS = {"net": kernel.CLONE_NEWNET, "ipc": kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS}
KINDS = ("mounts", "pids", "net", "ipc")


def enter_user_namespace(flags: int = 0) -> None:
    """Become the same user in a namespace of its own, where capabilities mean nothing outside."""
    user, group = os.getuid(), os.getgid()
    kernel.unshare(kernel.CLONE_NEWUSER | flags)
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{user} {user} 1")
    write("/proc/self/gid_map", f"{group} {group} 1")


def enter_others(kinds: set[str]) -> None:
    """The namespaces that a process can change to without a fork; from within a user namespace."""
    flags = kernel.CLONE_NEWNS if "mounts" in kinds else 0
    for kind, flag in OTHERS.items():
        if kind in kinds:
            flags |= flag
    kernel.unshare(flags)
    if "mounts" in kinds:
        kernel.keep_mounts_private()
    if "net" in kinds:
        bring_loopback_up()


def bring_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        name = struct.pack("16sh", b"lo", 0)
        _, flags = struct.unpack("16sh", fcntl.ioctl(sock, SIOCGIFFLAGS, name + bytes(14))[:18])
        up = struct.pack("16sh", b"lo", flags | IFF_UP) + bytes(14)
        fcntl.ioctl(sock, SIOCSIFFLAGS, up)


def write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def fork_as_init() -> int:
    """Like fork, but the child is the first process of a PID namespace in a user namespace.

    A child that lives for a moment makes the namespaces, because whoever does cannot be in
    that PID namespace itself. The new process then comes to this one, the subreaper.
    """
    reading, writing = os.pipe()
    launcher = os.fork()  # noqa: TID251 (the warden; it has one thread)
    if launcher == 0:
        try:
            enter_user_namespace(kernel.CLONE_NEWPID)
            pid = os.fork()  # noqa: TID251 (same)
            if pid == 0:
                os.close(reading)
                os.close(writing)
                return 0
            os.write(writing, str(pid).encode())
        except OSError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    try:
        os.waitpid(launcher, 0)  # short: two system calls and a fork
        answer = os.read(reading, 1000).decode()
    finally:
        os.close(reading)
    if not answer.isdigit():
        raise OSError(f"the namespaces of a keeper cannot be made: {answer}")
    return int(answer)


# -- what is there


def find_kinds() -> frozenset[str]:
    """The kinds that work here, each tried out for real in a child."""
    if works(set(KINDS)):
        return frozenset(KINDS)
    if not works({"mounts"}):
        return frozenset()  # also where user namespaces exist but give no rights
    return frozenset({"mounts"} | {kind for kind in KINDS if works({"mounts", kind})})


def works(kinds: set[str]) -> bool:
    child = os.fork()  # noqa: TID251 (the warden; it has one thread)
    if child == 0:
        code = 1
        try:
            enter_user_namespace(kernel.CLONE_NEWPID if "pids" in kinds else 0)
            init = os.fork() if "pids" in kinds else 0  # noqa: TID251 (same)
            if init:
                code = os.waitpid(init, 0)[1] != 0
            else:
                enter_others(kinds)
                os.close(kernel.make_filesystem("tmpfs", {}, 0))
                if "pids" in kinds:
                    os.close(kernel.make_filesystem("proc", {}, 0))
                root = os.open("/", os.O_RDONLY | os.O_CLOEXEC)
                kernel.set_attributes(kernel.copy_tree(root), kernel.READ_ONLY)
                code = 0
        except OSError:
            pass
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0
