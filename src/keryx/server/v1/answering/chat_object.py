"""Chat completions as clients read them, whole or in chunks: pure, from the progress of a turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from keryx import events as ev
from keryx.server.v1.answering.progress import BETWEEN, Ended, MoreText, Piece, Progress
from keryx.server.v1.answering.response_object import call_name
from keryx.server.v1.api_errors import ApiError, of_turn

DONE: Final = b"data: [DONE]\n\n"
_CANCELLED: Final = "The turn was cancelled in Keryx; ask again"
_encode: Final = msgspec.json.Encoder().encode


def completion(progress: Progress, model: str) -> dict[str, Any]:
    """Return the whole completion; `ApiError` if the turn gave none."""
    if (error := failure(progress)) is not None:
        raise error
    message: dict[str, Any] = {
        "role": "assistant",
        "content": progress.text or (None if progress.waiting else ""),
        "refusal": None,
    }
    if progress.waiting:
        message["tool_calls"] = _tool_calls(progress)
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish_reason(progress),
    }
    body = {**_head(progress, model, "chat.completion"), "choices": [choice]}
    if (usage := _usage(progress.usage)) is not None:
        body["usage"] = usage
    return body


def failure(progress: Progress) -> ApiError | None:
    """Return why there is no answer; None: there is one."""
    turn = progress.turn
    if progress.status == "cancelled":
        return ApiError(409, _CANCELLED, code="cancelled", kind="server_error")
    if progress.status != "failed" or turn is None:
        return None
    if turn.error is None:
        text = "The turn was stopped because it made no progress; ask again"
        return ApiError(500, text, code="parked", kind="server_error")
    return of_turn(turn.error.kind, turn.error.message, turn.error.hint)


class ChatChunks:
    """Writes the chunks of one completion."""

    def __init__(self, progress: Progress, model: str, *, with_usage: bool) -> None:
        self._progress = progress
        self._model = model
        self._with_usage = with_usage
        self._last_reply = 0
        """The number of the reply whose text was sent last."""

    def begin(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": "", "refusal": None})

    def write(self, piece: Piece) -> Iterator[bytes]:
        """Yield the chunks for what is new."""
        if isinstance(piece, MoreText):
            number = piece.reply.number
            between = BETWEEN if self._last_reply not in (0, number) else ""
            self._last_reply = number
            yield self._chunk({"content": between + piece.text})
        elif isinstance(piece, Ended):
            yield from self._end()

    def _end(self) -> Iterator[bytes]:
        progress = self._progress
        if (error := failure(progress)) is not None:
            yield b"data: %b\n\n" % error.encode()
            return
        if progress.waiting:
            calls = [{"index": n, **call} for n, call in enumerate(_tool_calls(progress))]
            yield self._chunk({"tool_calls": calls})
        yield self._chunk({}, _finish_reason(progress))
        if self._with_usage:
            usage = _usage(progress.usage)
            yield self._data({"choices": [], "usage": usage})
        yield DONE

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        usage = {"usage": None} if self._with_usage else {}
        return self._data({"choices": [choice], **usage})

    def _data(self, fields: dict[str, Any]) -> bytes:
        head = _head(self._progress, self._model, "chat.completion.chunk")
        return b"data: %b\n\n" % _encode({**head, **fields})


def _head(progress: Progress, model: str, kind: str) -> dict[str, Any]:
    begin = progress.begin
    assert begin is not None
    return {
        "id": f"chatcmpl-{begin.session_id}_{begin.seq}",
        "object": kind,
        "created": int(begin.at),
        "model": model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _tool_calls(progress: Progress) -> list[dict[str, Any]]:
    assert progress.begin is not None
    session_id = progress.begin.session_id
    return [
        {
            "id": call_name(session_id, call.call_id),
            "type": "function",
            "function": {"name": call.tool, "arguments": call.arguments},
        }
        for call in progress.waiting
    ]


def _finish_reason(progress: Progress) -> str:
    if progress.waiting:
        return "tool_calls"
    return "length" if progress.status == "incomplete" else "stop"


def _usage(usage: ev.Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
