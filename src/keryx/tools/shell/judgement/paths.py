"""Classifies paths by their names: inside of the workspace or not, secret or not.

It reads no file, so it does not notice a link that leads out of the workspace. The confinement
restricts commands; this only tells a person in advance.
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
VISIBLE_TREES = names(
    """/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix/store /run/current-system
    /var/lib/dpkg /var/cache/fontconfig /proc"""
)
"""Trees that every confined command can read; reading them needs no consent."""
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/([^/]+)/")


@dataclass(frozen=True, slots=True)
class PathContext:
    """The folders that paths are compared with."""

    workspace: str
    home: str | None
    writable: tuple[str, ...] = ()
    """Trees besides the workspace where writing is harmless."""
    confined: bool = True
    """Whether commands are confined: then some of what they can reach belongs to their session."""

    @classmethod
    def of(
        cls, workspace: Path, home: Path | None, writable: tuple[Path, ...], *, confined: bool
    ) -> PathContext:
        return cls(
            _normalize(str(workspace)),
            None if home is None else _normalize(str(home)),
            tuple(_normalize(str(folder)) for folder in writable),
            confined,
        )

    def resolve(self, argument: Argument, base: str | None) -> str | None:
        """Return the path of an argument for a command that runs in `base`, if it is known."""
        text = argument.text
        if not argument.is_literal or not text:
            return None
        if text.startswith("~"):
            if self.home is None or not (text == "~" or text.startswith("~/")):
                return None
            return _normalize(self.home + text[1:])
        if text.startswith("/"):
            return _normalize(text)
        return None if base is None else _normalize(join(base, text))

    def is_inside(self, path: str) -> bool:
        return any(_is_below(path, tree) for tree in (self.workspace, *self.writable))

    def contains_workspace(self, path: str) -> bool:
        """Return whether the path is the workspace or a parent of it."""
        return _is_below(self.workspace, path)

    def contains_home(self, path: str) -> bool:
        return path == "/" or (self.home is not None and _is_below(self.home, path))

    def matches_everything(self, path: str) -> bool:
        """Return whether a pattern matches everything in the workspace, at some depth."""
        if not _is_below(path, self.workspace) or path == self.workspace:
            return False
        parts = path[len(self.workspace.rstrip("/")) + 1 :].split("/")
        return all(_SWEEPING.match(part) for part in parts)

    def is_secret(self, path: str) -> bool:
        """Return whether people store passwords or keys there."""
        if self.is_inside(path):
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
        """Return whether a file of the workspace looks like one with secrets."""
        return self.is_inside(path) and _is_local_secret(PurePosixPath(path).name)

    def is_visible(self, path: str) -> bool:
        """Return whether every confined command can read the path."""
        if is_harmless_device(path):
            return True
        return self.confined and any(_is_below(path, tree) for tree in VISIBLE_TREES)


def is_harmless_device(path: str) -> bool:
    return path in _HARMLESS_DEVICES or path.startswith(("/dev/fd/", "/dev/pts/"))


def is_device(path: str) -> bool:
    return path.startswith("/dev/") and not path.startswith("/dev/shm/")  # noqa: S108  # a name


def host_of(path: str) -> str:
    """Return the host of a path that bash treats as a connection."""
    match = _SOCKET.match(path)
    return match.group(1) if match is not None else ""


def is_git_internal(path: str) -> bool:
    """Return whether a path leads into the .git folder, perhaps by a pattern."""
    return any(
        part == ".git" or (part.startswith(".") and fnmatchcase(".git", part))
        for part in PurePosixPath(path).parts
    )


def matches_parent(text: str) -> bool:
    """Return whether a pattern such as `.*` also matches the parent folder."""
    return any(
        part not in (".", "..") and part.startswith(".") and fnmatchcase("..", part)
        for part in text.split("/")
    )


def _is_local_secret(name: str) -> bool:
    return bool(_LOCAL_SECRETS.match(name)) and not _SAMPLES.match(name)


def _normalize(path: str) -> str:
    # Two leading slashes mean the same as one.
    return "/" + normpath(path).lstrip("/")


def _is_below(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree.rstrip("/") + "/")
