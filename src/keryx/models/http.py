"""One HTTP exchange with a model's server: post the request, then stream the answer.

It owns the client, the timeouts and the meaning of the HTTP library's errors. It refuses to know
the content. aiohttp is loaded with the first exchange.
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

# The limit for opening a connection.
CONNECT_TIMEOUT: Final = 30.0
# Longer bodies are sent in pieces of this size, so that no single write blocks the loop.
SLICE_SIZE: Final = 1 << 18
# The most bytes that are read of an error's body; people see a much shorter excerpt.
MAX_ERROR_BODY: Final = 1 << 16
# The end of the body comes with the last event or right after it. Without it only the connection
# cannot be reused.
END_TIMEOUT: Final = 0.05

Clients = Callable[[], "Awaitable[aiohttp.ClientSession]"]
"""Returns the client of the running loop."""


def model_clients() -> Owned[aiohttp.ClientSession]:
    """Return the clients: one for each loop, for any number of replies at the same time."""
    return Owned(_create, _close)


async def _create() -> aiohttp.ClientSession:
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first exchange)

    # Sessions share this client: no cookies, and no limit that would make one session wait.
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
    )


async def _close(client: aiohttp.ClientSession) -> None:
    await client.close()


def endpoint(base_url: str, path: str) -> str:
    """Return the address of one function of an API. Queries stay at the end."""
    base, _, query = base_url.partition("?")
    path, _, own_query = path.partition("?")
    queries = "&".join(filter(None, [own_query, query]))
    return f"{base.rstrip('/')}/{path}" + (f"?{queries}" if queries else "")


def key_headers(header: str, key: str) -> dict[str, str]:
    """Return the header for a key; none without a key."""
    if not key:
        return {}
    return {header: f"Bearer {key}" if header == "Authorization" else key}


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the body, up to so many bytes; it comes in any number of parts."""
    body = bytearray()
    while len(body) < limit and (data := await response.content.readany()):
        body += data
    return bytes(body[:limit])


class SilenceLimits(msgspec.Struct, frozen=True):
    """How many seconds a server may be silent."""

    first_byte: float
    between_bytes: float


class HttpExchange:
    """One answer that is being read. `close` ends the connection at once."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        source: failures.Source,
        limits: SilenceLimits,
        clock: Clock,
        started: float,
    ) -> None:
        import aiohttp  # noqa: PLC0415 (heavy; it is loaded by now)

        self._response = response
        self._source = source
        self._limits = limits
        self._clock = clock
        self._errors = (aiohttp.ClientError, OSError)
        self._limit = limits.first_byte
        self._waiting_since: float | None = started
        self._has_stalled = False
        self._is_first = True
        self._timer: Timer = clock.call_at(started + self._limit, self._check_silence)

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def read(self) -> bytes:
        """Return the bytes since the last read; empty at the end."""
        if not self._is_first:
            self._waiting_since = self._clock.monotonic()
        try:
            data = await self._response.content.readany()
        except self._errors as error:
            if self._has_stalled:
                stage = "before its answer" if self._is_first else "in the middle of its reply"
                raise failures.stalled(self._source, self._limit, stage=stage) from None
            raise failures.cut(self._source, _error_text(error)) from None
        self._waiting_since = None
        if self._is_first:
            self._is_first = False
            self._limit = self._limits.between_bytes
            self._timer.cancel()
            self._timer = self._clock.call_at(
                self._clock.monotonic() + self._limit, self._check_silence
            )
        return data

    async def read_some(self, size: int, start: bytes = b"") -> bytes:
        """Return up to `size` bytes of the body; an error only makes it shorter."""
        body = start
        with contextlib.suppress(ModelError):
            while len(body) < size and (data := await self.read()):
                body += data
        return body[:size]

    async def wait_end(self) -> None:
        """Read to the end if it comes soon, so that the connection can be reused."""
        with contextlib.suppress(TimeoutError, ModelError):
            async with asyncio.timeout(END_TIMEOUT):
                while await self.read():
                    pass

    def close(self) -> None:
        """Return the connection to the pool if the answer was read to the end; else close it."""
        self._timer.cancel()
        self._response.close()

    def _check_silence(self) -> None:
        now = self._clock.monotonic()
        # Silence counts only while a read waits for bytes; a slow reader is not a stalled server.
        deadline = (now if self._waiting_since is None else self._waiting_since) + self._limit
        if deadline > now:
            self._timer = self._clock.call_at(deadline, self._check_silence)
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
    limits: SilenceLimits,
    clock: Clock,
) -> HttpExchange:
    """Send the body and wait for the answer's headers."""
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first exchange)

    started = clock.monotonic()
    all_headers = {**headers, "Content-Length": str(len(body))}
    try:
        async with _within(clock, started + limits.first_byte):
            try:
                # A redirect would send the key to an address that the user did not choose.
                response = await client.post(
                    url,
                    data=body if len(body) <= SLICE_SIZE else _slices(body),
                    headers=all_headers,
                    allow_redirects=False,
                )
            except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, ValueError):
                raise failures.cannot_request(source) from None
            except aiohttp.ClientResponseError as error:
                raise failures.invalid_answer(source, "no HTTP", error.message.encode()) from None
            except (aiohttp.ClientError, ConnectionError) as error:
                raise failures.unreachable(source, _error_text(error)) from None
    except TimeoutError:
        stage = "before its answer"
        raise failures.stalled(source, limits.first_byte, stage=stage) from None
    return HttpExchange(response, source, limits, clock, started)


@contextlib.asynccontextmanager
async def _within(clock: Clock, deadline: float) -> AsyncGenerator[None, None]:
    """`asyncio.timeout` with a clock that tests can control."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        timer = clock.call_at(deadline, lambda: limit.reschedule(loop.time()))
        try:
            yield
        finally:
            timer.cancel()


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), SLICE_SIZE):
        yield body[start : start + SLICE_SIZE]


def _error_text(error: Exception) -> str:
    """Return the text of an error; some errors of the library have only a name."""
    return str(error) or type(error).__name__
