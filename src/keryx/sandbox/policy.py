"""What the children of a session may see, write and use, as plain data for the warden.

It decides which folders of a machine are needed to run programs and which hold secrets. How a
policy is enforced, and how far that goes here, is the business of the warden's keepers.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

import msgspec

# What programs need to run; the rest of the machine is not there.
SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"),
    *("/nix/store", "/run/current-system", "/var/lib/dpkg", "/var/cache/fontconfig"),
)
# Where programs of other makers keep what only their owner may read.
OWNED: Final = ("/etc", "/opt", "/usr/local")
MOST_LOOKED_AT: Final = 20_000
# Single files, because their folders hold sockets.
SYSTEM_FILES: Final = ("/etc/resolv.conf", "/etc/localtime", "/etc/machine-id")
# Below the home of the user.
USER_SECRETS: Final = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".pgpass", ".pypirc"),
    *(".npmrc", ".yarnrc", ".git-credentials", ".vault-token", ".boto", ".s3cfg", ".my.cnf"),
    *(".password-store", ".mozilla", ".thunderbird", ".bash_history", ".zsh_history"),
    *(".python_history", ".config/gcloud", ".config/gh", ".config/hub", ".config/op"),
    *(".config/google-chrome", ".config/chromium", ".config/rclone", ".config/containers"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".terraform.d"),
    *(".local/share/keyrings", ".config/git/credentials", ".subversion/auth"),
)


class Limits(msgspec.Struct, frozen=True):
    """What children may use; None is no limit. Processes and memory: all of a session together."""

    processes: int | None = 512
    """Threads count as well."""
    memory: int | None = 8 << 30
    """Bytes."""
    cpu: int | None = None
    """Seconds, of one command."""
    file_size: int | None = 16 << 30
    """Bytes, of one file."""
    open_files: int | None = 4096
    """Of one process."""


class Policy(msgspec.Struct, frozen=True):
    """What the children of a session may do.

    Paths are absolute and lead through no symlink; `build` makes them so. Where they lie in one
    another, the deeper one decides.
    """

    workspace: str
    """The folder that they work in, and may change if they may write at all."""
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    """What they never see, even where it lies below what they may read or change."""
    links: dict[str, str] = {}
    """Other names of granted paths, and where each leads."""
    tmp: str | None = None
    """A folder for them alone, which they see as /tmp if mounts are possible; None: in memory."""
    uploads: str | None = None
    """What people attached, only for reading, and in no folder that they may write: the host reads
    there too. If mounts are possible they see it elsewhere; see `Confinement`."""
    read_only: bool = False
    """Whether they may write nothing but temporary files."""
    network: bool = False
    limits: Limits = Limits()
    required: bool = False
    """Whether to refuse anything less than full confinement."""
    too_large: tuple[str, ...] = ()
    """Folders that can be read and in which nobody looked for what should be hidden."""
    without: tuple[str, ...] = ()
    """Walls that are left out on purpose, to show what is missing without them: "landlock",
    "landlock 5" (no newer version), "userns", "pids", "net", "ipc", "bounds", "seccomp"."""

    def wire(self) -> dict[str, Any]:
        """As plain data; what `Warden.spawn` and `Warden.confinement` take."""
        return msgspec.to_builtins(self)

    @classmethod
    def build(
        cls,
        workspace: str | os.PathLike[str],
        *,
        home: str | os.PathLike[str],
        writable: Iterable[str | os.PathLike[str]] = (),
        readable: Iterable[str | os.PathLike[str]] = (),
        hidden: Iterable[str | os.PathLike[str]] = (),
        tmp: str | os.PathLike[str] | None = None,
        uploads: str | os.PathLike[str] | None = None,
        read_only: bool = False,
        network: bool = False,
        limits: Limits | None = None,
        required: bool = False,
        owned: OwnersOnly | None = None,
    ) -> Self:
        """A policy for this machine: its programs and this Python can be read, secrets not.

        `home` is the user's, for the secrets below it; KERYX_HOME belongs into `hidden`. What only
        owners may read is looked for, unless it is `owned`, as somebody found it. Looks at the
        file system, so it is not for the loop.
        """
        links: dict[str, str] = {}

        def real(paths: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
            return tuple(dict.fromkeys(_resolve(path, links) for path in paths))

        pythons = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
        owners = owners_only() if owned is None else owned
        secrets = (*owners.paths, *(Path(home, name) for name in USER_SECRETS))
        return cls(
            workspace=real([workspace])[0],
            writable=() if read_only else real(writable),
            readable=real(filter(os.path.exists, (*SYSTEM, *SYSTEM_FILES, *pythons, *readable))),
            hidden=tuple(dict.fromkeys(str(Path(path).resolve()) for path in (*secrets, *hidden))),
            links=links,
            tmp=None if tmp is None else real([tmp])[0],
            uploads=None if uploads is None else real([uploads])[0],
            read_only=read_only,
            network=network,
            limits=Limits() if limits is None else limits,
            required=required,
            too_large=owners.too_large,
        )


class OwnersOnly(msgspec.Struct, frozen=True):
    """What this user may read of the system's folders, and others may not.

    To the file system the children of a host that runs as root are root.
    """

    paths: tuple[str, ...] = ()
    too_large: tuple[str, ...] = ()
    """Folders that were not looked through to the end."""


def owners_only(tops: Iterable[str] = OWNED, most: int = MOST_LOOKED_AT) -> OwnersOnly:
    """Looks at every file of these folders: it takes a tenth of a second, or longer."""
    paths: list[str] = []
    too_large = [top for top in tops if not _look_through(top, most, paths)]
    return OwnersOnly(tuple(paths), tuple(too_large))


def _look_through(top: str, most: int, paths: list[str]) -> bool:
    """Whether all of it could be looked at."""
    waiting = [top]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    most -= 1
                    if most < 0:
                        return False
                    mode = entry.stat(follow_symlinks=False).st_mode
                    if not (mode & stat.S_IROTH) and os.access(entry.path, os.R_OK):
                        paths.append(entry.path)
                    elif stat.S_ISDIR(mode):
                        waiting.append(entry.path)
        except OSError:
            continue  # it may not be looked at, or has just gone
    return True


def _resolve(path: str | os.PathLike[str], links: dict[str, str]) -> str:
    """Where a path leads; if it is only a name for that place, the name is kept as well."""
    name = os.path.abspath(path)  # noqa: PTH100 (Path.absolute leaves .. in)
    real = str(Path(path).resolve())
    if real != name:
        links[name] = real
    return real
