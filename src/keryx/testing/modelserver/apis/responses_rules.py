"""Checks requests against the Responses API as strictly as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

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
    converted,
    decoded,
)


class InputText(Strict, tag_field="type", tag="input_text"):
    text: Annotated[str, msgspec.Meta(min_length=1)]


class InputImage(Strict, tag_field="type", tag="input_image"):
    image_url: Annotated[str, msgspec.Meta(pattern="^(https?://.|data:image/[a-z+.-]+;base64,.)")]
    detail: Literal["auto", "low", "high"] = "auto"


class InputFile(Strict, tag_field="type", tag="input_file"):
    filename: Id
    file_data: Annotated[str, msgspec.Meta(pattern="^data:application/pdf;base64,.")]


class OutputText(Strict, tag_field="type", tag="output_text"):
    text: Id
    annotations: list[Any]


InputParts = Annotated[list[InputText | InputImage | InputFile], msgspec.Meta(min_length=1)]


class Message(Strict):
    role: Literal["user", "assistant", "system", "developer"]
    content: Any
    type: Literal["message"] = "message"
    id: Annotated[str, msgspec.Meta(pattern="^msg_")] | None = None
    status: Literal["in_progress", "completed", "incomplete"] | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class FunctionCall(Strict):
    type: Literal["function_call"]
    call_id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    name: Name
    arguments: str
    id: Annotated[str, msgspec.Meta(pattern="^fc_")] | None = None
    status: Literal["in_progress", "completed", "incomplete"] | None = None


class FunctionCallOutput(Strict):
    type: Literal["function_call_output"]
    call_id: Id
    output: str | InputParts


class SummaryText(Strict):
    type: Literal["summary_text"]
    text: str


class Reasoning(Strict):
    type: Literal["reasoning"]
    id: Annotated[str, msgspec.Meta(pattern="^rs_")]
    summary: list[SummaryText]
    encrypted_content: str | None = None
    status: Literal["in_progress", "completed", "incomplete"] | None = None


Item = Message | FunctionCall | FunctionCallOutput | Reasoning
_KINDS: Final[dict[str, Any]] = {
    "message": Message,
    "function_call": FunctionCall,
    "function_call_output": FunctionCallOutput,
    "reasoning": Reasoning,
}


class Tool(Strict):
    type: Literal["function"]
    name: Name
    parameters: dict[str, Any]
    description: str = ""
    strict: bool = True


class ReasoningOptions(Strict):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class TextFormat(Strict, tag_field="type", tag="text"):
    pass


class SchemaFormat(Strict, tag_field="type", tag="json_schema"):
    name: Name
    schema: dict[str, Any]
    strict: bool | None = None


class TextOptions(Strict):
    format: TextFormat | SchemaFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ChosenTool(Strict):
    type: Literal["function"]
    name: Name


class Body(Strict):
    """The body of a request."""

    model: Id
    input: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]
    instructions: str | None = None
    stream: bool = False
    store: bool = True
    include: list[Literal["reasoning.encrypted_content"]] | None = None
    tools: Annotated[list[Tool], msgspec.Meta(min_length=1)] | None = None
    tool_choice: Literal["none", "auto", "required"] | ChosenTool | None = None
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningOptions | None = None
    max_output_tokens: Annotated[int, msgspec.Meta(ge=16)] | None = None
    text: TextOptions | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    metadata: dict[str, str] | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None


def check(raw: bytes, models: Sequence[str], signatures: Signatures) -> Body:
    """Return the decoded body; raise `RefusedError` if it breaks a rule."""
    body = decoded(raw, Body)
    check_model(body.model, models)
    _check_options(body)
    items = [_item(value, f"input[{index}]") for index, value in enumerate(body.input)]
    if body.store and any(getattr(item, "id", None) for item in items):
        raise RefusedError("items with ids are only taken back with `store` set to false")
    _check_calls(items)
    _check_reasoning(items, body.model, signatures)
    return body


def _item(value: dict[str, Any], at: str) -> Item:
    kind = _KINDS.get(value.get("type", "message"))
    if kind is None:
        raise RefusedError(f"{at} has the unknown type {value['type']!r}")
    item: Item = converted(value, kind, at)
    if isinstance(item, Message) and not isinstance(item.content, str):
        parts: Any = list[OutputText] if item.role == "assistant" else InputParts
        converted(item.content, parts, f"{at}.content")
    if isinstance(item, Message) and not item.content:
        raise RefusedError(f"{at} has no content")
    return item


def _check_options(body: Body) -> None:
    tools = body.tools or []
    check_tools([tool.name for tool in tools], [tool.parameters for tool in tools])
    for tool in tools:
        if tool.strict:
            check_closed(tool.parameters, f"Invalid schema for function '{tool.name}'")
    if not tools and (body.parallel_tool_calls is not None or body.tool_choice is not None):
        raise RefusedError("parallel_tool_calls and tool_choice are only allowed with tools")
    if isinstance(body.tool_choice, ChosenTool):
        check_choice(body.tool_choice.name, [tool.name for tool in tools])
    schema = body.text.format if body.text is not None else None
    if isinstance(schema, SchemaFormat) and schema.strict:
        check_closed(schema.schema)


def _check_calls(items: Sequence[Item]) -> None:
    open_ids: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        match item:
            case FunctionCallOutput():
                if item.call_id not in open_ids:
                    raise RefusedError(
                        f"input[{index}]: No tool call found for function call output with "
                        f"call_id {item.call_id}."
                    )
                open_ids.remove(item.call_id)
            case FunctionCall():
                if item.call_id in seen:
                    raise RefusedError(f"input[{index}]: the call_id was used before")
                seen.add(item.call_id)
                open_ids.append(item.call_id)
            case Message() | Reasoning():
                # Items of one reply may stand between its calls, nothing else.
                is_of_person = isinstance(item, Message) and item.role != "assistant"
                is_later = index > 0 and isinstance(items[index - 1], FunctionCallOutput)
                if open_ids and (is_of_person or is_later):
                    raise RefusedError(f"No tool output found for function call {open_ids[0]}.")
    if open_ids:
        raise RefusedError(f"No tool output found for function call {open_ids[0]}.")


def _check_reasoning(items: Sequence[Item], model: str, signatures: Signatures) -> None:
    """Reasoning and the items that it led to are of one reply, and none comes without the other."""
    replies: set[str] = set()
    for index, item in enumerate(items):
        if isinstance(item, Reasoning):
            reply = item.id.removeprefix("rs_")
            if item.encrypted_content != signatures.sign(model, reply):
                raise RefusedError(
                    f"The encrypted content for item {item.id} could not be verified.",
                    code="invalid_encrypted_content",
                )
            replies.add(reply)
            following = items[index + 1] if index + 1 < len(items) else None
            if not isinstance(following, Message | FunctionCall) or not _is_of(following, reply):
                raise RefusedError(
                    f"Item '{item.id}' of type 'reasoning' was provided without its required "
                    "following item."
                )
        elif isinstance(item, Message | FunctionCall) and item.id is not None:
            _, reply, _, has_reasoning = item.id.split("_")
            if has_reasoning == "r" and reply not in replies:
                raise RefusedError(
                    f"Item '{item.id}' of type '{item.type}' was provided without its required "
                    f"'reasoning' item: 'rs_{reply}'."
                )


def _is_of(item: Message | FunctionCall, reply: str) -> bool:
    return item.id is not None and item.id.split("_")[1] == reply
