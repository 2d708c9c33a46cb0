"""What a script takes along: the packages that it may import, its code, and what it was granted.

All of it is text by path, so that it can be laid out in a folder or sent through a pipe. It refuses
to know which.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.ports.tool import Tool

GUESTS: Final = ("keryx_tools", "hermes_tools")
"""What scripts import; it travels with them, so that any place has it."""
SCRIPT: Final = "script.py"
GRANTED: Final = "granted.json"
_ARRIVAL: Final = "keryx_tools/_arrival.py"


class Bundle(msgspec.Struct, frozen=True):
    """One script, ready to go."""

    files: Mapping[str, str]
    arguments: Sequence[str]

    @classmethod
    def of(cls, code: str, arguments: Sequence[str], tools: Mapping[str, Tool]) -> Bundle:
        """Reads files when it is first called: for threads."""
        granted = msgspec.json.encode([_told(tool) for tool in tools.values()]).decode()
        return cls({**_packages(), SCRIPT: code, GRANTED: granted}, arguments)

    @property
    def arrival(self) -> str:
        """A program for `python -c`: unpacks on the other side what was `packed` here."""
        return self.files[_ARRIVAL]

    def packed(self, environment: Mapping[str, str]) -> bytes:
        """All of it as one piece, with the length before it."""
        packed = {"files": self.files, "arguments": self.arguments, "environment": environment}
        data = json.dumps(packed, default=dict).encode()
        return len(data).to_bytes(4, "big") + data


@cache
def _packages() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in GUESTS:
        spec = find_spec(name)
        assert spec is not None, f"{name} is part of Keryx"
        assert spec.origin is not None
        above = Path(spec.origin).parent.parent
        for path in sorted(Path(spec.origin).parent.rglob("*.py")):
            found[path.relative_to(above).as_posix()] = path.read_text(encoding="utf-8")
    return found


def _told(tool: Tool) -> dict[str, Any]:
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "positional": list(properties),
    }
