"""The interface of the HTTP client that tools use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol


class HttpBody(Protocol):
    """The body of a response while it arrives."""

    def iter_any(self) -> AsyncIterator[bytes]:
        """Yield the bytes in pieces, as they come."""
        ...


class HttpResponse(Protocol):
    """The parts of a response that tools use."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def content(self) -> HttpBody: ...

    async def read(self) -> bytes: ...

    async def text(self) -> str: ...


class HttpRequest(Protocol):
    """A running request. Entering it returns the response; leaving it closes the connection."""

    async def __aenter__(self) -> HttpResponse: ...

    async def __aexit__(self, *exc: object) -> object: ...


class HttpClient(Protocol):
    """The HTTP client of the running loop. All calls on that loop share it."""

    def request(self, method: str, url: str, **options: Any) -> HttpRequest: ...
