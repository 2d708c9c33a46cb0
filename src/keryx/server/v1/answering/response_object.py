"""Responses and their items as clients read them: pure, from the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from keryx import events as ev
from keryx.app.portable.conversation import undone_turns
from keryx.messages import TurnOptions
from keryx.server.v1.answering.progress import Progress, Reply
from keryx.server.v1.api_errors import of_turn
from keryx.server.v1.asking.bodies import ResponseBody

PREFIX: Final = "resp_"
_TURN_STOPPED: Final = "the turn was stopped because it made no progress; ask again"


def response_id(session_id: str, seq: int) -> str:
    """Return the id of the response that begins with this fact."""
    return f"{PREFIX}{session_id}_{seq}"


def place_of(response_id: str) -> tuple[str, int] | None:
    """Return the session and the number of the fact that a response begins with."""
    session_id, _, seq = response_id.removeprefix(PREFIX).rpartition("_")
    if not response_id.startswith(PREFIX) or not session_id or not seq.isdecimal():
        return None
    return session_id, int(seq[:16])


def call_name(session_id: str, call_id: str) -> str:
    """Return the id of a call for clients, who answer it without naming its session."""
    return f"{session_id}.{call_id}"


def place_of_call(name: str) -> tuple[str, str] | None:
    """Return the session and the id of a call; None: this is not a call of ours."""
    session_id, _, call_id = name.partition(".")
    return (session_id, call_id) if session_id and call_id else None


def echo(body: ResponseBody) -> str:
    """Return the parameters of a request that its response repeats, as JSON text."""
    form = (body.text.format if body.text else None) or {"type": "text"}
    fields: dict[str, Any] = {
        "model": body.model,
        "previous_response_id": body.previous_response_id,
        "instructions": body.instructions,
        "background": bool(body.background),
        "metadata": body.metadata or {},
        "tools": [_tool(tool) for tool in body.tools or ()],
        "tool_choice": body.tool_choice or "auto",
        "text": {"format": _format(form)},
        "max_output_tokens": body.max_output_tokens,
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "reasoning": {"effort": body.reasoning.effort if body.reasoning else None, "summary": None},
        "temperature": 1.0 if body.temperature is None else body.temperature,
        "top_p": 1.0 if body.top_p is None else body.top_p,
        "presence_penalty": body.presence_penalty or 0.0,
        "frequency_penalty": body.frequency_penalty or 0.0,
        "truncation": body.truncation or "disabled",
        "user": body.user,
        "safety_identifier": body.safety_identifier,
        "prompt_cache_key": body.prompt_cache_key,
    }
    return msgspec.json.encode(fields).decode()


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    names = ("type", "name", "description", "parameters", "strict")
    return {name: tool.get(name) for name in names}


def _format(form: dict[str, Any]) -> dict[str, Any]:
    if form.get("type") != "json_schema":
        return {"type": form.get("type", "text")}
    names = ("name", "description", "schema", "strict")
    return {"type": "json_schema", **{name: form.get(name) for name in names}}


def request_of(progress: Progress) -> dict[str, Any] | None:
    """Return what the response repeats of its request; None: it is no response of this API."""
    begin = progress.begin
    assert begin is not None
    options = begin.options if isinstance(begin, ev.MessageAccepted) else None
    text = begin.request if isinstance(begin, ev.CallsAnswered) else (options or _NONE).request
    return msgspec.json.decode(text) if text else None


_NONE: Final = TurnOptions()


def response_of(progress: Progress) -> dict[str, Any]:
    """Return the response as it is now."""
    begin, request = progress.begin, request_of(progress) or {}
    assert begin is not None
    ended = None if progress.ended_at is None else int(progress.ended_at)
    is_cut = progress.status == "incomplete"
    return {
        "id": response_id(begin.session_id, begin.seq),
        "object": "response",
        "created_at": int(begin.at),
        "completed_at": ended if progress.status == "completed" else None,
        "status": progress.status,
        "error": _error(progress),
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": output(progress),
        "usage": usage_of(progress.usage),
        "max_tool_calls": None,
        "top_logprobs": 0,
        "store": True,
        "service_tier": "default",
        **request,
    }


def _error(progress: Progress) -> dict[str, str] | None:
    turn = progress.turn
    if turn is None or progress.status != "failed":
        return None
    if turn.error is None:
        return {"code": "server_error", "message": _TURN_STOPPED}
    error = of_turn(turn.error.kind, turn.error.message, turn.error.hint)
    return {"code": error.code or "server_error", "message": str(error)}


def usage_of(usage: ev.Usage | None) -> dict[str, Any] | None:
    """Return the usage; None if the model reported none."""
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


# -- items


def output(progress: Progress) -> list[dict[str, Any]]:
    """Return the items of the response so far."""
    assert progress.begin is not None
    session_id = progress.begin.session_id
    items: list[dict[str, Any]] = []
    for reply in progress.replies:
        items += reply_items(session_id, reply, is_over=progress.is_over)
    return items


def reply_items(session_id: str, reply: Reply, *, is_over: bool = False) -> list[dict[str, Any]]:
    """Return the items of one reply: its text, then the calls of the client's tools."""
    status = "completed" if reply.is_complete else "incomplete" if is_over else "in_progress"
    items = [message_item(reply, status)] if reply.text else []
    calls = ((call.call_id, call.tool, call.arguments) for call in reply.calls)
    return [*items, *(call_item(session_id, *call) for call in calls)]


def message_item(reply: Reply, status: str, text: str | None = None) -> dict[str, Any]:
    return {
        "type": "message",
        "id": reply.item_id,
        "status": status,
        "role": "assistant",
        "content": [text_part(reply.text if text is None else text)],
    }


def text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def call_item(
    session_id: str, call_id: str, tool: str, arguments: str, status: str = "completed"
) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_name(session_id, call_id),
        "name": tool,
        "arguments": arguments,
        "status": status,
    }


def input_items(events: Sequence[ev.LoggedEvent], up_to: int) -> list[dict[str, Any]]:
    """Return what the model had read when the response that begins at `up_to` began.

    What was deleted or undone is left out, also if that happened later.
    """
    undone = undone_turns(events)
    items: list[dict[str, Any]] = []
    client_tools: set[str] = set()
    retries = Counter[str]()
    for event in events:
        if event.seq > up_to:
            break
        if getattr(event, "turn_id", None) in undone:
            continue
        match event:
            case ev.MessageAccepted():
                client_tools.update(tool.name for tool in (event.options or _NONE).client_tools)
                items.append(_user_item(event))
            case ev.ModelRetried() | ev.ModelSwitched():
                retries[event.step_id] += 1
            case ev.StepReplied():
                reply = Reply(event.step_id, 0, retries[event.step_id])
                reply.text, reply.is_complete = event.text, not event.cut
                reply.calls = tuple(call for call in event.calls if call.tool in client_tools)
                items += reply_items(event.session_id, reply, is_over=True)
            case ev.CallsAnswered():
                items += [
                    {
                        "type": "function_call_output",
                        "id": f"fco_{answer.call_id}",
                        "call_id": call_name(event.session_id, answer.call_id),
                        "output": answer.text,
                        "status": "completed",
                    }
                    for answer in event.answers
                ]
            case _:
                pass
    return items


def _user_item(event: ev.MessageAccepted) -> dict[str, Any]:
    names = [f"[{part.media_type} {part.name}]".replace(" ]", "]") for part in event.attachments]
    return {
        "type": "message",
        "id": f"msg_{event.message_id}",
        "status": "completed",
        "role": "user",
        "content": [{"type": "input_text", "text": text} for text in (event.text, *names) if text],
    }
