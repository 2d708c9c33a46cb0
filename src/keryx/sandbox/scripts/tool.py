"""The tool `execute_code`: it runs a script and answers the script's tool calls."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.errors import InvalidArgumentsError
from keryx.ports.effects import EXCLUSIVE, Effects
from keryx.ports.tool import Isolation, Replay, Risk
from keryx.ports.tool_context import ToolContext

if TYPE_CHECKING:
    from keryx.sandbox.scripts.run import Run

MOST_CALLS: Final = 1_000_000
"""Calls that one script may make; a script that makes more has an endless loop."""
LONGEST: Final = 24 * 3600.0
NAME: Final = "execute_code"
DESCRIPTION: Final = """\
Run a Python script that calls tools itself: loops, filters and fans out, in one step.

Inside, `from keryx_tools import terminal, read_file, parallel` gives granted tools as functions;
results are dicts (`terminal("ls")["output"]`), failures are exceptions. Prefer one script over many
single calls: `parallel(read_file, paths)` runs them at once and keeps their order; threads, asyncio
(`keryx_tools.aio`) and processes may call at the same time. What the script prints comes back, and
`keryx_tools.finish(value)` gives a value."""


class _Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    code: str
    arguments: list[str] = []
    timeout: Annotated[float, msgspec.Meta(gt=0, le=LONGEST)] = 300.0


_decode: Final = json_decoder(_Arguments).decode


class ExecuteCode:
    """Runs scripts. A script may call every tool of its session except this one."""

    def __init__(self, *, most_calls: int = MOST_CALLS) -> None:
        """`most_calls`: how many calls one script may make."""
        self._most_calls = most_calls
        self.name = NAME
        self.description = DESCRIPTION
        self.isolation: Isolation = "loop"
        self.replay: Replay = "never"
        self.timeout: float | None = None
        self.container = True

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "The script."},
                "arguments": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "The script's sys.argv[1:].",
                    "default": [],
                },
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": LONGEST,
                    "description": "Seconds after which it is ended, with all that it started.",
                    "default": 300,
                },
            },
            "required": ["code"],
            "additionalProperties": False,
        }

    def parse(self, arguments: bytes | str | Mapping[str, Any]) -> _Arguments:
        data = arguments if isinstance(arguments, bytes | str) else msgspec.json.encode(arguments)
        try:
            return _decode(data)
        except msgspec.DecodeError as error:
            raise InvalidArgumentsError(
                f"arguments of `{NAME}`: {error}; it takes code, arguments and timeout"
            ) from error

    def effects(self, args: _Arguments) -> Effects:
        """Return exclusive effects: what a script does is unknown before, so later calls wait."""
        del args
        return EXCLUSIVE

    def risk(self, args: _Arguments, workspace: Path) -> Risk:
        """Return a low risk: the script is confined, and each of its calls is judged itself."""
        del args, workspace
        return Risk("low", "runs a script; its calls are judged one by one", ())

    def preview(self, args: _Arguments) -> str:
        lines = [line.strip() for line in args.code.splitlines() if line.strip()]
        return f"{lines[0][:80]} … ({len(lines)} lines)" if lines else "an empty script"

    async def invoke(self, args: _Arguments, context: ToolContext) -> dict[str, Any]:
        context.cancel_after(args.timeout)
        tools = {name: tool for name, tool in context.tools.items() if name != NAME}
        # This module is loaded with the first script; most sessions never run one.
        module = await context.to_thread(importlib.import_module, "keryx.sandbox.scripts.run")
        run: Run = module.Run(context, tools, most_calls=self._most_calls)
        exit_ = await run.execute(args.code, args.arguments)
        result: dict[str, Any] = {"output": context.printed, "exit_code": exit_.code}
        if exit_.signal is not None:
            result["signal"] = exit_.signal
        if exit_.cause:
            result["ended_because"] = exit_.cause
        if run.calls.result is not None:
            result["result"] = run.calls.result
        if run.calls.tallies:
            result["calls"] = {
                name: {**msgspec.structs.asdict(tally), "seconds": round(tally.seconds, 3)}
                for name, tally in sorted(run.calls.tallies.items())
            }
        return result
