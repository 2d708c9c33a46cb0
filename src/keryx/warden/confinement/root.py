"""A private root: what is granted appears at its own path, everything else does not exist.

Built from copies of mounts, so symlinks and `..` end inside. Paths are opened without following
symlinks, and mounts are attached by descriptor: nobody can swap a folder meanwhile.

What is to be where is said by `plan`.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

from . import kernel, plan

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
SMALL = str(16 << 20)  # bytes of the file systems that hold nothing but mount points


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
        self.links: dict[str, str] = dict(policy["links"])
        self.sources: list[tuple[str, int]] = []
        planned = plan.plan(policy)
        for path, kind in planned.items():
            self.sources.append((path, self.source(path, kind)))
            if kind == "list":
                self.list_folder(path, {*planned, *policy["hidden"]})

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
        if kind == "list":
            return self.empty() if os.path.isdir(path) else -1  # noqa: PTH112 (same)
        if kind == "hide":
            tree = self.cover(path)
        elif kind == "tmp":
            tree = self.tmp()
        else:
            tree = self.copy(self.policy["uploads"] if kind == "uploads" else path)
        is_needed = kind in ("write", "tmp") or path == self.policy["workspace"]
        if tree < 0 and is_needed:
            raise plan.UnmountableError(
                f"{path!r} is not there, may not be entered, or is a symlink; grant a real path"
            )
        if tree >= 0 and kind != "hide":
            # A pin is a part of what it lies in: of a workspace that may only be read, too.
            only_read = kind in ("read", "uploads") or (kind == "pin" and self.policy["read_only"])
            kernel.set_attributes(tree, READ if only_read else WRITE)
        return tree

    def list_folder(self, path: str, others: set[str]) -> None:
        """What is in it now, but for what has a place of its own or none. Sockets are nobody's."""
        try:
            with os.scandir(path) as found:
                entries = list(found)
        except OSError:
            return  # it is not there, or nobody may look into it
        for entry in entries:
            name = f"{path.rstrip('/')}/{entry.name}"
            if name in others:
                continue
            if entry.is_symlink():
                self.links[name] = os.readlink(name)  # noqa: PTH115 (same)
            elif entry.is_dir() or entry.is_file():
                self.sources.append((name, self.source(name, "read")))

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
            raise plan.UnmountableError(f"{path!r} cannot be hidden: {error}") from error
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
        for path, tree in self.sources:
            if tree >= 0:
                self.put(tree, path)
        self.mount_processes()
        for path, target in {**self.links, "/var/tmp": plan.TMP}.items():  # noqa: S108 (same)
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
