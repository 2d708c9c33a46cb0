"""Tools as models see them. Each is described once, so that a model can cache its bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from keryx.ports.model import ToolSpec
from keryx.ports.tool import Tool

MOST: Final = 1_000
"""How many tools are cached; a host has some dozens."""


class ToolSpecs:
    """A cache of the descriptions of a host's tools. Belongs to one loop."""

    def __init__(self) -> None:
        # The tool is held too, so that its id cannot be used again while it is a key here.
        self._specs: dict[int, tuple[Tool, ToolSpec]] = {}

    def of(self, tools: Iterable[Tool]) -> tuple[ToolSpec, ...]:
        return tuple(map(self._spec, tools))

    def _spec(self, tool: Tool) -> ToolSpec:
        entry = self._specs.get(id(tool))
        if entry is None:
            if len(self._specs) >= MOST:
                self._specs.clear()
            spec = ToolSpec(tool.name, tool.description, tool.parameters)
            entry = self._specs[id(tool)] = (tool, spec)
        return entry[1]
