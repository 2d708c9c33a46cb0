"""Encodes requests to the Messages API: content blocks, tools and options, as JSON bytes.

A message is encoded as its content blocks; the body joins neighbours of one role, so that all
results of a step, and a message that follows them, are one message of the user. The API marks the
end of each request for its cache by itself, so no mark moves through the bytes. Only fields of the
API are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from keryx.messages import (
    AssistantMessage,
    Message,
    Opaque,
    ToolCall,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from keryx.models.anthropic.capabilities import LEAST_BUDGET, Capabilities
from keryx.models.wire.encoding import (
    OPENING,
    PDF,
    EncodedTools,
    Group,
    Media,
    MediaLoader,
    Roles,
    arguments_of,
    blocks,
    join_body,
    tagged,
    tool_name,
)
from keryx.models.wire.schemas import closed, instruction
from keryx.ports.model import ModelRequest, ToolSpec

_RESERVED_OPTIONS: Final = frozenset({"model", "messages", "system", "stream", "tools"})
_CACHED: Final = {"type": "ephemeral"}
_NOT_IN_IDS: Final = re.compile(r"[^a-zA-Z0-9_-]")

_USER, _REPLY, _RESULT = b"u", b"a", b"t"
_OF_USER: Final = Group("user", b'{"role":"user","content":[')
_ROLES: Final = Roles(
    {
        _USER: _OF_USER,
        _RESULT: _OF_USER,
        _REPLY: Group("assistant", b'{"role":"assistant","content":['),
    },
    tagged(_USER, [{"type": "text", "text": OPENING}]),
)
_THINKING: Final = (b'a{"type":"thinking"', b'a{"type":"redacted_thinking"')
"""How a reply begins that has its thinking."""


def encode_message(message: Message, media: MediaLoader, signer: str) -> bytes:
    """Encode one message: its role as one byte, and its content blocks."""
    match message:
        case UserMessage():
            return tagged(_USER, _content(message.content, media))
        case AssistantMessage():
            return tagged(_REPLY, _reply_blocks(message, signer))
        case ToolMessage():
            content = _content(message.content, media)
            result = {
                "type": "tool_result",
                "tool_use_id": _id(message.call_id),
                **({"content": content} if content else {}),
            }
            return tagged(_RESULT, [result])


def _content(content: Sequence[Any], media: MediaLoader) -> list[dict[str, Any]]:
    parts = (_part(span) for span in media.spans(content))
    return [part for part in parts if part is not None]


def _part(span: str | Media) -> dict[str, Any] | None:
    if isinstance(span, str):
        # The API refuses a text without a visible character.
        return {"type": "text", "text": span} if span.strip() else None
    source = {"type": "base64", "media_type": span.media_type, "data": span.base64}
    if span.media_type == PDF:
        return {"type": "document", "source": source, **({"title": span.name} if span.name else {})}
    return {"type": "image", "source": source}


def _reply_blocks(message: AssistantMessage, signer: str) -> list[object]:
    result: list[object] = []
    for block in blocks(message, signer):
        match block:
            case str():
                if part := _part(block):
                    result.append(part)
            case ToolCall():
                result.append(
                    {
                        "type": "tool_use",
                        "id": _id(block.call_id),
                        "name": tool_name(block.tool),
                        "input": arguments_of(block),
                    }
                )
            case Opaque():
                result.append(block.item)
    return result


def _id(call_id: str) -> str:
    return _NOT_IN_IDS.sub("_", call_id)


def describe_tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.parameters}


def encode_body(
    model: str, capabilities: Capabilities, request: ModelRequest, tools: EncodedTools
) -> bytes:
    """Return the whole body."""
    encoded_tools = tools.encode(request.tools) if request.tools else None
    options = _options(model, capabilities, request)
    return join_body(options, encoded_tools, "messages", _ROLES.join(request.history))


def _options(model: str, capabilities: Capabilities, request: ModelRequest) -> dict[str, Any]:
    max_tokens = request.max_tokens or capabilities.max_tokens
    options: dict[str, Any] = {
        "model": model,
        "stream": True,
        "max_tokens": max_tokens,
        "cache_control": _CACHED,
    }
    options |= {
        name: value for name, value in request.extra.items() if name not in _RESERVED_OPTIONS
    }
    output: dict[str, Any] = dict(options.get("output_config", {}))
    system, choice = request.system, request.tool_choice
    if choice is not None and capabilities.takes_choice:
        tool = {"type": "tool", "name": choice.name}
        options["tool_choice"] = tool if choice.name else {"type": "any"}
        if capabilities.binds_thinking:
            options["thinking"] = capabilities.adaptive
        # All others do not think before a call that they must make, or refuse to.
    else:
        _add_thinking(options, output, capabilities, request, max_tokens)
    if choice is not None and not capabilities.takes_choice:
        system = _with(system, _must_call(choice))
    if request.schema is not None:
        schema = closed(request.schema) if capabilities.takes_schemas else None
        if schema is None:
            system = _with(system, instruction(request.schema))
        else:
            output["format"] = {"type": "json_schema", "schema": schema}
    if output:
        options["output_config"] = output
    if system:
        # The mark here covers the tools too: they stand before the system prompt in the cache.
        options["system"] = [{"type": "text", "text": system, "cache_control": _CACHED}]
    return options


def _with(system: str, words: str) -> str:
    return "\n\n".join(filter(None, [system, words]))


def _must_call(choice: ToolChoice) -> str:
    """Return the demand in words, for a model that cannot be made to call a tool."""
    tool = f"the tool {choice.name}" if choice.name else "one of the tools"
    return f"Answer the last message with a call of {tool}, and with nothing else."


def _add_thinking(
    options: dict[str, Any],
    output: dict[str, Any],
    capabilities: Capabilities,
    request: ModelRequest,
    max_tokens: int,
) -> None:
    effort = request.effort
    if effort is None and max_tokens < LEAST_BUDGET:
        effort = "none"  # thinking would leave no room for the answer
    if capabilities.thinking == "adaptive":
        _think_by_itself(options, output, capabilities, effort)
    elif effort in (None, "none") or capabilities.thinking == "none":
        return
    elif not _lacks_thinking(request.history):
        budget = capabilities.budget(effort, max_tokens)
        if budget is not None:
            options["thinking"] = {"type": "enabled", "budget_tokens": budget}


def _think_by_itself(
    options: dict[str, Any], output: dict[str, Any], capabilities: Capabilities, effort: str | None
) -> None:
    if effort in (None, "none") and not capabilities.thinks_unasked:
        return
    if effort is None:
        options.setdefault("thinking", capabilities.adaptive)
    elif effort == "none" and capabilities.can_stop:
        options["thinking"] = {"type": "disabled"}
    else:
        options["thinking"] = capabilities.adaptive
        output["effort"] = capabilities.effort(effort)


def _lacks_thinking(history: Sequence[bytes]) -> bool:
    """Return whether the replies whose results come last began without thinking.

    Another model made the first of them. The API refuses to think on in such a request. All replies
    since the last message of a person are one turn for it: those after the first need not begin
    with thinking, and thinking stays as it was, or its cache would be void.
    """
    first: bytes | None = None
    for index in range(len(history) - 1, -1, -1):
        message = history[index]
        if message.startswith(_REPLY):
            has_results = index + 1 < len(history) and history[index + 1].startswith(_RESULT)
            if not has_results:
                break
            first = message
        elif message.startswith(_USER) and not _follows_results(history, index):
            break
    return first is not None and not first.startswith(_THINKING)


def _follows_results(history: Sequence[bytes], index: int) -> bool:
    """Return whether this message is one with the results before it, as a steer is."""
    return index > 0 and history[index - 1].startswith((_RESULT, _USER))


def thinking_block(thinking: str, signature: str) -> Mapping[str, str]:
    """Return a block of thinking as the API takes it back; its type stands first."""
    return {"type": "thinking", "thinking": thinking, "signature": signature}
