"""What the children of a session may see, write and use, as plain data for the warden.

It decides which folders of a machine are needed to run programs and which hold secrets. The
warden's keepers enforce a policy, as far as the machine allows.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

import msgspec

# The paths that programs need to run; children see nothing else of the machine.
SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"),
    *("/nix/store", "/run/current-system", "/var/lib/dpkg", "/var/cache/fontconfig"),
)
# Folders where installed programs keep files that only their owner may read.
OWNED: Final = ("/etc", "/opt", "/usr/local")
MOST_SEARCHED: Final = 20_000
# Single files, because their folders contain sockets.
SYSTEM_FILES: Final = ("/etc/resolv.conf", "/etc/localtime", "/etc/machine-id")
# Paths below the user's home.
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
    """What children may use; None means no limit. Processes and memory are per session."""

    processes: int | None = 512
    """Threads count too."""
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

    Paths are absolute and contain no symlinks; `build` resolves them. If one path lies in another,
    the deeper path decides.
    """

    workspace: str
    """The folder that they work in; they may change it unless `read_only` is set."""
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    """Paths that they never see, even inside folders that they may read or change."""
    links: dict[str, str] = {}
    """Symlinks to granted paths, with their targets."""
    tmp: str | None = None
    """A private folder, which they see as /tmp if mounts are possible; None: in memory."""
    uploads: str | None = None
    """The folder of attached files, read-only and outside of all writable folders, because the
    host reads it too. If mounts are possible they see it at another path; see `Confinement`."""
    read_only: bool = False
    """Whether they may write only temporary files."""
    network: bool = False
    limits: Limits = Limits()
    required: bool = False
    """Whether to refuse anything less than full confinement."""
    too_large: tuple[str, ...] = ()
    """Readable folders that were too large to be searched for files that should be hidden."""
    without: tuple[str, ...] = ()
    """Walls that are left out on purpose, to test the gaps without them: "landlock",
    "landlock 5" (no newer version), "userns", "pids", "net", "ipc", "bounds", "seccomp"."""

    def wire(self) -> dict[str, Any]:
        """Return the policy as plain data, for `Warden.spawn` and `Warden.confinement`."""
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
        """Build a policy for this machine: programs and this Python are readable, secrets not.

        `home` is the user's home, for the secrets below it; put KERYX_HOME into `hidden`. Files
        that only owners may read are searched for, unless `owned` holds the result of a search.
        This reads the file system, so do not call it on the loop.
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
    """Paths in the system's folders that this user may read and other users may not.

    They must be hidden: if the host runs as root, the file system treats its children as root.
    """

    paths: tuple[str, ...] = ()
    too_large: tuple[str, ...] = ()
    """Folders that were not searched to the end."""


def owners_only(tops: Iterable[str] = OWNED, most: int = MOST_SEARCHED) -> OwnersOnly:
    """Search every file of these folders. This takes a tenth of a second, or longer."""
    paths: list[str] = []
    too_large = [top for top in tops if not _search(top, most, paths)]
    return OwnersOnly(tuple(paths), tuple(too_large))


def _search(top: str, most: int, paths: list[str]) -> bool:
    """Add the owner-only paths below `top`; return whether all of it was searched."""
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
            continue  # it may not be read, or was just removed
    return True


def _resolve(path: str | os.PathLike[str], links: dict[str, str]) -> str:
    """Return the real path; if it differs from the given one, add that to `links`."""
    name = os.path.abspath(path)  # noqa: PTH100 (Path.absolute leaves .. in)
    real = str(Path(path).resolve())
    if real != name:
        links[name] = real
    return real
