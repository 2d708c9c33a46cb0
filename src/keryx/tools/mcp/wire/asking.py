"""Answers what servers ask: elicitation goes to the person, sampling to a model with consent."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import mcp_types
from mcp.client import ClientRequestContext

from keryx.errors import KeryxError
from keryx.ports.tool_context import ToolContext
from keryx.tools.mcp.wire.running import RunningCall, RunningCalls

MOST_FIELDS: Final = 12
"""Fields of one form. Each is a question to a person."""
MOST_CHOICES: Final = 200
"""Choices of one field. Each has a line, and all are in the log."""
LONGEST_CHOICE: Final = 500
MOST_ATTEMPTS: Final = 3
"""How often a person is asked for a value of the right kind."""
LONGEST_TEXT: Final = 2_000
"""Characters of a server's text in a question."""
MOST_TOKENS: Final = 16_000
"""Tokens of one reply that a server may ask for."""
YES: Final = "yes"
NO: Final = "no"
ONCE: Final = "allow once"
ALWAYS: Final = "allow for this call"
DENY: Final = "deny"

Value = str | int | float | bool | list[str] | None
_DECLINED: Final = mcp_types.ElicitResult(action="decline")
_CANCELLED: Final = mcp_types.ElicitResult(action="cancel")


class Asking:
    """The callbacks of one connection."""

    def __init__(self, server: str, calls: RunningCalls) -> None:
        self._server = server
        self._calls = calls

    async def elicit(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        """Ask the person of the call that runs. Nobody answers: cancelled."""
        del context
        call = self._calls.find()
        if call is None:
            return _DECLINED

        async def ask(tool: ToolContext) -> mcp_types.ElicitResult:
            if isinstance(params, mcp_types.ElicitRequestURLParams):
                return await self._ask_to_open(tool, params)
            return await self._ask_form(tool, params)

        return await _answer(call, ask) or _CANCELLED

    async def sample(
        self, context: ClientRequestContext, params: mcp_types.CreateMessageRequestParams
    ) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
        """Ask the auxiliary model, if the person consents."""
        del context
        call = self._calls.find()
        if call is None:
            return _refused("it is not clear which call this request belongs to")

        async def ask(tool: ToolContext) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
            return await self._sample(tool, call, params)

        return await _answer(call, ask) or _refused("the call has ended")

    # -- elicitation

    async def _ask_to_open(
        self, tool: ToolContext, params: mcp_types.ElicitRequestURLParams
    ) -> mcp_types.ElicitResult:
        text = f"{self._says(params.message)}\nIt asks you to open {params.url[:LONGEST_TEXT]}"
        answer = await tool.ask(text, ("done", "decline"))
        if answer is None:
            return _CANCELLED
        return mcp_types.ElicitResult(action="accept") if answer == "done" else _DECLINED

    async def _ask_form(
        self, tool: ToolContext, params: mcp_types.ElicitRequestFormParams
    ) -> mcp_types.ElicitResult:
        fields = _fields(params.requested_schema.get("properties"))
        if len(fields) > MOST_FIELDS or not all(map(_is_answerable, fields.values())):
            return _DECLINED
        if not fields:
            answer = await tool.ask(self._says(params.message), (YES, NO))
            return _confirmed(answer)
        values: dict[str, Value] = {}
        for name, schema in fields.items():
            value = await self._ask_field(tool, params.message, name, _fields(schema))
            if isinstance(value, mcp_types.ElicitResult):
                return value
            values[name] = value
        return mcp_types.ElicitResult(action="accept", content=values)

    async def _ask_field(
        self, tool: ToolContext, message: str, name: str, field: Mapping[str, Any]
    ) -> Value | mcp_types.ElicitResult:
        title = str(field.get("title") or name)[:LONGEST_TEXT]
        description = str(field.get("description") or "")[:LONGEST_TEXT]
        text = f"{self._says(message)}\n{title}" + (f": {description}" if description else "")
        if (default := field.get("default")) is not None:
            text += f"\n(an empty answer means: {str(default)[:LONGEST_TEXT]})"
        note = ""
        for _ in range(MOST_ATTEMPTS):
            answer = await tool.ask(text + note, _choices(field))
            if answer is None:
                return _CANCELLED
            if not answer.strip() and default is not None:
                return cast("Value", default)
            try:
                return _value(answer, field)
            except ValueError as error:
                note = f"\n({error})"
        return _DECLINED

    def _says(self, message: str) -> str:
        return f"The MCP server {self._server} asks: {message[:LONGEST_TEXT]}"

    # -- sampling

    async def _sample(
        self,
        tool: ToolContext,
        call: RunningCall,
        params: mcp_types.CreateMessageRequestParams,
    ) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
        text, images = _conversation(params.messages)
        if not call.allows_models:
            question = (
                f"The MCP server {self._server} wants to ask a model, at your cost:\n"
                f"{text[:LONGEST_TEXT]}"
            )
            answer = await tool.ask(question, (ONCE, ALWAYS, DENY))
            call.allows_models = answer == ALWAYS
            if answer not in (ONCE, ALWAYS):
                return _refused("the person did not allow it")
        try:
            reply = await tool.ask_model(
                "sampling",
                text,
                system=params.system_prompt or "",
                images=images,
                max_tokens=max(1, min(params.max_tokens, MOST_TOKENS)),
            )
        except KeryxError as error:
            return _refused(str(error))
        return mcp_types.CreateMessageResult(
            role="assistant",
            content=mcp_types.TextContent(type="text", text=reply),
            model="keryx",
            stop_reason="endTurn",
        )


async def _answer(call: RunningCall, ask: Any) -> Any:
    """Return what the call's person or model answers; None if the call ends before that."""
    try:
        return await call.ask(ask)
    except KeryxError:
        return None


def _refused(why: str) -> mcp_types.ErrorData:
    return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=f"refused: {why}")


def _confirmed(answer: str | None) -> mcp_types.ElicitResult:
    if answer is None:
        return _CANCELLED
    return mcp_types.ElicitResult(action="accept", content={}) if answer == YES else _DECLINED


def _fields(schema: object) -> Mapping[str, Any]:
    """Return a part of a form as fields; a server may send anything."""
    return cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}


def _is_answerable(schema: object) -> bool:
    """Return whether a person can be asked for this field: its choices are few and short."""
    choices = _choices(_fields(schema))
    return len(choices) <= MOST_CHOICES and all(len(text) <= LONGEST_CHOICE for text in choices)


def _choices(field: Mapping[str, Any]) -> tuple[str, ...]:
    options = field.get("enum")
    if isinstance(options, list):
        return tuple(str(option) for option in cast("list[object]", options))
    titled = field.get("oneOf")
    if isinstance(titled, list):
        return tuple(str(_fields(entry).get("const")) for entry in cast("list[object]", titled))
    return (YES, NO) if field.get("type") == "boolean" else ()


def _value(answer: str, field: Mapping[str, Any]) -> Value:
    """Convert an answer to the field's type; `ValueError` says what is expected."""
    choices = _choices(field)
    match field.get("type"):
        case "boolean":
            if answer.strip().lower() in (YES, NO, "true", "false"):
                return answer.strip().lower() in (YES, "true")
            raise ValueError("please answer yes or no")
        case "integer" | "number" as kind:
            try:
                return int(answer) if kind == "integer" else float(answer)
            except ValueError:
                raise ValueError(f"please answer with a number ({kind})") from None
        case "array":
            return [item.strip() for item in answer.split(",") if item.strip()]
        case _ if choices and answer not in choices:
            raise ValueError(f"please choose one of: {', '.join(choices)}")
        case _:
            return answer


def _conversation(
    messages: Sequence[mcp_types.SamplingMessage],
) -> tuple[str, list[tuple[bytes, str]]]:
    """Return the messages as one text, and the images in them."""
    lines: list[str] = []
    images: list[tuple[bytes, str]] = []
    for message in messages:
        for block in message.content_as_list:
            if isinstance(block, mcp_types.TextContent):
                prefix = "" if len(messages) == 1 else f"{message.role}: "
                lines.append(f"{prefix}{block.text}")
            elif isinstance(block, mcp_types.ImageContent):
                try:
                    images.append((base64.b64decode(block.data, validate=True), block.mime_type))
                except binascii.Error:
                    lines.append("[an image that cannot be read]")
    return "\n\n".join(lines), images
