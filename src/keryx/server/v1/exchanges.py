"""One request under `/v1`: its parts, its body, and its answer."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from keryx.server.access.auth import Caller
from keryx.server.guards import API_HEADERS, Headers
from keryx.server.stream import Message, Receive, Send
from keryx.server.v1.api_errors import ApiError, invalid

LARGEST_BODY: Final = 40 * 1024 * 1024
"""Bytes: a message may hold an upload of the largest size as a data URL."""
LONGEST_NUMBER: Final = 16
NO_RETRY: Final = (b"x-should-retry", b"false")
"""A failed turn may have done something: official clients would repeat the request unasked."""


class Exchange(msgspec.Struct):
    """One request and the way to answer it."""

    method: str
    path: str
    query: dict[str, str]
    caller: Caller
    receive: Receive
    send: Send

    async def body(self) -> bytes:
        """Return the body; `ApiError` if it is too large."""
        parts: list[bytes] = []
        size, has_more = 0, True
        while has_more:
            message: Message = await self.receive()
            if message["type"] == "http.disconnect":
                raise invalid("The client has left")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > LARGEST_BODY:
                text = f"The body is larger than {LARGEST_BODY >> 20} MB; send less"
                raise ApiError(413, text, code="too_large")
            has_more = message.get("more_body", False)
        return b"".join(parts)

    def number(self, name: str, default: int) -> int:
        """Return a number of the query."""
        text = self.query.get(name)
        if text is None:
            return default
        if not text.isdecimal() or len(text) > LONGEST_NUMBER:
            raise invalid(f"`{name}` must be a number", name)
        return int(text)

    async def answer(self, body: dict[str, Any]) -> None:
        await _send(self.send, 200, msgspec.json.encode(body))

    async def refuse(self, error: ApiError, *headers: tuple[bytes, bytes]) -> None:
        await refuse(self.send, error, *headers)


async def refuse(send: Send, error: ApiError, *headers: tuple[bytes, bytes]) -> None:
    await _send(send, error.status, error.encode(), *headers)


async def _send(send: Send, status: int, data: bytes, *more: tuple[bytes, bytes]) -> None:
    headers: Headers = [
        *API_HEADERS,
        *more,
        (b"content-type", b"application/json"),
        (b"content-length", str(len(data)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
