"""The built-in tools, by the name of their set."""

from __future__ import annotations

from pathlib import Path

from keryx.ports.tool import Tool
from keryx.tools import browser
from keryx.tools.agents.delegate import delegate
from keryx.tools.agents.todo import todo
from keryx.tools.clarify import clarify
from keryx.tools.files import file_tools
from keryx.tools.shell.terminal import find_shell, shell_tools
from keryx.tools.skills.skill_tool import skill_tool
from keryx.tools.web.settings import NO_SETTINGS, WebSettings, web_tools


def built_in(
    home: Path | None = None,
    *,
    confined: bool = True,
    web: WebSettings = NO_SETTINGS,
    skills: Path | None = None,
) -> dict[str, list[Tool]]:
    """Return all sets; reads the disk. A tool that cannot work here is left out.

    `home` is the user's folder; `confined`: commands run confined; `skills`: a folder of skills.
    """
    sets: dict[str, list[Tool]] = {
        "files": file_tools(),
        "shell": shell_tools(find_shell(), home, confined=confined),
        "people": [clarify],
        "agents": [delegate, todo],
        "web": web_tools(web),
        "skills": [skill_tool(skills)],
    }
    if browser.missing(home, confined=confined) is None:
        sets["browser"] = browser.browser_tools(home, confined=confined)
    return sets
