"""The built-in tools, by the name of their set."""

from __future__ import annotations

from pathlib import Path

from keryx.ports.tool import Tool
from keryx.tools.clarify import clarify
from keryx.tools.files import file_tools
from keryx.tools.mcp.search import tool_search
from keryx.tools.shell.terminal import find_shell, shell_tools


def built_in(home: Path | None = None, *, confined: bool = True) -> dict[str, list[Tool]]:
    """Return all sets; reads the disk.

    `home` is the user's folder; `confined`: commands run confined.
    """
    return {
        "files": file_tools(),
        "shell": shell_tools(find_shell(), home, confined=confined),
        "people": [clarify],
        "mcp": [tool_search],
    }
