"""The tools that every host has, by the name of their set."""

from __future__ import annotations

from pathlib import Path

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
