"""The tools that every host has, by the name of their set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from keryx.errors import UserMustActError
from keryx.ports.tool import Tool
from keryx.tools.clarify import clarify
from keryx.tools.files import file_tools
from keryx.tools.shell.terminal import find_shell, shell_tools


def built_in(home: Path | None = None, *, confined: bool = True) -> dict[str, list[Tool]]:
    """All sets. `home` is the user's; `confined`: whether commands are. Asks the disk."""
    return {
        "files": file_tools(),
        "shell": shell_tools(find_shell(), home, confined=confined),
        "people": [clarify],
    }


def chosen(
    names: Iterable[str], tools: Mapping[str, Tool], sets: Mapping[str, list[Tool]]
) -> tuple[str, ...]:
    """The tools that these names of tools and sets stand for; a closed set."""
    found: dict[str, None] = {}
    for name in names:
        if name in tools:
            found[name] = None
        elif name in sets:
            found.update(dict.fromkeys(tool.name for tool in sets[name]))
        else:
            known = ", ".join([*sorted(tools), *sorted(sets)])
            raise UserMustActError(f"there is no tool or toolset {name!r}; there are: {known}")
    return tuple(found)
