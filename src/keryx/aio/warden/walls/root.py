"""A private root: what is granted appears at its own path, everything else does not exist.

Built from copies of mounts, so symlinks and `..` end inside. Paths are opened without following
symlinks, and mounts are attached by descriptor: nobody can swap a folder meanwhile.

Where paths lie in one another the deeper one decides. So what is hidden is hidden in whatever is
granted above it, and what is granted below a hidden folder is there. Hidden paths that do not
exist when the root is built cannot be covered.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

from . import kernel

READ = kernel.READ_ONLY | kernel.NO_SUID | kernel.NO_DEVICES
WRITE = kernel.NO_SUID | kernel.NO_DEVICES
# A device takes what is written to it all the same, but its mode is the host's.
DEVICE = kernel.READ_ONLY | kernel.NO_SUID | kernel.NO_EXEC
ANCHORS = ("/tmp", "/mnt", "/dev")  # noqa: S108 (covered in this namespace only, until the root changes)
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
TMP = "/tmp"  # noqa: S108 (the name inside; what is there is private)
UPLOADS = "/run/keryx/uploads"
SMALL = str(16 << 20)  # bytes of the file systems that hold nothing but mount points


class UnmountableError(Exception):
    """The root cannot be built as the policy says."""


def wishes(policy: Any) -> dict[str, str]:
    """What the policy wants at which path; `plan` says what comes of it."""
    wanted = dict.fromkeys(policy["readable"], "read")
    wanted.update((path, "write") for path in policy["writable"])
    wanted[policy["workspace"]] = "read" if policy["read_only"] else "write"
    if "/" in wanted:
        raise UnmountableError("the whole file system cannot be granted; choose a folder in it")
    for path in policy["hidden"]:
        if path == policy["workspace"] or wanted.get(path) == "write":
            raise UnmountableError(f"{path!r} must stay hidden; choose another folder")
    if policy["workspace"] != TMP and wanted.get(TMP) != "write":
        wanted[TMP] = "tmp"
    if policy["uploads"] is not None:
        wanted[UPLOADS] = "uploads"
    wanted.update((path, "hide") for path in policy["hidden"])
    return wanted


def plan(policy: Any) -> dict[str, str]:
    """What happens at which path, parents first.

    "read", "write", "tmp", "uploads", "hide" or "pin".
    """
    wanted = wishes(policy)
    planned: dict[str, str] = {}
    for path in sorted(wanted):
        kind, (above, grant) = wanted[path], enclosing(planned, path)
        if kind == "hide":
            if above in ("", "hide", "tmp"):
                continue  # there is nothing to hide
            if above != "read":
                planned.update((folder, "pin") for folder in between(grant, path))
        elif kind == above or (above in ("write", "pin") and kind != "tmp"):
            continue
        planned[path] = kind
    return dict(sorted(planned.items()))


def enclosing(planned: dict[str, str], path: str) -> tuple[str, str]:
    """The kind of the nearest planned path above, and that path; empty if there is none."""
    while path != "/":
        path = os.path.dirname(path)  # noqa: PTH120 (importing pathlib would double the start)
        if path in planned:
            return planned[path], path
    return "", ""


def between(above: str, path: str) -> list[str]:
    """The folders between two paths.

    Each becomes a mount point of its own, because those cannot be renamed: else a hidden path
    could be moved, by renaming a folder above it, to where the next keeper does not look.
    """
    found: list[str] = []
    path = os.path.dirname(path)  # noqa: PTH120 (same)
    while path != above:
        found.append(path)
        path = os.path.dirname(path)  # noqa: PTH120 (same)
    return found


class Root:
    """The new root while it is built. Sources are opened before anything is covered."""

    def __init__(self, policy: Any, *, own_processes: bool, most_pids: int) -> None:
        self.policy = policy
        self.own_processes = own_processes
        self.most_pids = most_pids
        self.host = os.open("/", kernel.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.root = -1
        self.closing: list[int] = []  # mounts of ours that become read-only in the end
        self.devices = {name: self.device(name) for name in DEVICES}
        self.sources = [
            (path, kind, self.source(path, kind)) for path, kind in plan(policy).items()
        ]

    # -- sources

    def copy(self, path: str) -> int:
        """A copy of the mounts of the host at a path; -1 if there is none."""
        try:
            fd = kernel.open_path(self.host, path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP):
                return -1
            raise
        try:
            return kernel.copy_tree(fd)
        finally:
            os.close(fd)

    def device(self, name: str) -> int:
        tree = self.copy(f"/dev/{name}")
        if tree >= 0:
            kernel.set_attributes(tree, DEVICE)
        return tree

    def source(self, path: str, kind: str) -> int:
        if kind == "hide":
            tree = self.cover(path)
        elif kind == "tmp":
            tree = self.tmp()
        else:
            tree = self.copy(self.policy["uploads"] if kind == "uploads" else path)
        is_needed = kind in ("write", "tmp") or path == self.policy["workspace"]
        if tree < 0 and is_needed:
            raise UnmountableError(
                f"{path!r} is not there, may not be entered, or is a symlink; grant a real path"
            )
        if tree >= 0 and kind != "hide":
            kernel.set_attributes(tree, READ if kind in ("read", "uploads") else WRITE)
        return tree

    def tmp(self) -> int:
        if self.policy["tmp"] is None:
            return self.memory()
        return self.copy(self.policy["tmp"])

    def memory(self) -> int:
        most = self.policy["limits"].get("memory") or 1 << 30
        return kernel.make_filesystem("tmpfs", {"mode": "1777", "size": str(most // 2)}, WRITE)

    def cover(self, path: str) -> int:
        """Something empty to put over a path; -1 if it is not there."""
        try:
            fd = kernel.open_path(self.host, path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                return -1
            raise UnmountableError(f"{path!r} cannot be hidden: {error}") from error
        is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
        os.close(fd)
        if not is_folder:
            return self.device("null")
        return self.empty()

    def empty(self) -> int:
        tree = kernel.make_filesystem("tmpfs", {"mode": "0755", "size": SMALL}, WRITE)
        self.closing.append(tree)
        return tree

    # -- targets

    def build(self) -> None:
        """Put everything in its place, and go there."""
        self.root = self.empty()
        anchor = next(path for path in ANCHORS if os.path.isdir(path))  # noqa: PTH112 (same)
        fd = os.open(anchor, kernel.O_PATH | os.O_CLOEXEC)
        kernel.attach(self.root, fd)
        os.close(fd)
        for folder in ("proc", "dev", "run", "var"):
            os.mkdir(folder, 0o755, dir_fd=self.root)
        self.mount_devices()
        for path, _, tree in self.sources:
            if tree >= 0:
                self.put(tree, path)
        self.mount_processes()
        for path, target in {**self.policy["links"], "/var/tmp": TMP}.items():  # noqa: S108 (same)
            self.link(path, target)
        for tree in self.closing:
            kernel.set_attributes(tree, kernel.READ_ONLY, below=False)
        kernel.change_root(self.root)
        for fd in {self.host, self.root, *self.closing}:
            os.close(fd)

    def put(self, tree: int, path: str) -> None:
        is_folder = stat.S_ISDIR(os.fstat(tree).st_mode)
        target = self.mount_point(path, is_folder=is_folder)
        kernel.attach(tree, target)
        os.close(target)
        if tree not in self.closing:
            os.close(tree)

    def mount_point(self, path: str, *, is_folder: bool) -> int:
        """The place for a mount; made, with all above it, where nothing is yet."""
        try:
            return kernel.open_path(self.root, path)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
        above, name = os.path.split(path)
        folder = self.mount_point(above, is_folder=True)
        try:
            if is_folder:
                os.mkdir(name, 0o755, dir_fd=folder)
            else:
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
                os.close(os.open(name, flags, 0o644, dir_fd=folder))
        finally:
            os.close(folder)
        return kernel.open_path(self.root, path)

    def mount_devices(self) -> None:
        folder = self.empty()
        self.put(folder, "/dev")
        for name, target in DEVICE_LINKS.items():
            os.symlink(target, name, dir_fd=folder)
        for name, tree in self.devices.items():
            if tree >= 0:
                self.put(tree, f"/dev/{name}")
        options = {"mode": "0620", "ptmxmode": "0666"}
        self.put(kernel.make_filesystem("devpts", options, kernel.NO_SUID), "/dev/pts")
        self.put(self.memory(), "/dev/shm")  # noqa: S108 (private)

    def mount_processes(self) -> None:
        """Read-only, because user 0 is the real one to /proc/sys, whatever it may do otherwise."""
        if not self.own_processes:
            tree = self.copy("/proc")
            kernel.set_attributes(tree, READ)
            self.put(tree, "/proc")
            return
        tree = kernel.make_filesystem("proc", {}, WRITE | kernel.NO_EXEC)
        # In a namespace of its own a child would be almighty, if over nothing: none is made.
        write_at(tree, "sys/user/max_user_namespaces", "0")
        if self.most_pids:
            write_at(tree, "sys/kernel/pid_max", str(self.most_pids))
        kernel.set_attributes(tree, kernel.READ_ONLY)
        self.put(tree, "/proc")

    def link(self, path: str, target: str) -> None:
        """A name that leads to a granted path, unless something is there already."""
        above, name = os.path.split(path)
        try:
            folder = self.mount_point(above, is_folder=True)
        except OSError:
            return  # its place is in what a grant shows, as it is there
        try:
            os.symlink(target, name, dir_fd=folder)
        except OSError:
            return  # same
        finally:
            os.close(folder)


def write_at(folder: int, path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
