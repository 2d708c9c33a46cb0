"""The bodies of requests, with every parameter that clients send.

What Keryx cannot do and would change the meaning of an answer is refused; what is only a wish
(sampling, caching, labels) is accepted and has no effect. Unknown parameters are refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeVar, cast

import msgspec

from keryx.decoding import json_decoder
from keryx.messages import ClientTool, Effort, ToolChoice
from keryx.server.v1.api_errors import ApiError, invalid, unreadable

T = TypeVar("T")
Object = dict[str, Any]
MOST_STOPS: Final = 4
LONGEST_STOP: Final = 512
NO_PARAMETERS: Final[Object] = {"type": "object", "properties": {}}

Words = Annotated[str, msgspec.Meta(max_length=512)]
Metadata = Annotated[
    dict[Annotated[str, msgspec.Meta(max_length=64)], Annotated[str, msgspec.Meta(max_length=512)]],
    msgspec.Meta(max_length=16),
]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Tools = Annotated[list[dict[str, Any]], msgspec.Meta(max_length=128)]


class _Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class AgentBody(_Body, frozen=True, kw_only=True):
    """Keryx's own parameter: which of its tools the agent may use, and in which folder."""

    tools: tuple[Words, ...] | None = None
    """Names of tools and toolsets; empty: none; None: those of the profile."""
    workspace: str | None = None


class StreamOptions(_Body, frozen=True, kw_only=True):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class SharedBody(_Body, frozen=True, kw_only=True):
    """The parameters that both ways to ask have."""

    model: Words
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: Tools | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    top_logprobs: int | None = None
    metadata: Metadata | None = None
    store: bool | None = None
    user: Words | None = None
    service_tier: Words | None = None
    prompt_cache_key: Words | None = None
    prompt_cache_retention: Words | None = None
    prompt_cache_options: dict[str, Any] | None = None
    safety_identifier: Words | None = None
    keryx: AgentBody | None = None


class ChatBody(SharedBody, frozen=True, kw_only=True):
    """The body of `POST /v1/chat/completions`."""

    messages: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]
    response_format: dict[str, Any] | None = None
    reasoning_effort: Effort | None = None
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    n: int | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    logprobs: bool | None = None
    logit_bias: dict[str, float] | None = None
    modalities: list[str] | None = None
    audio: dict[str, Any] | None = None
    prediction: dict[str, Any] | None = None
    verbosity: Words | None = None
    functions: list[Any] | None = None
    function_call: str | dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None


class TextBody(_Body, frozen=True, kw_only=True):
    format: dict[str, Any] | None = None
    verbosity: Words | None = None


class ReasoningBody(_Body, frozen=True, kw_only=True):
    effort: Effort | None = None
    summary: Words | None = None
    generate_summary: Words | None = None
    context: Words | None = None
    mode: Words | None = None


class ResponseBody(SharedBody, frozen=True, kw_only=True):
    """The body of `POST /v1/responses`."""

    input: str | list[dict[str, Any]] | None = None
    instructions: str | None = None
    background: bool | None = None
    previous_response_id: Words | None = None
    max_output_tokens: Tokens | None = None
    max_tool_calls: int | None = None
    text: TextBody | None = None
    reasoning: ReasoningBody | None = None
    include: list[Words] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    conversation: str | dict[str, Any] | None = None
    prompt: dict[str, Any] | None = None


_chat = json_decoder(ChatBody)
_response = json_decoder(ResponseBody)


def read_chat(data: bytes) -> ChatBody:
    """Return the body of a chat completion; `ApiError` names the parameter that is wrong."""
    body = _decoded(_chat, data)
    _refuse(body.n not in (None, 1), "n", "Keryx gives one answer; set `n` to 1")
    _refuse(body.logprobs, "logprobs", "Keryx does not know the probabilities of tokens")
    _refuse(body.logit_bias, "logit_bias", "Keryx cannot change the probabilities of tokens")
    stop_sequences(body)
    _refuse(body.audio, "audio", "Keryx answers in text; ask without `audio`")
    _refuse(set(body.modalities or ()) - {"text"}, "modalities", "Keryx answers in text only")
    _refuse(body.functions, "functions", "`functions` is out of date; use `tools`")
    _refuse(body.function_call, "function_call", "`function_call` is out of date; use `tools`")
    text = "Keryx has a tool of its own for the web; leave `web_search_options` out"
    _refuse(body.web_search_options is not None, "web_search_options", text)
    _check_shared(body)
    return body


def read_response(data: bytes) -> ResponseBody:
    """Return the body of a request for a response; `ApiError` names the wrong parameter."""
    body = _decoded(_response, data)
    _refuse(body.conversation, "conversation", "use `previous_response_id` to continue")
    _refuse(body.prompt, "prompt", "Keryx stores no prompts; send `instructions`")
    _refuse(body.max_tool_calls, "max_tool_calls", "Keryx has limits of its own for calls")
    text = "Keryx does not know the probabilities of tokens"
    _refuse("message.output_text.logprobs" in (body.include or ()), "include", text)
    _check_shared(body)
    return body


def client_tools(body: SharedBody) -> tuple[ClientTool, ...]:
    """Return the functions of the client; none if the model may call no tools."""
    tools = tuple(_client_tool(tool, f"tools[{n}]") for n, tool in enumerate(body.tools or ()))
    return tools if uses_tools(body) else ()


def _client_tool(tool: Object, param: str) -> ClientTool:
    """Return a function; the form is that of either API."""
    if tool.get("type") != "function":
        raise invalid(
            "Only tools of type `function` can be sent; Keryx brings its own for files, the web "
            "and code",
            f"{param}.type",
        )
    function = _function(tool)
    name, description = function.get("name"), function.get("description") or ""
    parameters: object = function.get("parameters") or NO_PARAMETERS
    if not isinstance(name, str):
        raise invalid("A function needs a name", f"{param}.name")
    if not isinstance(parameters, dict) or not isinstance(description, str):
        raise invalid("`parameters` must be an object, `description` a text", param)
    schema = msgspec.json.encode(parameters).decode()
    return ClientTool(name=name, parameters=schema, description=description)


def tool_choice(body: SharedBody) -> ToolChoice | None:
    """Return which function of the client must be called; None: the model chooses."""
    choice = body.tool_choice
    if choice in (None, "auto", "none"):
        return None
    if choice == "required":
        if not body.tools:
            raise invalid("`tool_choice` needs `tools`; send the functions", "tool_choice")
        return ToolChoice()
    fields = _object(choice)
    if fields.get("type") != "function":
        text = "It must be auto, none, required, or a function of `tools`"
        raise invalid(text, "tool_choice")
    name = _function(fields).get("name")
    if not name or all(_function(tool).get("name") != name for tool in body.tools or ()):
        raise invalid(f"`tools` has no function {name!r:.80}; name one of them", "tool_choice")
    return ToolChoice(name=name)


def _function(fields: Object) -> Object:
    """Return the fields of a function, in the form of either API."""
    return _object(fields.get("function", fields))


def stop_sequences(body: ChatBody) -> tuple[str, ...]:
    """Return the sequences before which the answer ends."""
    sequences = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    if len(sequences) > MOST_STOPS or any(
        not 0 < len(sequence) <= LONGEST_STOP for sequence in sequences
    ):
        raise invalid(
            f"Send at most {MOST_STOPS} sequences of 1 to {LONGEST_STOP} characters", "stop"
        )
    return sequences


def answer_schema(form: Object | None, param: str) -> str | None:
    """Return the JSON schema that the answer must match, as text; None: any text."""
    kind = (form or {}).get("type", "text")
    if form is None or kind == "text":
        return None
    if kind == "json_object":
        return '{"type":"object"}'
    if kind != "json_schema":
        raise invalid("It must be text, json_object or json_schema", f"{param}.type")
    schema = _object(form.get("json_schema", form)).get("schema")
    if not isinstance(schema, dict):
        raise invalid("A JSON schema is missing; send it as an object", f"{param}.schema")
    return msgspec.json.encode(schema).decode()


def _object(value: object) -> Object:
    return cast("Object", value) if isinstance(value, dict) else {}


def uses_tools(body: SharedBody) -> bool:
    """Return whether the model may call tools at all."""
    return body.tool_choice != "none"


def _decoded(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable(error) from error


def _check_shared(body: SharedBody) -> None:
    _refuse(body.top_logprobs, "top_logprobs", "Keryx does not know the probabilities of tokens")
    tool_choice(body)


def _refuse(is_set: object, param: str, text: str) -> None:
    if is_set:
        raise ApiError(400, text, param=param, code="unsupported_parameter")
