"""The toolsets that a person named in the configuration, and the tools by front end.

The configuration is read without loading tools, so the names of tools are checked here.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from keryx.app.tools import Tools
from keryx.config import Config, ConfigurationError


def with_named_sets(tools: Tools, config: Config) -> Tools:
    """Return these tools with the sets that the configuration names.

    `ConfigurationError` says which name is no tool and no set, or is used twice.
    """
    tools = tools.with_sets({})
    if not _has_named_sets(config):
        return tools
    where = config.settings_home / "config.toml"
    for name in config.toolsets:
        if tools.knows(name):
            raise ConfigurationError(
                f"{where}: the toolset {name!r} in [toolsets] has the name of a tool or a set that "
                "exists; choose another name"
            )
    names = {*tools.by_name, *tools.sets, *config.toolsets}
    for place, members in _all_sets(config):
        for name in members:
            if name not in config.toolsets and not tools.knows(name):
                raise ConfigurationError(f"{where}: {place}: {_unknown(name, names)}")
    return tools.with_sets(config.toolsets)


def _has_named_sets(config: Config) -> bool:
    return bool(config.toolsets) or any(profile.toolsets for profile in config.profiles.values())


def _all_sets(config: Config) -> Iterable[tuple[str, tuple[str, ...]]]:
    for name, members in config.toolsets.items():
        yield f"[toolsets] {name}", members
    for profile_name, profile in config.profiles.items():
        for front_end, members in profile.toolsets.items():
            yield f"[profiles.{profile_name}.toolsets] {front_end}", members


def _unknown(name: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    advice = f"; did you mean {close[0]!r}?" if close else ""
    return f"there is no tool or toolset {name!r}{advice}"
