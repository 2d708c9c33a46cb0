"""Checks requests against the Gemini API as strictly as possible."""

from __future__ import annotations

import re
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
    check_model,
    check_tools,
    decoded,
)

SKIPPED: Final = "skip_thought_signature_validator"
_OLD: Final = re.compile(r"gemini-[12]\b")


class Blob(Strict, rename="camel"):
    mime_type: Literal[
        "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf"
    ]
    data: Id


class InlinePart(Strict, rename="camel"):
    inline_data: Blob


class FunctionCall(Strict):
    name: Name
    args: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    id: Id | None = None


class FunctionResponse(Strict):
    name: Name
    response: dict[str, Any]
    id: Id | None = None
    parts: list[InlinePart] | None = None


class Part(Strict, rename="camel"):
    text: str | None = None
    inline_data: Blob | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    thought: bool | None = None
    thought_signature: Id | None = None


class Content(Strict):
    parts: Annotated[list[Part], msgspec.Meta(min_length=1)]
    role: Literal["user", "model"]


class System(Strict):
    parts: Annotated[list[Part], msgspec.Meta(min_length=1)]
    role: Literal["system"] | None = None


class Declaration(Strict, rename="camel"):
    name: Name
    description: str
    parameters: dict[str, Any] | None = None
    parameters_json_schema: dict[str, Any] | None = None


class Tool(Strict, rename="camel"):
    function_declarations: Annotated[list[Declaration], msgspec.Meta(min_length=1)]


class ThinkingConfig(Strict, rename="camel"):
    include_thoughts: bool | None = None
    thinking_budget: Annotated[int, msgspec.Meta(ge=-1, le=32_768)] | None = None
    thinking_level: Literal["minimal", "low", "medium", "high"] | None = None


class GenerationConfig(Strict, rename="camel"):
    thinking_config: ThinkingConfig | None = None
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    response_mime_type: Literal["text/plain", "application/json"] | None = None
    response_schema: dict[str, Any] | None = None
    response_json_schema: dict[str, Any] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    seed: int | None = None


class FunctionCallingConfig(Strict, rename="camel"):
    mode: Literal["AUTO", "ANY", "NONE", "VALIDATED"]
    allowed_function_names: Annotated[list[Name], msgspec.Meta(min_length=1)] | None = None


class ToolConfig(Strict, rename="camel"):
    function_calling_config: FunctionCallingConfig


class Body(Strict, rename="camel"):
    """The body of a request."""

    contents: Annotated[list[Content], msgspec.Meta(min_length=1)]
    system_instruction: System | None = None
    tools: Annotated[list[Tool], msgspec.Meta(min_length=1)] | None = None
    tool_config: ToolConfig | None = None
    safety_settings: list[dict[str, Any]] | None = None
    generation_config: GenerationConfig | None = None
    cached_content: str | None = None


def check(raw: bytes, model: str, models: Sequence[str], signatures: Signatures) -> Body:
    """Return the decoded body; raise `RefusedError` if it breaks a rule."""
    body = decoded(raw, Body)
    check_model(model, models)
    is_old = _OLD.search(model) is not None
    _check_options(body, is_old=is_old)
    _check_contents(body.contents)
    _check_signatures(body.contents, model, signatures, is_old=is_old)
    return body


def _check_choice(config: ToolConfig | None, names: Sequence[str]) -> None:
    if config is None:
        return
    choice = config.function_calling_config
    if choice.mode == "ANY" and not names:
        raise RefusedError("Function calling mode ANY needs function declarations")
    if choice.allowed_function_names and choice.mode not in ("ANY", "VALIDATED"):
        raise RefusedError("allowed_function_names needs the mode ANY")
    for name in choice.allowed_function_names or ():
        check_choice(name, names)


def _check_options(body: Body, *, is_old: bool) -> None:
    declared = [one for tool in body.tools or [] for one in tool.function_declarations]
    check_tools(
        [declaration.name for declaration in declared],
        [declaration.parameters_json_schema for declaration in declared],
    )
    for declaration in declared:
        if declaration.parameters is not None and declaration.parameters_json_schema is not None:
            raise RefusedError("parameters and parametersJsonSchema are mutually exclusive")
        schema = declaration.parameters_json_schema
        if schema is not None and not schema.get("properties"):
            raise RefusedError(
                f"{declaration.name}: properties should be non-empty for OBJECT type"
            )
    _check_choice(body.tool_config, [declaration.name for declaration in declared])
    config = body.generation_config or GenerationConfig()
    if config.response_json_schema is not None:
        if config.response_mime_type != "application/json":
            raise RefusedError("responseJsonSchema needs the type application/json")
        if declared and is_old:
            raise RefusedError(
                "Function calling with a response mime type: 'application/json' is unsupported"
            )
    thinking = config.thinking_config
    if thinking is not None and is_old and thinking.thinking_level is not None:
        raise RefusedError("Thinking level is not supported for this model.")
    if thinking is not None and not is_old and thinking.thinking_budget is not None:
        raise RefusedError("thinkingBudget is for older models; use thinkingLevel")


def _calls(content: Content) -> list[FunctionCall]:
    return [part.function_call for part in content.parts if part.function_call is not None]


def _responses(content: Content) -> list[FunctionResponse]:
    parts = (part.function_response for part in content.parts)
    return [response for response in parts if response is not None]


def _check_contents(contents: Sequence[Content]) -> None:
    previous: Content | None = None
    for index, content in enumerate(contents):
        at = f"contents[{index}]"
        _check_parts(content, at)
        if content.role == "model" and (previous is None or previous.role == "model"):
            raise RefusedError(f"{at}: a model's turn must come after a user's turn")
        calls = [] if previous is None else _calls(previous)
        responses = _responses(content)
        if [(call.name, call.id) for call in calls] != [(r.name, r.id) for r in responses]:
            raise RefusedError(
                f"{at}: Please ensure that the number of function response parts is equal to the "
                "number of function call parts of the function call turn, and that it comes "
                "immediately after it."
            )
        if responses and len(responses) != len(content.parts):
            raise RefusedError(f"{at}: function responses come in a turn of their own")
        previous = content
    if previous is not None and previous.role == "model":
        raise RefusedError("Please ensure that the last turn is a user's turn.")


def _check_parts(content: Content, at: str) -> None:
    for part in content.parts:
        values = (part.text, part.inline_data, part.function_call, part.function_response)
        if sum(value is not None for value in values) != 1:
            raise RefusedError(f"{at}: required oneof field 'data' must have one initialized field")
        if part.text == "" and part.thought_signature is None:
            raise RefusedError(f"{at}: a text part must not be empty")
        is_reply = part.function_call is not None or part.thought_signature is not None
        if (content.role == "user" and is_reply) or (
            content.role == "model" and part.function_response is not None
        ):
            raise RefusedError(f"{at}: this part cannot be of the role {content.role}")


def _check_signatures(
    contents: Sequence[Content], model: str, signatures: Signatures, *, is_old: bool
) -> None:
    for index, content in enumerate(contents):
        calls = [part for part in content.parts if part.function_call is not None]
        if calls and calls[0].thought_signature is None and not is_old:
            call = calls[0].function_call
            assert call is not None
            raise RefusedError(
                "Function call is missing a thought_signature in functionCall parts. Additional "
                f"data, function call `default_api:{call.name}`, position {index}."
            )
        for part in content.parts:
            signature = part.thought_signature
            if signature in (None, SKIPPED) and not (
                signature == SKIPPED and _is_own(part, signatures)
            ):
                continue
            if signature != signatures.sign(model, signed_content(part.text, part.function_call)):
                raise RefusedError("Corrupted thought signature.")


def _is_own(part: Part, signatures: Signatures) -> bool:
    """Whether this server made the call, and so its own signature belongs to it."""
    call = part.function_call
    return call is not None and signatures.knows((call.name, call.args))


def signed_content(text: str | None, call: FunctionCall | None) -> str:
    """Return what a signature signs of a part."""
    if call is None:
        return text or ""
    arguments = msgspec.json.encode(call.args, order="deterministic").decode()
    return f"{call.name} {arguments}"
