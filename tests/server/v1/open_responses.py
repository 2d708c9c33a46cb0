"""The schema that Open Responses (openresponses.org) demands of responses and of their events.

Fields without a default are required. Unknown fields are allowed, as its own suite allows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

ItemStatus = Literal["in_progress", "completed", "incomplete"]
Choice = Literal["none", "auto", "required"]


class _Typed(msgspec.Struct, tag_field="type", frozen=True, kw_only=True):
    pass


# -- parts and items


class OutputText(_Typed, tag="output_text", frozen=True, kw_only=True):
    text: str
    annotations: list[Any]
    logprobs: list[Any] = []


class Refusal(_Typed, tag="refusal", frozen=True, kw_only=True):
    refusal: str


Part = OutputText | Refusal


class Message(_Typed, tag="message", frozen=True, kw_only=True):
    id: str
    status: ItemStatus
    role: Literal["assistant"]
    content: list[Part]


class FunctionCall(_Typed, tag="function_call", frozen=True, kw_only=True):
    id: str
    call_id: str
    name: str
    arguments: str
    status: ItemStatus


Item = Message | FunctionCall


# -- the response


class Function(_Typed, tag="function", frozen=True, kw_only=True):
    name: str
    description: str | None
    parameters: dict[str, Any] | None
    strict: bool | None


class NamedFunction(_Typed, tag="function", frozen=True, kw_only=True):
    name: str


class Format(msgspec.Struct, frozen=True):
    type: Literal["text", "json_object", "json_schema"]


class TextSettings(msgspec.Struct, frozen=True):
    format: Format
    verbosity: Literal["low", "medium", "high"] = "medium"


class Reasoning(msgspec.Struct, frozen=True):
    effort: Literal["none", "low", "medium", "high", "xhigh"] | None
    summary: Literal["concise", "detailed", "auto"] | None


class CachedTokens(msgspec.Struct, frozen=True):
    cached_tokens: int


class ReasoningTokens(msgspec.Struct, frozen=True):
    reasoning_tokens: int


class Usage(msgspec.Struct, frozen=True):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: CachedTokens
    output_tokens_details: ReasoningTokens


class IncompleteDetails(msgspec.Struct, frozen=True):
    reason: str


class Failure(msgspec.Struct, frozen=True):
    code: str
    message: str


class Response(msgspec.Struct, frozen=True):
    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed"]
    incomplete_details: IncompleteDetails | None
    model: str
    previous_response_id: str | None
    instructions: str | None
    output: list[Item]
    error: Failure | None
    tools: list[Function]
    tool_choice: Choice | NamedFunction
    truncation: Literal["auto", "disabled"]
    parallel_tool_calls: bool
    text: TextSettings
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: int
    temperature: float
    reasoning: Reasoning | None
    user: str | None
    usage: Usage | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    store: bool
    background: bool
    service_tier: str
    metadata: dict[str, str]
    safety_identifier: str | None
    prompt_cache_key: str | None


# -- the events of a stream


class _Event(_Typed, frozen=True, kw_only=True):
    sequence_number: int


class _Whole(_Event, frozen=True, kw_only=True):
    response: Response


class Created(_Whole, tag="response.created", frozen=True, kw_only=True):
    pass


class Queued(_Whole, tag="response.queued", frozen=True, kw_only=True):
    pass


class InProgress(_Whole, tag="response.in_progress", frozen=True, kw_only=True):
    pass


class Completed(_Whole, tag="response.completed", frozen=True, kw_only=True):
    pass


class Incomplete(_Whole, tag="response.incomplete", frozen=True, kw_only=True):
    pass


class Failed(_Whole, tag="response.failed", frozen=True, kw_only=True):
    pass


class _OfItem(_Event, frozen=True, kw_only=True):
    output_index: int
    item: Item


class ItemAdded(_OfItem, tag="response.output_item.added", frozen=True, kw_only=True):
    pass


class ItemDone(_OfItem, tag="response.output_item.done", frozen=True, kw_only=True):
    pass


class _InItem(_Event, frozen=True, kw_only=True):
    item_id: str
    output_index: int


class _InPart(_InItem, frozen=True, kw_only=True):
    content_index: int


class PartAdded(_InPart, tag="response.content_part.added", frozen=True, kw_only=True):
    part: Part


class PartDone(_InPart, tag="response.content_part.done", frozen=True, kw_only=True):
    part: Part


class TextDelta(_InPart, tag="response.output_text.delta", frozen=True, kw_only=True):
    delta: str
    logprobs: list[Any] = []


class TextDone(_InPart, tag="response.output_text.done", frozen=True, kw_only=True):
    text: str
    logprobs: list[Any] = []


class ArgumentsDelta(
    _InItem, tag="response.function_call_arguments.delta", frozen=True, kw_only=True
):
    delta: str


class ArgumentsDone(
    _InItem, tag="response.function_call_arguments.done", frozen=True, kw_only=True
):
    arguments: str


Last = Completed | Incomplete | Failed
Event = (
    Created
    | Queued
    | InProgress
    | Completed
    | Incomplete
    | Failed
    | ItemAdded
    | ItemDone
    | PartAdded
    | PartDone
    | TextDelta
    | TextDone
    | ArgumentsDelta
    | ArgumentsDone
)


# -- the stream as a whole


def read_stream(raw: bytes) -> list[Event]:
    """Return the events of a stream; each is named as its data says, and `[DONE]` comes last."""
    *frames, done, rest = raw.decode().split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    events: list[Event] = []
    for frame in frames:
        if frame.startswith(":"):  # a comment, which keeps the connection open
            continue
        name, data = frame.split("\n")
        event: Event = msgspec.json.decode(data.removeprefix("data: "), type=Event)
        assert name == f"event: {event.__struct_config__.tag}"
        events.append(event)
    return events


def check_order(events: list[Event]) -> Response:
    """Check that the events tell one story in order, and return the response at its end."""
    numbers = [event.sequence_number for event in events]
    assert numbers == sorted(set(numbers))
    assert isinstance(events[0], Created)
    assert isinstance(events[1], InProgress | Queued)
    last = events[-1]
    assert isinstance(last, Last)
    items: list[Item] = []
    body = [event for event in events[1:-1] if not isinstance(event, InProgress | Queued)]
    while body:
        count = next(n for n, event in enumerate(body) if isinstance(event, ItemDone)) + 1
        items.append(_check_item(body[:count], len(items)))
        body = body[count:]
    assert items == last.response.output
    assert {e.response.id for e in events if isinstance(e, _Whole)} == {last.response.id}
    return last.response


def _check_item(events: Sequence[Event], index: int) -> Item:
    """Check the events of one item, from its first to its last."""
    added, *inner, done = events
    assert isinstance(added, ItemAdded)
    assert isinstance(done, ItemDone)
    assert added.item.id == done.item.id
    assert added.item.status == "in_progress"
    assert (added.output_index, done.output_index) == (index, index)
    for event in inner:
        assert isinstance(event, _InItem)
        assert (event.item_id, event.output_index) == (done.item.id, index)
    if isinstance(done.item, FunctionCall):
        assert isinstance(added.item, FunctionCall)
        *deltas, whole = inner
        assert isinstance(whole, ArgumentsDone)
        text = "".join(event.delta for event in deltas if isinstance(event, ArgumentsDelta))
        assert (added.item.arguments, text) == ("", whole.arguments)
        assert whole.arguments == done.item.arguments
    else:
        assert isinstance(added.item, Message)
        assert added.item.content == []
        _check_part(inner, done.item)
    return done.item


def _check_part(events: list[Any], item: Message) -> None:
    first, *deltas, whole, last = events
    assert (type(first), type(whole), type(last)) == (PartAdded, TextDone, PartDone)
    assert all(isinstance(event, TextDelta) for event in deltas)
    assert {event.content_index for event in events} == {0}
    assert first.part == OutputText(text="", annotations=[])
    assert [last.part] == item.content
    assert "".join(event.delta for event in deltas) == whole.text == last.part.text
