"""Checks requests against the Messages API as strictly as possible."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from keryx.testing.modelserver.apis.api import (
    Id,
    Name,
    RefusedError,
    Signatures,
    Strict,
    check_choice,
    check_closed,
    check_model,
    check_tools,
    decoded,
)

MAX_MARKS = 4
BINDING_HEADER = "thinking-binding-controls-2026-08-01"
BOUND = re.compile(r"claude-[a-z]+-(?:5-[1-9]|[6-9])")
"""The models whose thinking is bound to all that stands before it. They always think."""
BlockId = Annotated[str, msgspec.Meta(pattern="^[a-zA-Z0-9_-]+$")]


class CacheControl(Strict):
    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class TextBlock(Strict, tag_field="type", tag="text"):
    text: str
    cache_control: CacheControl | None = None


class ImageSource(Strict):
    type: Literal["base64"]
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    data: Id


class ImageBlock(Strict, tag_field="type", tag="image"):
    source: ImageSource
    cache_control: CacheControl | None = None


class DocumentSource(Strict):
    type: Literal["base64"]
    media_type: Literal["application/pdf"]
    data: Id


class DocumentBlock(Strict, tag_field="type", tag="document"):
    source: DocumentSource
    title: str | None = None
    cache_control: CacheControl | None = None


class ToolResult(Strict, tag_field="type", tag="tool_result"):
    tool_use_id: BlockId
    content: str | list[TextBlock | ImageBlock | DocumentBlock] = ""
    is_error: bool = False
    cache_control: CacheControl | None = None


class ToolUse(Strict, tag_field="type", tag="tool_use"):
    id: BlockId
    name: Name
    input: dict[str, Any]
    cache_control: CacheControl | None = None


class Thinking(Strict, tag_field="type", tag="thinking"):
    thinking: str
    signature: Id


class RedactedThinking(Strict, tag_field="type", tag="redacted_thinking"):
    data: Id


UserBlock = TextBlock | ImageBlock | DocumentBlock | ToolResult
ReplyBlock = TextBlock | ToolUse | Thinking | RedactedThinking


class UserMessage(Strict, tag_field="role", tag="user"):
    content: str | Annotated[list[UserBlock], msgspec.Meta(min_length=1)]


class AssistantMessage(Strict, tag_field="role", tag="assistant"):
    content: str | Annotated[list[ReplyBlock], msgspec.Meta(min_length=1)]


class Tool(Strict):
    name: Name
    input_schema: dict[str, Any]
    description: str = ""
    cache_control: CacheControl | None = None


class ThinkingEnabled(Strict, tag_field="type", tag="enabled"):
    budget_tokens: Annotated[int, msgspec.Meta(ge=1024)]


class ThinkingAdaptive(Strict, tag_field="type", tag="adaptive"):
    display: Literal["summarized", "omitted"] | None = None
    block_binding: dict[Literal["prefix_mismatch_behavior"], str] | None = None


class ThinkingDisabled(Strict, tag_field="type", tag="disabled"):
    pass


class JsonFormat(Strict):
    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(Strict):
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: JsonFormat | None = None


class FreeChoice(Strict, tag_field="type", tag="auto"):
    disable_parallel_tool_use: bool = False


class NoChoice(Strict, tag_field="type", tag="none"):
    pass


class AnyTool(Strict, tag_field="type", tag="any"):
    disable_parallel_tool_use: bool = False


class ChosenTool(Strict, tag_field="type", tag="tool"):
    name: Name
    disable_parallel_tool_use: bool = False


class Body(Strict):
    """The body of a request."""

    model: Id
    messages: Annotated[list[UserMessage | AssistantMessage], msgspec.Meta(min_length=1)]
    max_tokens: Annotated[int, msgspec.Meta(ge=1)]
    stream: bool = False
    system: str | list[TextBlock] | None = None
    tools: Annotated[list[Tool], msgspec.Meta(min_length=1)] | None = None
    tool_choice: FreeChoice | NoChoice | AnyTool | ChosenTool | None = None
    thinking: ThinkingEnabled | ThinkingAdaptive | ThinkingDisabled | None = None
    output_config: OutputConfig | None = None
    cache_control: CacheControl | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    metadata: dict[str, str] | None = None
    service_tier: str | None = None


def check(raw: bytes, models: Sequence[str], signatures: Signatures) -> Body:
    """Return the decoded body; raise `RefusedError` if it breaks a rule."""
    body = decoded(raw, Body)
    check_model(body.model, models)
    _check_options(body)
    _check_roles(body.messages)
    _check_results(body.messages)
    _check_marks(body)
    _check_thinking(body, signatures)
    return body


def _check_options(body: Body) -> None:
    tools = body.tools or []
    check_tools([tool.name for tool in tools], [tool.input_schema for tool in tools])
    if body.tool_choice is not None and not tools:
        raise RefusedError("tool_choice may only be specified while providing tools")
    if isinstance(body.tool_choice, ChosenTool):
        check_choice(body.tool_choice.name, [tool.name for tool in tools])
    thinking, output = body.thinking, body.output_config
    is_forced = isinstance(body.tool_choice, AnyTool | ChosenTool)
    thinks = isinstance(thinking, ThinkingEnabled | ThinkingAdaptive)
    if is_forced and thinks and not BOUND.search(body.model):
        raise RefusedError("Thinking may not be enabled when tool_choice forces tool use.")
    if BOUND.search(body.model):
        if is_forced and "haiku" not in body.model:
            raise RefusedError("tool_choice: forced tool use is not supported for this model")
        if isinstance(thinking, ThinkingEnabled | ThinkingDisabled):
            raise RefusedError("thinking.type: this model only takes adaptive thinking")
    if isinstance(thinking, ThinkingEnabled) and thinking.budget_tokens >= body.max_tokens:
        raise RefusedError("`max_tokens` must be greater than `thinking.budget_tokens`")
    if output is not None and output.format is not None:
        check_closed(output.format.schema, "output_config.format.schema")


def _blocks(message: UserMessage | AssistantMessage) -> Sequence[UserBlock | ReplyBlock]:
    content = message.content
    return [TextBlock(content)] if isinstance(content, str) else content


def _check_roles(messages: Sequence[UserMessage | AssistantMessage]) -> None:
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage) == (index % 2 == 0):
            raise RefusedError(f"messages.{index}: roles must alternate, beginning with user")
        for block in _blocks(message):
            if isinstance(block, TextBlock) and not block.text.strip():
                raise RefusedError(
                    f"messages.{index}: text content blocks must contain non-whitespace text"
                )
    if isinstance(messages[-1], AssistantMessage):
        raise RefusedError("the conversation must end with a user message")


def _check_results(messages: Sequence[UserMessage | AssistantMessage]) -> None:
    open_ids: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        is_text_before = False
        for block in _blocks(message):
            if isinstance(block, ToolResult):
                if block.tool_use_id not in open_ids or is_text_before:
                    raise RefusedError(
                        f"messages.{index}: unexpected `tool_use_id` found in `tool_result` "
                        f"blocks: {block.tool_use_id}; results come first, and each has its "
                        "`tool_use` block in the previous message"
                    )
                open_ids.remove(block.tool_use_id)
            else:
                is_text_before = True
        if open_ids:
            raise RefusedError(
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {open_ids}"
            )
        for block in _blocks(message):
            if isinstance(block, ToolUse):
                if block.id in seen:
                    raise RefusedError(f"messages.{index}: `tool_use` ids must be unique")
                seen.add(block.id)
                open_ids.append(block.id)


def _check_marks(body: Body) -> None:
    system = body.system if isinstance(body.system, list) else []
    blocks = [block for message in body.messages for block in _blocks(message)]
    marked = [body, *(body.tools or []), *system, *blocks]
    count = sum(getattr(value, "cache_control", None) is not None for value in marked)
    if count > MAX_MARKS:
        raise RefusedError(f"A maximum of 4 blocks with cache_control may be provided. Got {count}")


def prefix(body: Body, end: int | None = None) -> object:
    """Return all that thinking in the message at `end` is bound to; None: in the reply."""
    return (body.system, body.tools, body.messages[:end])


def _check_thinking(body: Body, signatures: Signatures) -> None:
    thinking = body.thinking
    binding = thinking.block_binding if isinstance(thinking, ThinkingAdaptive) else None
    is_dropped = "drop_block" in (binding or {}).values()
    for index, message in enumerate(body.messages):
        for at, block in enumerate(_blocks(message)):
            if not isinstance(block, Thinking):
                continue
            problem = f"messages.{index}.content.{at}: Invalid `signature` in `thinking` block"
            if block.signature != signatures.sign(body.model, block.thinking):
                raise RefusedError(problem)
            is_free = is_dropped or not BOUND.search(body.model)
            if not (is_free or signatures.is_bound(block.signature, prefix(body, index))):
                raise RefusedError(f"{problem}. The block is bound to a different conversation")
    if isinstance(thinking, ThinkingEnabled | ThinkingAdaptive) and _has_results(body.messages[-1]):
        _check_thoughts_before_calls(body, signatures)


def _check_thoughts_before_calls(body: Body, signatures: Signatures) -> None:
    calls = _blocks(body.messages[-2])
    uses = [(block.name, block.input) for block in calls if isinstance(block, ToolUse)]
    # Replies with calls, and what follows them, are one turn; only its beginning is demanded.
    start = len(body.messages) - 2
    while start > 1 and _has_results(body.messages[start - 1]):
        start -= 2
    demanded = [calls] if any(map(signatures.knows, uses)) else []
    if isinstance(body.thinking, ThinkingEnabled):
        demanded.append(_blocks(body.messages[start]))
    if any(not isinstance(blocks[0], Thinking | RedactedThinking) for blocks in demanded):
        raise RefusedError(
            "Expected `thinking`, but found another block. When `thinking` is enabled, a final "
            "`assistant` message must start with a thinking block"
        )


def _has_results(message: UserMessage | AssistantMessage) -> bool:
    return any(isinstance(block, ToolResult) for block in _blocks(message))
