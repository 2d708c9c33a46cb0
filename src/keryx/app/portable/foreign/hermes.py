"""Reads sessions of hermes-agent: exported sessions, its session files, and trajectories."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from keryx.app.portable.foreign.message_lists import (
    Conversation,
    list_at,
    object_at,
    read_messages,
    text_at,
)
from keryx.app.portable.session_file import is_possible_time

_ROLES: Final = {"system": "system", "human": "user", "gpt": "assistant", "tool": "tool"}
_MILLISECONDS: Final = 1e11
"""From here on a number is no time in seconds that any program has seen."""
_THINK: Final = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_CALL: Final = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_RESPONSE: Final = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)


def read_session(value: Mapping[str, Any], place: str) -> Conversation:
    """Return the conversation of an exported session, or of a request: messages, model, title."""
    conversation = read_messages(value.get("messages"), f"{place}messages")
    conversation.title = str(value.get("title") or "")
    conversation.model = str(value.get("model") or "")
    conversation.at = _time(value.get("started_at") or value.get("session_start"))
    return conversation


def read_trajectory(value: Mapping[str, Any], place: str) -> Conversation:
    """Return the conversation of a trajectory (`conversations` with `from` and `value`)."""
    place = f"{place}conversations"
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(list_at(value.get("conversations"), place)):
        turn = object_at(item, f"{place}[{number}]")
        role = _ROLES.get(str(turn.get("from")))
        if role is None:
            raise ValueError(
                f"{place}[{number}].from is {turn.get('from')!r:.40}; "
                "it must be system, human, gpt or tool"
            )
        text = text_at(turn.get("value"), f"{place}[{number}].value")
        messages += _messages(role, text, messages, f"{place}[{number}].value", number)
    conversation = read_messages(messages, place)
    conversation.model = str(value.get("model") or "")
    return conversation


def _messages(
    role: str, text: str, before: list[dict[str, Any]], place: str, number: int
) -> list[dict[str, Any]]:
    if role == "assistant":
        return [_reply(text, place, number)]
    if role != "tool":
        return [{"role": role, "content": text}]
    calls: list[dict[str, Any]] = before[-1].get("tool_calls", []) if before else []
    responses = _RESPONSE.findall(text) or [text]
    if len(responses) > len(calls):
        raise ValueError(f"{place}: it has {len(responses)} results for {len(calls)} calls")
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": response}
        for call, response in zip(calls, responses, strict=False)
    ]


def _reply(text: str, place: str, number: int) -> dict[str, Any]:
    calls: list[dict[str, Any]] = []
    for position, body in enumerate(_CALL.findall(text)):
        try:
            call = msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise ValueError(f"{place}: tool call {position + 1}: {error}") from error
        function = object_at(call, f"{place}: tool call {position + 1}")
        # A trajectory has no ids: its results follow in the order of the calls.
        calls.append({"id": f"{number}.{position}", "function": function})
    reasoning = "\n".join(thought.strip() for thought in _THINK.findall(text))
    return {
        "role": "assistant",
        "content": _CALL.sub("", _THINK.sub("", text)).strip(),
        "reasoning": reasoning,
        "tool_calls": calls,
    }


def _time(value: object) -> float | None:
    """Return a time that is written as seconds, milliseconds or in ISO form; None if it is none."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            at = float(value) if abs(value) < _MILLISECONDS else value / 1000
        else:
            at = datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError):
        return None
    return at if is_possible_time(at) else None
