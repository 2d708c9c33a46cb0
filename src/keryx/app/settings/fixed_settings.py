"""Settings that `config.toml` cannot change, because a flag or a variable is in force."""

from __future__ import annotations

import msgspec

from keryx.config import Config

VARIABLE = "KERYX_MODEL"
FLAG = "--model"


class FixedSetting(msgspec.Struct, frozen=True):
    """The setting at `path` has the value of a flag or of a variable, which `by` names."""

    path: tuple[str, ...]
    by: str
    value: str


def fixed_settings(config: Config, requested: str | None) -> tuple[FixedSetting, ...]:
    """Return them all. `requested` is the model that the command line names."""
    value = requested or config.environment.get(VARIABLE)
    if not value:
        return ()
    by = FLAG if requested else VARIABLE
    paths = [("model",), *(("profiles", name, "model") for name in config.profiles)]
    return tuple(FixedSetting(path, by, value) for path in paths)
