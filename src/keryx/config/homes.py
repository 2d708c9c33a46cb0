"""Where a person's own folders are. A machine may not say, and then whoever asks is told."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from keryx.config.schema import ConfigurationError

_CHOOSE = "choose a folder with KERYX_HOME or --home"


def is_text(value: str) -> bool:
    """Whether it could be written down: bytes that are not UTF-8 come in as lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def user_home(env: Mapping[str, str]) -> Path | None:
    """The person's own folder: as HOME says, or else the system's list of users."""
    home = env.get("HOME", "")
    if not home.startswith("/"):
        with suppress(KeyError):  # a user that the system does not list, as in many containers
            home = pwd.getpwuid(os.getuid()).pw_dir
    return Path(home) if home.startswith("/") and is_text(home) else None


def find_home(named: Path | str | None, env: Mapping[str, str]) -> Path:
    """Where the state of Keryx lives; `ConfigurationError` if nothing says so."""
    chosen = str(named or env.get("KERYX_HOME") or "")
    if not chosen:
        return _user_data(env)
    if not is_text(chosen):
        raise ConfigurationError(f"the home {chosen!a} is not UTF-8; {_CHOOSE}")
    if chosen == "~" or chosen.startswith("~/"):
        return _needed_home(env) / chosen[2:]
    try:
        return Path(chosen).expanduser()
    except RuntimeError as error:
        raise ConfigurationError(f"the home {chosen} is of nobody; {_CHOOSE}") from error


def _user_data(env: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return _needed_home(env) / "Library" / "Application Support" / "keryx"
    # A relative path would mean another folder for every folder that a command is started in.
    if env.get("XDG_DATA_HOME", "").startswith("/"):
        return Path(env["XDG_DATA_HOME"]) / "keryx"
    return _needed_home(env) / ".local" / "share" / "keryx"


def _needed_home(env: Mapping[str, str]) -> Path:
    home = user_home(env)
    if home is None:
        raise ConfigurationError(f"HOME is not set, and this user has no folder; {_CHOOSE}")
    return home
