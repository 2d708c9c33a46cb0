"""What is sent with a script: the packages that it may import, its code, and its granted tools.

All of it is text by path, so that it can be written to a folder or sent through a pipe.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.ports.tool import Tool, aliases_of

SCRIPT_PACKAGES: Final = ("keryx_tools", "hermes_tools")
"""Packages that scripts import; they are sent along, so that every place has them."""
SCRIPT: Final = "script.py"
GRANTED: Final = "granted.json"
_LAUNCHER: Final = "keryx_tools/_stdin_launcher.py"


class Bundle(msgspec.Struct, frozen=True):
    """One script with all files that it needs."""

    files: Mapping[str, str]
    arguments: Sequence[str]

    @classmethod
    def of(cls, code: str, arguments: Sequence[str], tools: Mapping[str, Tool]) -> Bundle:
        """Build the bundle. The first call reads files, so call it in a thread."""
        granted = msgspec.json.encode([_description(tool) for tool in tools.values()]).decode()
        return cls({**_packages(), SCRIPT: code, GRANTED: granted}, arguments)

    @property
    def launcher(self) -> str:
        """A program for `python -c`: it unpacks in the place what `packed` returned here."""
        return self.files[_LAUNCHER]

    def packed(self, environment: Mapping[str, str]) -> bytes:
        """Return the bundle as bytes, with their length before them."""
        packed = {"files": self.files, "arguments": self.arguments, "environment": environment}
        data = json.dumps(packed, default=dict).encode()
        return len(data).to_bytes(4, "big") + data


@cache
def _packages() -> Mapping[str, str]:
    files: dict[str, str] = {}
    for name in SCRIPT_PACKAGES:
        spec = find_spec(name)
        assert spec is not None, f"{name} is part of Keryx"
        assert spec.origin is not None
        root = Path(spec.origin).parent.parent
        for path in sorted(Path(spec.origin).parent.rglob("*.py")):
            files[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
    return files


def _description(tool: Tool) -> dict[str, Any]:
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    return {
        "name": tool.name,
        "aliases": aliases_of(tool),
        "description": tool.description,
        "parameters": tool.parameters,
        "positional": list(properties),
    }
