"""One exchange with a model's server over HTTP: post, then read the answer as it comes.

It owns the client, the deadlines and the meaning of what the HTTP library raises. It refuses to
know what the bytes say. aiohttp is loaded with the first exchange.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from keryx.aio.clock import Clock, Timer
from keryx.aio.owned import Owned
from keryx.errors import ModelError
from keryx.models import failures

if TYPE_CHECKING:
    import aiohttp

# A connection that cannot be made in this time will not be made.
CONNECT_TIMEOUT: Final = 30.0
# Longer bodies are handed over in pieces of this size, so that no single write holds the loop.
SLICE: Final = 1 << 18
# An error's body is read up to here; the excerpt that people see is far shorter.
ERROR_BODY: Final = 1 << 16
# The end of the body comes with the last event or right after it. Without it the connection
# cannot be used again, which is all that is lost.
END_WAIT: Final = 0.05

Clients = Callable[[], "Awaitable[aiohttp.ClientSession]"]
"""Gives the running loop's client."""


def model_clients() -> Owned[aiohttp.ClientSession]:
    """A client for each loop that asks, for any number of replies at once."""
    return Owned(_make, _close)


async def _make() -> aiohttp.ClientSession:
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first exchange)

    # Sessions share this client: no cookies, and no limit that would let one wait for another.
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
    )


async def _close(client: aiohttp.ClientSession) -> None:
    await client.close()


def endpoint(base_url: str, path: str) -> str:
    """The address of one function of an API. A query, as some hosts demand, stays at the end."""
    base, mark, query = base_url.partition("?")
    return f"{base.rstrip('/')}/{path}{mark}{query}"


class Patience(msgspec.Struct, frozen=True):
    """How long a server may be silent."""

    first_byte: float
    between_bytes: float


class WorkerCall:
    """One answer being read. `close` ends the connection at once, whatever is under way."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        source: failures.Source,
        patience: Patience,
        clock: Clock,
        started: float,
    ) -> None:
        import aiohttp  # noqa: PLC0415 (heavy; it is loaded by now)

        self._response = response
        self._source = source
        self._patience = patience
        self._clock = clock
        self._errors = (aiohttp.ClientError, OSError)
        self._limit = patience.first_byte
        self._waits_since: float | None = started
        self._has_stalled = False
        self._is_first = True
        self._timer: Timer = clock.call_at(started + self._limit, self._look)

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def read(self) -> bytes:
        """What has come since the last read; empty at the end."""
        if not self._is_first:
            self._waits_since = self._clock.monotonic()
        try:
            data = await self._response.content.readany()
        except self._errors as error:
            if self._has_stalled:
                where = "before its answer" if self._is_first else "in the middle of its reply"
                raise failures.stalled(self._source, self._limit, where=where) from None
            raise failures.cut(self._source, _told(error)) from None
        self._waits_since = None
        if self._is_first:
            self._is_first = False
            self._limit = self._patience.between_bytes
            self._timer.cancel()
            self._timer = self._clock.call_at(self._clock.monotonic() + self._limit, self._look)
        return data

    async def read_some(self, most: int, already: bytes = b"") -> bytes:
        """The beginning of the body, as far as it comes; a failure only shortens it."""
        body = already
        with contextlib.suppress(ModelError):
            while len(body) < most and (data := await self.read()):
                body += data
        return body[:most]

    async def wait_end(self) -> None:
        """Read to the end if that is near, so that the connection can be used again."""
        with contextlib.suppress(TimeoutError, ModelError):
            async with asyncio.timeout(END_WAIT):
                while await self.read():
                    pass

    def close(self) -> None:
        """A connection whose answer was read to the end goes back to its pool, others close."""
        self._timer.cancel()
        self._response.close()

    def _look(self) -> None:
        now = self._clock.monotonic()
        # Silence counts only while someone waits for bytes; a slow reader is no stalled server.
        until = (now if self._waits_since is None else self._waits_since) + self._limit
        if until > now:
            self._timer = self._clock.call_at(until, self._look)
        else:
            self._has_stalled = True
            self._response.close()


async def post(
    client: aiohttp.ClientSession,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes,
    source: failures.Source,
    patience: Patience,
    clock: Clock,
) -> WorkerCall:
    """Send the body and wait for the answer's headers."""
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first exchange)

    started = clock.monotonic()
    sent = {**headers, "Content-Length": str(len(body))}
    try:
        async with _within(clock, started + patience.first_byte):
            try:
                # A redirected POST would send the key to an address that nobody chose.
                response = await client.post(
                    url,
                    data=body if len(body) <= SLICE else _slices(body),
                    headers=sent,
                    allow_redirects=False,
                )
            except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, ValueError):
                raise failures.unusable(source) from None
            except aiohttp.ClientResponseError as error:
                raise failures.nonsense(source, "no HTTP", error.message.encode()) from None
            except (aiohttp.ClientError, ConnectionError) as error:
                raise failures.unreachable(source, _told(error)) from None
    except TimeoutError:
        where = "before its answer"
        raise failures.stalled(source, patience.first_byte, where=where) from None
    return WorkerCall(response, source, patience, clock, started)


@contextlib.asynccontextmanager
async def _within(clock: Clock, when: float) -> AsyncGenerator[None, None]:
    """`asyncio.timeout`, by a clock that a test may move."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        timer = clock.call_at(when, lambda: limit.reschedule(loop.time()))
        try:
            yield
        finally:
            timer.cancel()


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), SLICE):
        yield body[start : start + SLICE]


def _told(error: Exception) -> str:
    """What the library says; some of its errors say nothing but their name."""
    return str(error) or type(error).__name__
