"""What the scripted model server is told to answer, and the chunks that such an answer becomes.

It knows nothing of HTTP; how a fault is acted out is the server's affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from keryx.events import Usage

Fault = Literal[
    "hang before headers",
    "hang after headers",
    "hang mid-stream",
    "reset mid-stream",
    "close mid-stream",
    "end mid-stream",
    "garbage",
    "garbage mid-stream",
    "not http",
    "html",
    "error mid-stream",
    "wrong content type",
    "one byte at a time",
    "crlf",
    "one write",
    "no finish_reason",
    "no done",
    "no usage",
    "keeps open",
]
"""What goes wrong, or is odd.

- hang: nothing follows until the test lets it, or hangs up;
- reset, close, end: the connection is reset, closed in the middle of the HTTP body, or the body
  ends properly but too early;
- one write: all chunks come at once; keeps open: the body does not end after its last chunk.
"""


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call to ask for. Arguments given as a text are sent as they are."""

    tool: str
    arguments: dict[str, Any] | str = {}
    id: str = ""

    @property
    def text(self) -> str:
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer of the server. With a status other than 200 it is an error object."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage(input_tokens=10, output_tokens=5)
    chunk: int = 8
    """How many characters each chunk has."""
    stop: str = ""
    """The finish_reason, if it is to be another than the usual one."""
    fault: Fault | None = None
    after: int = 2
    """How many chunks come before a fault in mid-stream; the first one says only the role."""
    status: int = 200
    headers: dict[str, str] = {}
    code: str | int | None = None
    message: str = "scripted failure"
    delay: float = 0.0
    """Seconds before the answer."""
    pace: float = 0.0
    """Seconds between chunks."""


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A script as a file holds it."""

    replies: tuple[Reply, ...]
    repeat: bool = False
    """Whether the first reply follows the last."""


DONE: Final = b"[DONE]"


def error_object(message: str, code: str | int | None, type_: str) -> bytes:
    error = {"message": message, "type": type_, "param": None, "code": code}
    return msgspec.json.encode({"error": error})


def stop_reason(reply: Reply) -> str:
    return reply.stop or ("tool_calls" if reply.calls else "stop")


def chunks(reply: Reply, *, number: int, model: str, with_usage: bool) -> Iterator[bytes]:
    """The data of each event, up to and with the mark of the end."""
    envelope = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": model,
    }

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return msgspec.json.encode({**envelope, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for text in cut(reply.reasoning, reply.chunk):
        yield chunk({"reasoning_content": text})
    for text in cut(reply.text, reply.chunk):
        yield chunk({"content": text})
    for delta in _call_deltas(reply, number):
        yield chunk({"tool_calls": [delta]})
    if reply.fault != "no finish_reason":
        yield chunk({}, stop_reason(reply))
    if with_usage and reply.fault != "no usage":
        yield msgspec.json.encode({**envelope, "choices": [], "usage": usage(reply.usage)})
    if reply.fault != "no done":
        yield DONE


def _call_deltas(reply: Reply, number: int) -> Iterator[dict[str, Any]]:
    for index, call in enumerate(reply.calls):
        first = {"name": call.tool, "arguments": ""}
        call_id = call.id or f"call_{number}_{index}"
        yield {"index": index, "id": call_id, "type": "function", "function": first}
        for text in cut(call.text, reply.chunk):
            yield {"index": index, "function": {"arguments": text}}


def whole(reply: Reply, *, number: int, model: str) -> bytes:
    """The answer to whoever does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call.id or f"call_{number}_{index}",
                "type": "function",
                "function": {"name": call.tool, "arguments": call.text},
            }
            for index, call in enumerate(reply.calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": stop_reason(reply)}
    answer = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
        "usage": usage(reply.usage),
    }
    return msgspec.json.encode(answer)


def usage(counted: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": counted.input_tokens,
        "completion_tokens": counted.output_tokens,
        "total_tokens": counted.input_tokens + counted.output_tokens,
        "prompt_tokens_details": {"cached_tokens": counted.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": counted.reasoning_tokens},
    }


def cut(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]
