"""One run of a script: a private folder with its code and its socket, a server, a process."""

from __future__ import annotations

import secrets
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.place import Exit, PrivateFolder
from keryx.ports.tool import Tool, ToolContext
from keryx.rpc import Listener
from keryx.sandbox.scripts.guests import Guests

GUESTS: Final = ("keryx_tools", "hermes_tools")
"""What scripts import; copied beside them, so that any place has it."""
SCRIPT: Final = "script.py"
SOCKET: Final = "s"
GRANTED: Final = "granted.json"
BACKLOG: Final = 512


class Run:
    """A script and the tools that it was granted."""

    def __init__(self, context: ToolContext, tools: Mapping[str, Tool]) -> None:
        self._context = context
        self._tools = tools
        self._secret = secrets.token_hex(32)
        self._name = f"run-{secrets.token_hex(8)}"
        self.guests = Guests(context, self._secret, frozenset(tools))

    async def execute(self, code: str, arguments: Sequence[str]) -> Exit:
        """Run it to its end; nothing of it is left when this returns or raises."""
        context = self._context
        private = await context.place.private()
        here = private.here / self._name
        listening = await context.to_thread(self._prepare, here, code)
        listener = Listener(context.scope, self.guests.handler)
        listener.listen(listening)
        try:
            argv = [sys.executable, "-u", f"{private.inside}/{self._name}/{SCRIPT}", *arguments]
            env = {**context.environment, **self._environment(private)}
            async with await context.place.spawn(argv, env=env) as process:
                return await process.wait()
        finally:
            await listener.close()
            await context.to_thread(shutil.rmtree, here)

    def _prepare(self, here: Path, code: str) -> socket.socket:
        """In a thread: all that the script needs, in a folder of its own."""
        here.mkdir(mode=0o700)
        for name in GUESTS:
            _copy(name, here)
        (here / SCRIPT).write_text(code)
        (here / GRANTED).write_bytes(msgspec.json.encode([_told(t) for t in self._tools.values()]))
        listening = socket.socket(socket.AF_UNIX)
        try:
            listening.bind(str(here / SOCKET))
        except OSError as error:
            listening.close()
            raise ToolFailedError(f"the script's socket cannot be made: {error}") from error
        listening.listen(BACKLOG)
        return listening

    def _environment(self, private: PrivateFolder) -> dict[str, str]:
        inside = f"{private.inside}/{self._name}"
        return {
            "PYTHONPATH": inside,
            "PYTHONDONTWRITEBYTECODE": "1",
            "KERYX_TOOLS_ADDRESS": f"unix:{inside}/{SOCKET}",
            "KERYX_TOOLS_SECRET": self._secret,
            "KERYX_TOOLS_GRANTED": f"{inside}/{GRANTED}",
        }


def _told(tool: Tool) -> dict[str, Any]:
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "positional": list(properties),
    }


def _copy(name: str, here: Path) -> None:
    spec = find_spec(name)
    assert spec is not None, f"{name} is part of Keryx"
    assert spec.origin is not None
    origin = Path(spec.origin)
    if origin.name == "__init__.py":
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(origin.parent, here / name, ignore=ignored)
    else:
        shutil.copy(origin, here / origin.name)
