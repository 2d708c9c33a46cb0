"""The Responses API: the events that an answer becomes, and the errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keryx.testing.modelserver.apis.api import (
    Accepted,
    RefusedError,
    Request,
    Signatures,
    cut,
    named_frame,
)
from keryx.testing.modelserver.apis.chat import bearer, error_object, openai_models
from keryx.testing.modelserver.apis.responses_rules import check
from keryx.testing.modelserver.script import Reply


class ResponsesApi:
    """The Responses API. Ids say which reply an item is of, and whether that had reasoning."""

    name = "responses"
    path = "/v1/responses"
    folder = "/v1"
    lead = 3

    def __init__(self) -> None:
        self._signatures = Signatures(self.name)

    def key(self, headers: Mapping[str, str]) -> str:
        return bearer(headers)

    def check(self, request: Request, models: Sequence[str]) -> Accepted:
        body = check(request.raw, models, self._signatures)
        if not body.stream:
            raise RefusedError("this server streams only")
        return Accepted(body.model, thinks=bool(body.include))

    def frames(self, reply: Reply, number: int, accepted: Accepted) -> Iterator[bytes]:
        for sequence, event in enumerate(self._events(reply, number, accepted)):
            yield named_frame({**event, "sequence_number": sequence})

    def _events(self, reply: Reply, number: int, accepted: Accepted) -> Iterator[dict[str, Any]]:
        response = {"id": f"resp_{number}", "object": "response", "model": accepted.model}
        start: dict[str, Any] = {
            **response,
            "status": "in_progress",
            "output": [],
            "usage": None,
            "error": None,
        }
        yield {"type": "response.created", "response": start}
        output: list[dict[str, Any]] = []
        suffix = "r" if reply.reasoning else "p"
        if reply.reasoning:
            content = (
                self._signatures.sign(accepted.model, str(number)) if accepted.thinks else None
            )
            output.append(_reasoning(reply, number, content))
            yield from _reasoning_events(output[-1], reply)
        if reply.text:
            item_id = f"msg_{number}_0_{suffix}"
            output.append(_message(item_id, reply.text))
            yield from _text_events(item_id, len(output) - 1, reply)
        for index, call in enumerate(reply.calls):
            item = {
                "type": "function_call",
                "id": f"fc_{number}_{index}_{suffix}",
                "call_id": call.id or f"call_{number}_{index}",
                "name": call.tool,
                "arguments": call.text,
                "status": "completed",
            }
            output.append(item)
            yield from _call_events(item, len(output) - 1, reply)
        yield self._end(reply, response, output)

    def _end(
        self, reply: Reply, response: dict[str, Any], output: list[dict[str, Any]]
    ) -> dict[str, Any]:
        usage = None if reply.fault == "no usage" else _usage(reply)
        status = "incomplete" if reply.stop else "completed"
        reason = "max_output_tokens" if reply.stop == "length" else reply.stop
        details = {"reason": reason} if reply.stop else None
        end = {
            **response,
            "status": status,
            "output": output,
            "usage": usage,
            "error": None,
            "incomplete_details": details,
        }
        return {"type": f"response.{status}", "response": end}

    def whole(self, reply: Reply, number: int, accepted: Accepted) -> bytes:
        raise NotImplementedError

    def error(self, refused: RefusedError) -> bytes:
        return error_object(refused)

    def error_frame(self, reply: Reply) -> bytes:
        error = {"code": reply.code, "message": reply.message, "param": None}
        if isinstance(reply.code, int):
            error["code"] = str(reply.code)
        return named_frame({"type": "error", **error})

    def models(self, names: Sequence[str]) -> Any:
        return openai_models(names)


def _reasoning(reply: Reply, number: int, content: str | None) -> dict[str, Any]:
    return {
        "type": "reasoning",
        "id": f"rs_{number}",
        "summary": [{"type": "summary_text", "text": reply.reasoning}],
        **({} if content is None else {"encrypted_content": content}),
    }


def _reasoning_events(item: dict[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    place = {"item_id": item["id"], "output_index": 0, "summary_index": 0}
    start: dict[str, Any] = {"type": "reasoning", "id": item["id"], "summary": []}
    yield {"type": "response.output_item.added", "output_index": 0, "item": start}
    part = {"type": "summary_text", "text": ""}
    yield {"type": "response.reasoning_summary_part.added", **place, "part": part}
    for text in cut(reply.reasoning, reply.chunk):
        yield {"type": "response.reasoning_summary_text.delta", **place, "delta": text}
    done = {"type": "response.reasoning_summary_text.done", **place, "text": reply.reasoning}
    yield done
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}


def _message(item_id: str, text: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [part] if text else [],
    }


def _text_events(item_id: str, index: int, reply: Reply) -> Iterator[dict[str, Any]]:
    place = {"item_id": item_id, "output_index": index, "content_index": 0}
    start = {**_message(item_id, ""), "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": start}
    part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
    yield {"type": "response.content_part.added", **place, "part": part}
    for text in cut(reply.text, reply.chunk):
        yield {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": reply.text}
    item = _message(item_id, reply.text)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _call_events(item: dict[str, Any], index: int, reply: Reply) -> Iterator[dict[str, Any]]:
    place = {"item_id": item["id"], "output_index": index}
    start = {**item, "arguments": "", "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": start}
    for text in cut(item["arguments"], reply.chunk):
        yield {"type": "response.function_call_arguments.delta", **place, "delta": text}
    done = {"type": "response.function_call_arguments.done", **place}
    yield {**done, "arguments": item["arguments"]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _usage(reply: Reply) -> dict[str, Any]:
    counted = reply.usage
    return {
        "input_tokens": counted.input_tokens,
        "input_tokens_details": {"cached_tokens": counted.cached_tokens},
        "output_tokens": counted.output_tokens,
        "output_tokens_details": {"reasoning_tokens": counted.reasoning_tokens},
        "total_tokens": counted.input_tokens + counted.output_tokens,
    }
