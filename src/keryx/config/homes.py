"""Finds the user's own folder and the home of Keryx; an error says what to set if there is none."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from keryx.config.schema import ConfigurationError, FileStamp

_CHOOSE_HOME = "choose a folder with KERYX_HOME or --home"


def is_text(value: str) -> bool:
    """Return whether the value is UTF-8; Python reads other bytes as lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def user_home(env: Mapping[str, str]) -> Path | None:
    """Return the user's own folder: HOME, or else the entry in the system's list of users."""
    home = env.get("HOME", "")
    if not home.startswith("/"):
        with suppress(KeyError):  # a user that the system does not list, as in many containers
            home = pwd.getpwuid(os.getuid()).pw_dir
    return Path(home) if home.startswith("/") and is_text(home) else None


def find_home(path: Path | str | None, env: Mapping[str, str]) -> Path:
    """Return where the state of Keryx lives; `ConfigurationError` if no folder can be found."""
    text = str(path or env.get("KERYX_HOME") or "")
    if not text:
        return _user_data(env)
    if not is_text(text):
        raise ConfigurationError(f"the home {text!a} is not UTF-8; {_CHOOSE_HOME}")
    if text == "~" or text.startswith("~/"):
        return _required_user_home(env) / text[2:]
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ConfigurationError(f"the home {text} names no user; {_CHOOSE_HOME}") from error


def _user_data(env: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return _required_user_home(env) / "Library" / "Application Support" / "keryx"
    # A relative path would mean a different home for each working directory.
    if env.get("XDG_DATA_HOME", "").startswith("/"):
        return Path(env["XDG_DATA_HOME"]) / "keryx"
    return _required_user_home(env) / ".local" / "share" / "keryx"


def _required_user_home(env: Mapping[str, str]) -> Path:
    home = user_home(env)
    if home is None:
        raise ConfigurationError(f"HOME is not set, and this user has no folder; {_CHOOSE_HOME}")
    return home


def file_stamp(path: Path | str) -> FileStamp:
    """Return the stamp of a file, to notice a change."""
    try:
        status = os.stat(path)  # noqa: PTH116 (every turn looks at these files; a text is faster)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
