"""The built-in tools, by the name of their set."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from keryx.ports.tool import Tool
from keryx.tools import browser
from keryx.tools.agents.delegate import delegate
from keryx.tools.agents.todo import todo
from keryx.tools.asking.mixture import mixture_of_agents
from keryx.tools.asking.session_search import session_search
from keryx.tools.asking.vision import vision_tool
from keryx.tools.clarify import clarify
from keryx.tools.files import file_tools
from keryx.tools.mcp.search import tool_search
from keryx.tools.mcp.servers import missing as missing_for_mcp
from keryx.tools.media.settings import NO_MEDIA, MediaSettings, media_tools
from keryx.tools.media.settings import missing as missing_for_media
from keryx.tools.shell.terminal import find_shell, shell_tools
from keryx.tools.skills.skill_tool import skill_tool
from keryx.tools.web.settings import NO_SETTINGS, WebSettings, web_tools
from keryx.tools.web.settings import missing as missing_for_web

OPTIONAL: Final = frozenset(
    (
        *("web_search", "web_extract", "browser", "browser_navigate", "browser_snapshot"),
        *("browser_click", "browser_type", "browser_press", "browser_scroll", "browser_back"),
        *("browser_screenshot", "browser_console", "browser_close"),
        *("image_generate", "image_gen", "text_to_speech", "tts", "transcribe"),
        *("memories", "memory", "conclude", "honcho_conclude", "recall"),
    )
)
"""The names of sets and tools, and their aliases, that are left out where they cannot work."""


def built_in(
    home: Path | None = None,
    *,
    confined: bool = True,
    web: WebSettings = NO_SETTINGS,
    media: MediaSettings = NO_MEDIA,
    skills: Sequence[Path] = (),
    memory: bool = False,
) -> dict[str, list[Tool]]:
    """Return all sets; reads the disk. A tool that cannot work here is left out.

    `home` is the user's folder; `confined`: commands run confined; `skills`: folders of skills;
    `memory`: whether the host remembers beyond sessions.
    """
    sets: dict[str, list[Tool]] = {
        "files": file_tools(),
        "shell": shell_tools(find_shell(), home, confined=confined),
        "people": [clarify],
        "agents": [delegate, todo],
        "models": [
            vision_tool(web.allow_private),
            mixture_of_agents,
            session_search,
            *media_tools(media),
        ],
        "web": web_tools(web),
        "mcp": [tool_search],
        "skills": [skill_tool(skills)],
    }
    if memory:
        # Imported only here: few hosts have a memory.
        # A set may not have the name of a tool.
        tools = importlib.import_module("keryx.tools.memory.memory_tools")
        sets["memories"] = tools.memory_tools()
    if browser.missing(home, confined=confined) is None:
        sets["browser"] = browser.browser_tools(home, confined=confined)
    return sets


def missing(
    home: Path | None = None,
    *,
    confined: bool = True,
    web: WebSettings = NO_SETTINGS,
    media: MediaSettings = NO_MEDIA,
) -> tuple[str, ...]:
    """Return what must be installed or set for the tools that are left out; reads the disk."""
    needs = [*missing_for_web(web), *missing_for_media(media)]
    if (browser_needs := browser.missing(home, confined=confined)) is not None:
        needs.append(f"the browser tools need Chromium and playwright: {browser_needs}")
    if (mcp_needs := missing_for_mcp()) is not None:
        needs.append(f"tools of MCP servers need a package: {mcp_needs}")
    return tuple(needs)
