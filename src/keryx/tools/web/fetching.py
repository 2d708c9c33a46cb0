"""Fetches one page: redirects by hand, and limits on size and time. It does not read the content.

Which addresses may be reached is decided by the client (`tools/public_http.py`), for each request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final
from urllib.parse import urljoin, urlsplit

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.http import HttpClient, HttpResponse
from keryx.tools.web.decoding import decoder_for

MB: Final = 1_000_000
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HEADERS: Final[Mapping[str, str]] = {
    "User-Agent": "Mozilla/5.0 (compatible; Keryx/0.1)",
    "Accept": "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,*/*;q=0.5",
    "Accept-Language": "en,*;q=0.5",
    # The encodings that can be decompressed here up to a limit.
    "Accept-Encoding": "gzip, deflate",
}
_WITHOUT_TEXT: Final = ("image/", "audio/", "video/", "font/", "model/")


class FetchLimits(msgspec.Struct, frozen=True):
    """How much a page may cost."""

    size: int = 10 * MB
    """Bytes, after decompression. The rest of a longer page is not read."""
    seconds: float = 45.0
    """For all of it, redirects included."""
    idle_seconds: float = 15.0
    """Without a byte."""
    redirects: int = 10


class Fetched(msgspec.Struct, frozen=True):
    """The answer to a request, after all redirects."""

    url: str
    """Where the redirects ended."""
    content_type: str
    """Without parameters, in lower case."""
    charset: str | None
    body: bytes
    truncated: bool
    """Whether the page is larger than the limit; then `body` is its beginning."""


async def fetch(
    client: HttpClient, url: str, limits: FetchLimits, *, media: bool = False
) -> Fetched:
    """Fetch a page, or with `media` also images and sounds.

    `ToolFailedError` says why not, and what to do.
    """
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first request)

    try:
        async with asyncio.timeout(limits.seconds):
            return await _follow(client, url, limits, media=media)
    except aiohttp.SocketTimeoutError as error:
        raise ToolFailedError(
            f"the server sent nothing for {limits.idle_seconds:g} s; try again later"
        ) from error
    except TimeoutError as error:
        raise ToolFailedError(
            f"the server did not finish within {limits.seconds:g} s; try again later"
        ) from error
    except aiohttp.ClientConnectorDNSError as error:
        raise ToolFailedError("there is no host of this name; check the address") from error
    except aiohttp.InvalidURL as error:
        raise ToolFailedError("this is not a complete web address; correct it") from error
    # aiohttp raises its own errors, and lets some of the parser and of name encodings through.
    except (aiohttp.ClientError, OSError, ValueError) as error:
        text = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        raise ToolFailedError(f"the server could not be read: {text}; try another page") from error


def check_url(url: str) -> str:
    """Return the URL without surrounding space; `ToolFailedError` if nothing can be fetched."""
    url = url.strip()
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise ToolFailedError(f"this is not a web address ({error}); correct it") from error
    if parts.scheme not in ("http", "https"):
        raise ToolFailedError(
            "only addresses that begin with http:// or https:// can be read; write it in full"
        )
    if not host:
        raise ToolFailedError("this web address names no host; write it in full")
    if parts.username is not None or parts.password is not None:
        raise ToolFailedError(
            "this web address contains a user name or a password, which is not sent; remove it"
        )
    return url


async def _follow(client: HttpClient, url: str, limits: FetchLimits, *, media: bool) -> Fetched:
    url = check_url(url)
    visited: set[str] = set()
    for _ in range(limits.redirects + 1):
        if url in visited:
            raise ToolFailedError("the page redirects in a circle; try another address")
        visited.add(url)
        target = await _request(client, url, limits, media=media)
        if isinstance(target, Fetched):
            return target
        url = check_url(urljoin(url, target))
    raise ToolFailedError(
        f"the page redirects more than {limits.redirects} times; try another address"
    )


async def _request(
    client: HttpClient, url: str, limits: FetchLimits, *, media: bool
) -> Fetched | str:
    """Return the page, or the address that the server redirects to."""
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first request)

    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=limits.idle_seconds, sock_read=limits.idle_seconds
    )
    async with client.request(
        "GET", url, headers=_HEADERS, allow_redirects=False, timeout=timeout
    ) as response:
        location = response.headers.get("Location")
        if response.status in _REDIRECTS and location:
            return location
        if response.status != 200:  # noqa: PLR2004 (OK)
            raise ToolFailedError(_status_text(response.status))
        content_type, charset = _content_type(response.headers.get("Content-Type", ""))
        if content_type.startswith(_WITHOUT_TEXT) and not media:
            raise ToolFailedError(f"it is {content_type}, which holds no text; use another tool")
        body, truncated = await _read(response, limits.size)
        return Fetched(url, content_type, charset, body, truncated)


def _status_text(status: int) -> str:
    advice = {
        401: "it needs a login; try another page",
        403: "the server refuses programs or needs a login; try another page",
        404: "there is no such page; check the address",
        410: "the page was removed; try another one",
        429: "there were too many requests; try again later",
    }.get(status, "try again later, or another page")
    return f"the server answered with status {status}: {advice}"


def _content_type(header: str) -> tuple[str, str | None]:
    media_type, _, parameters = header.partition(";")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return media_type.strip().lower(), value.strip().strip("\"'") or None
    return media_type.strip().lower(), None


async def _read(response: HttpResponse, limit: int) -> tuple[bytes, bool]:
    """Return the body up to the limit of decompressed bytes, and whether there is more."""
    decoder = decoder_for(response.headers.get("Content-Encoding", ""))
    body = bytearray()
    received = 0
    async for chunk in response.content.iter_any():
        received += len(chunk)
        body += decoder.feed(chunk, limit + 1 - len(body)) if decoder else chunk
        # Compressed bytes count too: a stream can go on for ever and decompress to nothing.
        if len(body) > limit or received > limit:
            return bytes(body[:limit]), True
    return bytes(body), False
