"""Which tools of MCP servers are described to a model. Of many, only those that a search has found.

Many servers have hundreds of tools, and their schemas would fill the context of a model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from keryx.ports.tool import Tool
from keryx.tools.mcp.tool import McpTool

SEARCH: Final = "tool_search"
"""The name of the tool that finds the others."""
MOST_DESCRIBED: Final = 20
"""Tools of MCP servers that are described without a search."""
MOST_BYTES: Final = 16 * 1024


def is_large(tools: Iterable[McpTool]) -> bool:
    """Return whether these tools are too many to describe all of them."""
    sizes = [tool.size for tool in tools]
    return len(sizes) > MOST_DESCRIBED or sum(sizes) > MOST_BYTES


def described(tools: Sequence[Tool], loaded: Collection[str]) -> Sequence[Tool]:
    """Return the tools that the model is told of: of many MCP tools, only the loaded ones."""
    of_servers = [tool for tool in tools if isinstance(tool, McpTool)]
    if is_large(of_servers):
        return [tool for tool in tools if not isinstance(tool, McpTool) or tool.name in loaded]
    return [tool for tool in tools if tool.name != SEARCH]
