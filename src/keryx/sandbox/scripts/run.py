"""One run of a script, from its start until all its processes have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keryx.ports.place import Exit
from keryx.ports.tool import Tool
from keryx.ports.tool_context import ToolContext
from keryx.sandbox.scripts.bundle import Bundle
from keryx.sandbox.scripts.script_calls import ScriptCalls
from keryx.sandbox.scripts.transports import start_script


class Run:
    """A script and the tools that it was granted."""

    def __init__(self, context: ToolContext, tools: Mapping[str, Tool], *, most_calls: int) -> None:
        self._context = context
        self._tools = tools
        self.calls = ScriptCalls(context, frozenset(tools), most_calls=most_calls)

    async def execute(self, code: str, arguments: Sequence[str]) -> Exit:
        """Run it to its end; none of its processes is left when this returns or raises."""
        bundle = await self._context.to_thread(Bundle.of, code, arguments, self._tools)
        async with await start_script(self._context, self.calls, bundle) as process:
            return await process.wait()
