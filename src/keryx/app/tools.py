"""Which tools a host has, and what the children that they start are told of the world."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from keryx.config import Config, user_home
from keryx.errors import UserMustActError
from keryx.ports.tool import Tool
from keryx.sandbox.policy import USER_SECRETS

# What programs need to find each other and to speak the person's language; nothing else.
PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "USER", "LOGNAME")
DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


class Tools(msgspec.Struct, frozen=True):
    """The tools of a host, by name, and in sets."""

    by_name: Mapping[str, Tool] = msgspec.field(default_factory=dict[str, Tool])
    sets: Mapping[str, list[Tool]] = msgspec.field(default_factory=dict[str, list[Tool]])
    brought: bool = False
    """Whether a program brought them along."""

    @classmethod
    def of_program(cls, tools: Sequence[Tool]) -> Tools:
        return cls({tool.name: tool for tool in tools}, brought=bool(tools))

    @classmethod
    def built_in(cls, config: Config) -> Tools:
        """Those that every host has. Asks the disk."""
        # Loaded when a host wants them: a program that brings its own tools starts without.
        toolsets = importlib.import_module("keryx.tools.toolsets")
        sets = toolsets.built_in(
            user_home(config.environment), confined=config.confinement != "off"
        )
        scripts = importlib.import_module("keryx.sandbox.scripts")
        sets["code"] = [scripts.ExecuteCode()]
        return cls({tool.name: tool for each in sets.values() for tool in each}, sets)

    def chosen(self, names: Iterable[str] | None) -> tuple[str, ...]:
        """What these names stand for; None: all there are."""
        if names is None:
            return tuple(self.by_name)
        found: dict[str, None] = {}
        for name in names:
            if name in self.by_name:
                found[name] = None
            elif name in self.sets:
                found.update(dict.fromkeys(tool.name for tool in self.sets[name]))
            else:
                known = ", ".join([*sorted(self.by_name), *sorted(self.sets)])
                raise UserMustActError(f"there is no tool or toolset {name!r}; there are: {known}")
        return tuple(found)

    def granted(self, names: Iterable[str]) -> list[Tool]:
        return [self.by_name[name] for name in names if name in self.by_name]


def secret_places(config: Config) -> list[Path]:
    """Folders and files of the user that hold secrets."""
    home = user_home(config.environment)
    return [] if home is None else [home / name for name in USER_SECRETS]


def child_environment(config: Config, session_id: str, workspace: Path) -> dict[str, str]:
    """What the children of a session get: from an allow-list, and where they belong."""
    passed = {name: config.environment[name] for name in PASSED_ON if name in config.environment}
    return {
        "PATH": DEFAULT_PATH,
        **passed,
        "KERYX_SESSION_ID": session_id,
        "KERYX_WORKSPACE": str(workspace),
    }
