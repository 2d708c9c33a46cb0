"""Tools of the program that sent a message: their calls wait until it sends the results.

A waiting call holds no thread, slot or effect. That it waits is a fact (`call.started`), and its
result is one too (`calls.answered`), so after a crash it goes on waiting or has its result.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from keryx.commands import AnswerCalls
from keryx.engine.redaction import Redactor
from keryx.engine.session_context import SessionContext
from keryx.errors import InvalidArgumentsError, ToolFailedError, UserMustActError
from keryx.messages import CallAnswer, ClientTool, TurnOptions
from keryx.ports.effects import NO_EFFECTS, Effects
from keryx.ports.model import ToolSpec
from keryx.ports.tool import Isolation, Replay, Risk, Tool
from keryx.ports.tool_context import ToolContext

PATIENCE: Final = 24 * 3600.0
"""Seconds after which a call fails whose client sends no result: its session stays in memory."""
LONGEST_PREVIEW: Final = 200
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Wait = Callable[[str], Awaitable[str]]
"""Waits for the result of a call: call id."""


class WaitingTool:
    """A client's tool, as the executor sees it. It is a container, so it holds no slot."""

    isolation: Isolation = "loop"
    replay: Replay = "keyed"
    timeout: float | None = None
    container = True

    def __init__(self, tool: ClientTool, wait: Wait) -> None:
        self.name: Final = tool.name
        self.description: Final = tool.description
        self.parameters: Final[Mapping[str, Any]] = _schema(tool)
        self._wait = wait

    def parse(self, arguments: bytes | str | Mapping[str, Any]) -> Any:
        """Check that it is a JSON object; the client itself knows what it must hold."""
        if isinstance(arguments, Mapping):
            return arguments
        try:
            value = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidArgumentsError(f"the arguments are not JSON: {error}") from error
        if not isinstance(value, dict):
            raise InvalidArgumentsError("the arguments must be a JSON object")
        return cast("Any", value)

    def effects(self, args: Any) -> Effects:
        del args
        return NO_EFFECTS

    def risk(self, args: Any, workspace: Path) -> Risk:
        """Return no risk: the client decides by itself whether it runs the call."""
        del args, workspace
        return Risk("none")

    def preview(self, args: Any) -> str:
        return msgspec.json.encode(args).decode()[:LONGEST_PREVIEW]

    async def invoke(self, args: Any, context: ToolContext) -> str:
        del args
        if context.nested:
            raise ToolFailedError(
                f"{self.name} is a tool of the client; ask for it in a reply, not in a script"
            )
        return await self._wait(context.call_id)


def client_tools(context: SessionContext, options: TurnOptions) -> dict[str, Tool]:
    """Return the client's tools for the calls of the open turn, by name."""
    wait = partial(_wait, context)
    return {tool.name: WaitingTool(tool, wait) for tool in options.client_tools}


def client_specs(options: TurnOptions) -> tuple[ToolSpec, ...]:
    """Return the client's tools as the model sees them."""
    return tuple(
        ToolSpec(tool.name, tool.description, _schema(tool)) for tool in options.client_tools
    )


def check_client_tools(options: TurnOptions) -> None:
    """Raise `UserMustActError` if a tool cannot be described to a model, or chosen by it."""
    tools, choice = options.client_tools, options.tool_choice
    names = [tool.name for tool in tools]
    for tool in tools:
        if not _NAME.fullmatch(tool.name):
            raise UserMustActError(
                f"{tool.name[:80]!r} is not a name for a tool; use 1 to 64 letters, digits, _ and -"
            )
        try:
            _schema(tool)
        except (msgspec.DecodeError, RecursionError, TypeError) as error:
            raise UserMustActError(
                f"the parameters of the tool {tool.name!r} are not a JSON object; send a schema"
            ) from error
    if len(set(names)) < len(names):
        raise UserMustActError("two tools have the same name; give each its own")
    if choice is not None and (choice.name not in names if choice.name else not names):
        tool_name = f"the tool {choice.name[:80]!r}" if choice.name else "a tool"
        raise UserMustActError(f"{tool_name} must be called and is not there; send it along")


def redacted(command: AnswerCalls, redactor: Redactor) -> AnswerCalls:
    """Return the command without the values of secrets: not even the inbox may contain one."""
    answers = tuple(
        CallAnswer(answer.call_id, redactor.text(answer.text)) for answer in command.answers
    )
    return msgspec.structs.replace(command, answers=answers)


def _schema(tool: ClientTool) -> Mapping[str, Any]:
    value = msgspec.json.decode(tool.parameters)
    if not isinstance(value, dict):
        raise TypeError("a schema is an object")
    return cast("Mapping[str, Any]", value)


async def _wait(context: SessionContext, call_id: str) -> str:
    """Return the client's result for the call, which may be in the log already."""
    fold, deadlines = context.fold, context.scope.deadlines
    if (text := fold.client_results.get(call_id)) is not None:
        return text
    future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def resolve(text: str | None) -> None:
        if not future.done():
            future.set_result(text)

    def on_timeout() -> None:
        if call_id not in fold.client_results:  # one that is being committed came in time
            resolve(None)

    started = None if fold.turn is None else fold.turn.started.get(call_id)
    clock = deadlines.clock
    since = clock.wall() if started is None else started.at
    seconds = max(0.0, since + PATIENCE - clock.wall())
    context.answers[call_id] = resolve
    deadline = deadlines.add(clock.monotonic() + seconds, on_timeout)
    try:
        result = await future
    finally:
        context.answers.pop(call_id, None)
        deadlines.drop(deadline)
    if result is None:
        raise ToolFailedError("the client sent no result within a day")
    return result
