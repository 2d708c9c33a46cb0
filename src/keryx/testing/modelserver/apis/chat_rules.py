"""Checks requests against Chat Completions as strictly as possible.

Real servers differ in what they accept. Here every unknown field, wrong type and wrong order of
calls and results is refused, so that every real server is more lenient than a test. This module
does not know HTTP or replies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from keryx.testing.modelserver.apis.api import (
    Id,
    Name,
    RefusedError,
    Strict,
    check_choice,
    check_model,
    check_tools,
    decoded,
)


class TextPart(Strict, tag_field="type", tag="text"):
    text: Annotated[str, msgspec.Meta(min_length=1)]


class ImageUrl(Strict):
    url: Annotated[str, msgspec.Meta(pattern="^(https?://.|data:image/[a-z+.-]+;base64,.)")]
    detail: Literal["auto", "low", "high"] = "auto"


class ImagePart(Strict, tag_field="type", tag="image_url"):
    image_url: ImageUrl


class SystemMessage(Strict, tag_field="role", tag="system"):
    content: str | list[TextPart]
    name: Name | None = None


class DeveloperMessage(Strict, tag_field="role", tag="developer"):
    content: str | list[TextPart]
    name: Name | None = None


class UserMessage(Strict, tag_field="role", tag="user"):
    content: str | Annotated[list[TextPart | ImagePart], msgspec.Meta(min_length=1)]
    name: Name | None = None


class CalledFunction(Strict):
    name: Name
    arguments: str


class AskedCall(Strict):
    id: Id
    type: Literal["function"]
    function: CalledFunction


class AssistantMessage(Strict, tag_field="role", tag="assistant"):
    content: str | list[TextPart] | None = None
    refusal: str | None = None
    name: Name | None = None
    reasoning_content: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    tool_calls: Annotated[list[AskedCall], msgspec.Meta(min_length=1)] | None = None


class ToolMessage(Strict, tag_field="role", tag="tool"):
    tool_call_id: Id
    content: str | list[TextPart]


ChatMessage = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage


class FunctionSpec(Strict):
    name: Name
    description: str = ""
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolSpec(Strict):
    type: Literal["function"]
    function: FunctionSpec


class StreamOptions(Strict):
    include_usage: bool = False
    include_obfuscation: bool = True


class NamedSchema(Strict):
    name: Name
    schema: dict[str, Any]
    strict: bool | None = None
    description: str = ""


class TextFormat(Strict, tag_field="type", tag="text"):
    pass


class JsonFormat(Strict, tag_field="type", tag="json_object"):
    pass


class SchemaFormat(Strict, tag_field="type", tag="json_schema"):
    json_schema: NamedSchema


class ChosenFunction(Strict):
    name: Name


class ChosenTool(Strict):
    type: Literal["function"]
    function: ChosenFunction


class ChatBody(Strict):
    """The body of a request."""

    model: Id
    messages: Annotated[list[ChatMessage], msgspec.Meta(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    tools: Annotated[list[ToolSpec], msgspec.Meta(min_length=1, max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | ChosenTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: TextFormat | JsonFormat | SchemaFormat | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    n: Literal[1] | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    user: str | None = None
    store: bool | None = None
    metadata: dict[str, str] | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None


def check(raw: bytes, models: Sequence[str], *, returns_reasoning: bool = False) -> ChatBody:
    """Return the decoded body; raise `RefusedError` if it breaks a rule."""
    body = decoded(raw, ChatBody)
    check_model(body.model, models)
    _check_options(body)
    _check_order(body.messages)
    if not returns_reasoning and any(
        isinstance(message, AssistantMessage)
        and (message.reasoning_content is not None or message.reasoning_details is not None)
        for message in body.messages
    ):
        raise RefusedError("an assistant message has the unknown field of another server")
    return body


def _check_options(body: ChatBody) -> None:
    if body.stream_options is not None and not body.stream:
        raise RefusedError("stream_options is only allowed when stream is true")
    if not body.tools:
        if body.parallel_tool_calls is not None or body.tool_choice is not None:
            raise RefusedError("parallel_tool_calls and tool_choice are only allowed with tools")
        return
    functions = [tool.function for tool in body.tools]
    names = [f.name for f in functions]
    check_tools(names, [f.parameters for f in functions])
    if isinstance(body.tool_choice, ChosenTool):
        check_choice(body.tool_choice.function.name, names)


def _check_order(messages: list[ChatMessage]) -> None:
    open_ids: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        at = f"messages[{index}]"
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_ids:
                raise RefusedError(
                    f"{at}: a tool message must answer an open tool_call of the assistant message "
                    f"right before its block; {message.tool_call_id!r} is none"
                )
            open_ids.remove(message.tool_call_id)
            continue
        if open_ids:
            raise RefusedError(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                f"responding to each 'tool_call_id'; before {at} these are missing: {open_ids}"
            )
        if isinstance(message, SystemMessage | DeveloperMessage) and index > 0:
            raise RefusedError(f"{at}: a system message may only be the first")
        if isinstance(message, AssistantMessage):
            open_ids = _new_call_ids(message, seen, at)
    if open_ids:
        raise RefusedError(f"tool_calls without a tool message at the end: {open_ids}")


def _new_call_ids(message: AssistantMessage, seen: set[str], at: str) -> list[str]:
    ids = [call.id for call in message.tool_calls or ()]
    if not ids and not message.content and not message.refusal:
        raise RefusedError(f"{at}: an assistant message needs content or tool_calls")
    for call_id in ids:
        if call_id in seen:
            raise RefusedError(f"{at}: the tool_call id {call_id!r} was used before")
        seen.add(call_id)
    return ids
