"""Writes one answer of the scripted model server over HTTP, with its fault."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web
from aiohttp.client_exceptions import ClientConnectionResetError

from keryx.decoding import decode_json
from keryx.testing.modelserver.apis.api import Accepted, Api, RefusedError
from keryx.testing.modelserver.script import Reply

_HTML: Final = b"<!DOCTYPE html><html><body><h1>Please log in</h1></body></html>"
_GARBAGE: Final = b"\x00\xff\xfe\x13garbage\n\n\x80\x81 more of it\n"


@dataclass(slots=True)
class ReceivedRequest:
    """One request, and the state of its answer."""

    number: int
    headers: dict[str, str]
    raw: bytes
    api: str = "chat"
    """The name of the API that was asked."""
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a hang has begun."""
    resume: asyncio.Event = field(default_factory=asyncio.Event)
    """A test sets it to end a hang."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the client has disconnected before the end."""
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the whole answer was written."""

    @property
    def body(self) -> dict[str, Any]:
        return decode_json(self.raw, dict[str, Any])


class Answer:
    """One reply being written, with its fault."""

    def __init__(
        self,
        request: web.Request,
        received: ReceivedRequest,
        api: Api,
        accepted: Accepted,
        reply: Reply,
    ) -> None:
        self._request = request
        self._received = received
        self._api = api
        self._accepted = accepted
        self._reply = reply

    async def give(self) -> web.StreamResponse:
        reply = self._reply
        if reply.delay:
            await asyncio.sleep(reply.delay)
        match reply.fault:
            case "hang before headers":
                await self._hang()
            case "not http":
                self._transport.write(_GARBAGE)
                self._transport.close()
            case "html":
                return web.Response(status=reply.status, body=_HTML, content_type="text/html")
            case _:
                pass
        if reply.status != 200:
            refused = RefusedError(reply.message, reply.status, reply.code, "scripted")
            return error_response(self._api, refused, headers=reply.headers)
        if not self._accepted.streams:
            whole = self._api.whole(reply, self._received.number, self._accepted)
            return json_response(whole)
        return await self._stream()

    async def _stream(self) -> web.StreamResponse:
        fault = self._reply.fault
        content_type = "text/html" if fault == "wrong content type" else "text/event-stream"
        headers = {"Content-Type": content_type, "Cache-Control": "no-cache"}
        response = web.StreamResponse(headers={**headers, **self._reply.headers})
        await response.prepare(self._request)
        if fault == "hang after headers":
            await self._hang()
        elif fault == "garbage":
            await response.write(_GARBAGE)
            return response
        elif fault == "one write":
            await response.write(b"".join(self._framed()))
            return response
        after = self._reply.after and self._reply.after + self._api.lead - 1
        for number, data in enumerate(self._framed()):
            if number == after and await self._break(response):
                return response
            await self._write(response, data)
        if fault == "keeps open":
            await self._hang()
        return response

    def _framed(self) -> Iterator[bytes]:
        for frame in self._api.frames(self._reply, self._received.number, self._accepted):
            yield frame.replace(b"\n", b"\r\n") if self._reply.fault == "crlf" else frame

    async def _write(self, response: web.StreamResponse, data: bytes) -> None:
        if self._reply.fault == "one byte at a time":
            for at in range(len(data)):
                await response.write(data[at : at + 1])
                # Without a pause the bytes would share a segment.
                await asyncio.sleep(0)
        else:
            await response.write(data)
        if self._reply.pace:
            await asyncio.sleep(self._reply.pace)

    async def _break(self, response: web.StreamResponse) -> bool:
        """Produce a fault in mid-stream; return True if nothing may follow."""
        match self._reply.fault:
            case "hang mid-stream":
                await self._hang()
                return False
            case "reset mid-stream":
                connection = self._transport.get_extra_info("socket")
                # No lingering: what was not read is dropped, and the peer is told by a reset.
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._transport.abort()
            case "close mid-stream":
                self._transport.close()
            case "end mid-stream":
                pass
            case "garbage mid-stream":
                await response.write(b'data: {"choices": [{"del\n\n')
            case "error mid-stream":
                await response.write(self._api.error_frame(self._reply))
            case _:
                return False
        return True

    async def _hang(self) -> None:
        self._received.hanging.set()
        await self._received.resume.wait()

    @property
    def _transport(self) -> asyncio.Transport:
        transport = self._request.transport
        if transport is None:
            raise ClientConnectionResetError("the client has hung up")
        return transport


def json_response(
    body: bytes, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    return web.Response(
        status=status, body=body, content_type="application/json", headers=headers or {}
    )


def error_response(
    api: Api, refused: RefusedError, *, headers: dict[str, str] | None = None
) -> web.Response:
    return json_response(api.error(refused), refused.status, headers)
