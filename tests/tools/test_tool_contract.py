"""Function tools keep the contract of a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from keryx.ports.tool import Tool
from keryx.ports.tool_context import ToolContext
from keryx.testing.contracts import ToolContract
from keryx.tools.function import tool


class TestAsyncFunction(ToolContract):
    @pytest.fixture
    def subject(self) -> Tool:
        @tool
        async def fetch(url: str, tries: int = 3) -> str:
            """Fetch a page."""
            return url * tries

        return fetch

    def good_arguments(self) -> Mapping[str, Any]:
        return {"url": "a page\nwith a second line"}


class TestBlockingFunction(ToolContract):
    @pytest.fixture
    def subject(self) -> Tool:
        @tool(replay="safe", timeout=3)
        def count(items: list[int]) -> int:
            """Count."""
            return len(items)

        return count

    def good_arguments(self) -> Mapping[str, Any]:
        return {"items": [1, 2]}


class TestContainer(ToolContract):
    @pytest.fixture
    def subject(self) -> Tool:
        @tool(container=True)
        async def fan_out(context: ToolContext, names: list[str] | None = None) -> None:
            """Call others."""

        return fan_out

    def good_arguments(self) -> Mapping[str, Any]:
        return {}
