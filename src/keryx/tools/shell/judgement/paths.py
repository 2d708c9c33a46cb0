"""Where things lie: inside of the workspace or not, secret or not. Looks at names only.

No file is looked at: a link inside the workspace that leads out of it is not seen here. Keeping
commands in is the confinement's work; this is what a person is told before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from posixpath import join, normpath

from keryx.tools.shell.rules.actions import Argument, names

_HARMLESS_DEVICES = names(
    """/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/stdin /dev/stdout /dev/stderr
    /dev/tty /dev/ptmx"""
)
_SECRET_FOLDERS = names(
    """.ssh .aws .gnupg .kube .azure .docker .password-store keyrings Keychains .mozilla
    google-chrome"""
)
_SECRET_FILES = names(
    """.netrc .npmrc .pypirc .git-credentials .bash_history .zsh_history .pgpass .my.cnf
    id_rsa id_ed25519 id_ecdsa id_dsa credentials .vault-token"""
)
_SECRET_PATHS = re.compile(
    r"""(?x) /etc/(?:shadow|gshadow|sudoers|master\.passwd|ssh/ssh_host)[^/]* (?:/.*)? $
    | /etc/sudoers\.d | /root(?:/|$) | /proc/[^/]+/(?:environ|mem|maps|cmdline|fd)\b
    | /run/secrets | (?:/var)?/run/docker\.sock | /private/etc/(?:master\.passwd|sudoers)
    | .*/\.config/(?:gh|gcloud)(?:/|$)
    | /dev/(?!fd/|pts/|shm/|tcp/|udp/) """
)
_LOCAL_SECRETS = re.compile(r"\.env(?:\..+)?$|.*\.pem$|id_(?:rsa|ed25519|ecdsa|dsa)$|\.npmrc$")
_SAMPLES = re.compile(r"\.env\.(?:example|sample|template|dist|test)$")
_SWEEPING = re.compile(r"(?:[*?.]|\[\^?!?\]?(?:\[:\w+:\]|[^\]])*\])+$")
SHOWN = names(
    """/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix/store /run/current-system
    /var/lib/dpkg /var/cache/fontconfig /proc"""
)
"""Trees that the confinement shows to every command; reading them asks for nothing."""
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/([^/]+)/")


@dataclass(frozen=True, slots=True)
class Ground:
    """What paths are measured by."""

    workspace: str
    home: str | None
    writable: tuple[str, ...] = ()
    """Trees besides the workspace where writing is nobody's concern."""
    walled: bool = True
    """Whether commands are confined: then some of what they can reach is their session's alone."""

    @classmethod
    def of(
        cls, workspace: Path, home: Path | None, writable: tuple[Path, ...], *, walled: bool
    ) -> Ground:
        return cls(
            _clean(str(workspace)),
            None if home is None else _clean(str(home)),
            tuple(_clean(str(one)) for one in writable),
            walled,
        )

    def resolve(self, argument: Argument, base: str | None) -> str | None:
        """The path that a word names for a command that runs in `base`, if that can be told."""
        text = argument.text
        if not argument.known or not text:
            return None
        if text.startswith("~"):
            if self.home is None or not (text == "~" or text.startswith("~/")):
                return None
            return _clean(self.home + text[1:])
        if text.startswith("/"):
            return _clean(text)
        return None if base is None else _clean(join(base, text))

    def inside(self, path: str) -> bool:
        return any(_below(path, tree) for tree in (self.workspace, *self.writable))

    def holds_workspace(self, path: str) -> bool:
        """Whether the workspace is this, or below it."""
        return _below(self.workspace, path)

    def holds_home(self, path: str) -> bool:
        return path == "/" or (self.home is not None and _below(self.home, path))

    def is_swept_by(self, path: str) -> bool:
        """Whether a pattern matches whatever the workspace holds, at some depth."""
        if not _below(path, self.workspace) or path == self.workspace:
            return False
        parts = path[len(self.workspace.rstrip("/")) + 1 :].split("/")
        return all(_SWEEPING.match(part) for part in parts)

    def is_secret(self, path: str) -> bool:
        """Whether people keep passwords, keys and the like there."""
        if self.inside(path):
            return False
        if path in _HARMLESS_DEVICES:
            return False
        parts = PurePosixPath(path).parts
        return bool(
            _SECRET_PATHS.match(path)
            or _SECRET_FOLDERS.intersection(parts)
            or parts[-1] in _SECRET_FILES
            or _is_local_secret(parts[-1])
        )

    def may_hold_secrets(self, path: str) -> bool:
        """Whether a file of the workspace looks like one with secrets."""
        return self.inside(path) and _is_local_secret(PurePosixPath(path).name)

    def is_shown(self, path: str) -> bool:
        """Whether the walls show it anyway."""
        if is_harmless_device(path):
            return True
        return self.walled and any(_below(path, tree) for tree in SHOWN)


def is_harmless_device(path: str) -> bool:
    return path in _HARMLESS_DEVICES or path.startswith(("/dev/fd/", "/dev/pts/"))


def is_device(path: str) -> bool:
    return path.startswith("/dev/") and not path.startswith("/dev/shm/")  # noqa: S108  # a name


def host_of(path: str) -> str:
    """The host behind a path that bash takes for a connection."""
    found = _SOCKET.match(path)
    return found.group(1) if found is not None else ""


def is_git_internal(path: str) -> bool:
    """Whether a path leads into git's own folder, perhaps by a pattern."""
    return any(
        part == ".git" or (part.startswith(".") and fnmatchcase(".git", part))
        for part in PurePosixPath(path).parts
    )


def matches_parent(text: str) -> bool:
    """Whether a pattern such as `.*` also stands for the folder above."""
    return any(
        part not in (".", "..") and part.startswith(".") and fnmatchcase("..", part)
        for part in text.split("/")
    )


def _is_local_secret(name: str) -> bool:
    return bool(_LOCAL_SECRETS.match(name)) and not _SAMPLES.match(name)


def _clean(path: str) -> str:
    # Two slashes in front mean the same as one.
    return "/" + normpath(path).lstrip("/")


def _below(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree.rstrip("/") + "/")
