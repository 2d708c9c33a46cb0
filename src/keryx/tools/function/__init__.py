"""Turns a typed function into a tool: `@tool`."""

from keryx.tools.function.decorator import PREVIEW_LIMIT, FunctionTool, tool

__all__ = ["PREVIEW_LIMIT", "FunctionTool", "tool"]
