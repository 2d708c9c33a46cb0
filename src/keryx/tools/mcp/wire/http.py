"""Speaks with a server that has an address: streamable HTTP, with OAuth if the server wants it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from keryx.tools.mcp.settings import LoginSettings, ServerSettings
from keryx.tools.mcp.wire.oauth import InThread, oauth_provider

CONNECT_TIMEOUT: Final = 30.0
LARGEST_EVENT: Final = 16 * 1024 * 1024
"""Bytes of one message."""


def transport(
    settings: ServerSettings,
    login_file: Path,
    in_thread: InThread,
    on_login: Callable[[str | None], None],
) -> AbstractAsyncContextManager[TransportStreams]:
    """Return the transport for `mcp.Client`.

    `on_login` gets the address at which the person must log in, and None once that is done.
    """

    @asynccontextmanager
    async def streams() -> AsyncGenerator[TransportStreams]:
        assert settings.url is not None
        has_key = any(name.lower() == "authorization" for name in settings.headers)
        auth = None
        if not has_key:
            who = settings.oauth or LoginSettings()
            auth = await oauth_provider(settings.url, login_file, in_thread, on_login, who)
        opened: httpx2.AsyncClient = await in_thread(_new_client, settings, auth)
        async with (
            opened as client,
            streamable_http_client(
                settings.url, http_client=client, max_sse_event_size=LARGEST_EVENT
            ) as pair,
        ):
            yield pair

    return streams()


def _new_client(settings: ServerSettings, auth: httpx2.Auth | None) -> httpx2.AsyncClient:
    """Create the client, in a thread: it reads the certificates of the machine."""
    # How long a call may take is decided by its own timeout.
    timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT)
    return httpx2.AsyncClient(
        # Compressed answers could be far larger than what is counted.
        headers={"Accept-Encoding": "identity", **settings.headers},
        timeout=timeout,
        auth=auth,
        transport=BoundedTransport(trust_env=False),
        trust_env=False,
    )


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Ends answers that never end. The package itself bounds only streams of events."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        kind = response.headers.get("content-type", "")
        if not kind.lower().startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedStream(response.stream)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for data in self._stream:
            size += len(data)
            if size > LARGEST_EVENT:
                raise httpx2.StreamError(f"the answer has more than {LARGEST_EVENT} bytes")
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()
