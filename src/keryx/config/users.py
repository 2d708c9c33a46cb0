"""Named users: each has a home of its own below the home of the server, with a file that says whose
it is. The settings, tools, skills and models are those of the server's home.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import msgspec

from keryx.config.homes import file_stamp
from keryx.config.schema import ConfigurationError, Confined, Cost, LimitsConfig
from keryx.decoding import json_decoder

USERS: Final = "users"
"""The folder of the users' homes."""
USER_FILE: Final = "user.json"
NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,31}$"
CONFINED: Final[Confined] = "required"
"""Commands of a named user never run without confinement: they could read what others have."""


class UserRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored about a named user. Of the password, only a slow hash."""

    name: Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]
    folder: str
    """The sessions of this user work below this folder, and no approval leads out of it."""
    salt: str = ""
    hash: str = ""
    cost: int = 0
    signed_out_at: float = 0.0
    """Earlier logins no longer count (seconds of the wall clock)."""
    disabled: bool = False
    cost_per_day: Cost | None = None
    tokens_per_day: Annotated[int, msgspec.Meta(ge=0)] | None = None


def user_home(settings_home: Path, name: str) -> Path:
    """Return the home of this user."""
    return settings_home / USERS / name


def find_settings(home: Path) -> Path:
    """Return the home whose settings count: this one, or for a named user that of the server."""
    return home if file_stamp(home / USER_FILE) is None else home.parent.parent


def read_user(home: Path) -> UserRecord | None:
    """Return whose home this is; None: the home of a server, or of a single person."""
    path = home / USER_FILE
    if file_stamp(path) is None:
        return None  # a home that cannot be used is reported with its other files
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error}; correct it") from error
    try:
        return json_decoder(UserRecord).decode(data)
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{path} is damaged: {error}; correct it") from error


def limits_of(user: UserRecord, limits: LimitsConfig) -> LimitsConfig:
    """Return the limits with this user's own; of two, the stricter one counts."""
    return msgspec.structs.replace(
        limits,
        cost_per_day=_stricter(user.cost_per_day, limits.cost_per_day),
        tokens_per_day=_stricter(user.tokens_per_day, limits.tokens_per_day),
    )


def _stricter(own: float | None, general: float | None) -> float | None:
    present = [limit for limit in (own, general) if limit is not None]
    return min(present, default=None)
