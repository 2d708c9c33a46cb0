"""A model that is asked over HTTP and answers with server-sent events, in any wire format.

It combines the parts: body, exchange, events, pieces. It gets plain arguments and asks once;
wrappers retry or use another model. A format says how a message and a body are encoded, and how a
reply is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

import msgspec

from keryx.aio.clock import Clock, RealClock
from keryx.errors import ModelError
from keryx.messages import Message
from keryx.models import failures
from keryx.models.http import (
    MAX_ERROR_BODY,
    Clients,
    HttpExchange,
    SilenceLimits,
    endpoint,
    key_headers,
    post,
)
from keryx.models.prices import PublicModel
from keryx.models.requirements import key_invalid, key_missing
from keryx.models.sse import EventTooLargeError, SseParser
from keryx.models.wire.encoding import EncodedTools, LoadBlob, MediaLoader
from keryx.models.wire.problems import problem_in
from keryx.models.wire.quirks import Quirks
from keryx.models.wire.replies import Reply, StreamFailedError
from keryx.ports.model import Finished, ModelRequest, Piece, ToolSpec

FIRST_BYTE_TIMEOUT: Final = 300.0
"""Reasoning models are silent for minutes before they answer."""
BETWEEN_BYTES_TIMEOUT: Final = 120.0
# Far more than any event has; a stream without line ends must not fill the memory.
MAX_EVENT: Final = 1 << 27

_OK: Final = 200
# HTML pages and plain JSON begin with these, event streams do not.
_NOT_EVENTS: Final = (b"<", b"{", b"[")


class StreamingModel(ABC):
    """One model at one address."""

    format: ClassVar[str]
    path: ClassVar[str]
    """What follows the base of an address."""
    media_types: ClassVar[frozenset[str] | None] = None
    """The types of files that the API takes; None: images only, of any type."""
    describe_tool: ClassVar[staticmethod[[ToolSpec], Mapping[str, Any]]]
    """Returns a tool as the API takes it."""
    encode_message: ClassVar[staticmethod[..., bytes]]
    """Encodes a message, with `media` and `signer`."""
    key_header: ClassVar[str] = "Authorization"
    """The header that holds the key. In `Authorization` the key stands behind `Bearer`."""

    def __init__(
        self,
        *,
        name: str,
        model: str,
        base_url: str,
        api_key: str | None,
        missing_key: str | None = None,
        clients: Clients,
        window: int | None = None,
        public: PublicModel | None = None,
        sees_images: bool = False,
        blobs: LoadBlob | None = None,
        first_byte: float = FIRST_BYTE_TIMEOUT,
        between_bytes: float = BETWEEN_BYTES_TIMEOUT,
        headers: Mapping[str, str] | None = None,
        quirks: Quirks | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`base_url` may name the model as `{model}`."""
        key = api_key.strip() if api_key else ""
        base_url = base_url.replace("{model}", model)
        self.name: Final = name
        self.model: Final = model
        self.quirks: Final = quirks or Quirks()
        self._missing_key = missing_key
        self._url = self.address(base_url)
        self._has_invalid_key = not (key.isascii() and key.isprintable())
        self._source = failures.source(name, base_url, key, headers or {})
        self.signer: Final = f"{self.format} {model} {self._source.url}"
        """Who signs the opaque items of the replies: nobody else understands them."""
        self._headers = {
            "Accept": "text/event-stream",
            # With compression pieces would be delayed.
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            **self.api_headers(),
            **key_headers(self.quirks.key_header or self.key_header, key),
            **(headers or {}),
        }
        self._clients = clients
        self._tools = EncodedTools(self.describe_tool)
        self._window = window
        self._public = public
        self.sees_images: Final = sees_images
        self._silence_limits = SilenceLimits(first_byte, between_bytes)
        self._clock = clock or RealClock()
        self._encode = self.encoder(blobs if sees_images else None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def address(self, base_url: str) -> str:
        """Return the address that a request is sent to."""
        return endpoint(base_url, self.path)

    def api_headers(self) -> Mapping[str, str]:
        """Return the headers that the API needs beside the key."""
        return {}

    def encoder(self, blobs: LoadBlob | None) -> Callable[[Message], bytes]:
        """Return the function that encodes a message; `blobs` is None without images."""
        media = MediaLoader(blobs, self.media_types)
        options = self.encoding_options()
        return partial(self.encode_message, media=media, signer=self.signer, **options)

    def encoding_options(self) -> Mapping[str, Any]:
        """Return what else the encoding of a message needs to know."""
        return {}

    @abstractmethod
    def body(self, request: ModelRequest) -> bytes:
        """Return the whole body of a request."""

    @abstractmethod
    def new_reply(self) -> Reply: ...

    def encode(self, message: Message) -> bytes:
        return self._encode(message)

    @property
    def window(self) -> int | None:
        if self._window is not None or self._public is None:
            return self._window
        return self._public.window

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        if self._missing_key is not None:
            raise key_missing(self.name, self._missing_key)
        if self._public is not None:
            self._public.load_soon()
        exchange = await self._ask(request)
        try:
            await self._check(exchange)
            reply, parser = self.new_reply(), SseParser(limit=MAX_EVENT)
            head = b""
            while not reply.is_done:
                try:
                    data = await exchange.read()
                except ModelError:
                    if reply.is_complete:
                        break  # nothing is missing but the end of the stream
                    raise
                if not data:
                    break
                if not head:
                    head = await self._check_head(exchange, data)
                for piece in self._pieces(reply, parser, data):
                    yield piece
            else:
                yield self._finished(reply)
                await exchange.wait_end()
                return
            for piece in self._last_pieces(reply, parser, head):
                yield piece
            yield self._finished(reply)
        finally:
            exchange.close()

    async def _ask(self, request: ModelRequest) -> HttpExchange:
        if self._has_invalid_key:
            raise key_invalid(self.name, self._source.url)
        return await post(
            await self._clients(),
            self._url,
            headers=self._headers,
            body=self.body(request),
            source=self._source,
            limits=self._silence_limits,
            clock=self._clock,
        )

    async def _check(self, exchange: HttpExchange) -> None:
        """Raise `ModelError` if the status is an error."""
        if exchange.status != _OK:
            body = await exchange.read_some(MAX_ERROR_BODY)
            raise failures.refused(
                self._source, exchange.status, exchange.headers, body, now=self._clock.wall()
            )

    async def _check_head(self, exchange: HttpExchange, data: bytes) -> bytes:
        """Raise `ModelError` if the answer is no event stream; the content type is unreliable."""
        if data.lstrip().startswith(_NOT_EVENTS):
            body = await exchange.read_some(MAX_ERROR_BODY, data)
            problem = problem_in(body)
            if problem is not None:
                raise failures.refused_in_stream(self._source, problem, now=self._clock.wall())
            kind = exchange.headers.get("content-type", "no content type")
            raise failures.invalid_answer(self._source, f"{kind} instead of an event stream", body)
        return data[: failures.MAX_EXCERPT * 4]

    def _pieces(self, reply: Reply, parser: SseParser, data: bytes) -> list[Piece]:
        events: list[bytes] = []
        try:
            events = parser.feed(data)
            return reply.add(events)
        except EventTooLargeError as error:
            raise failures.invalid_answer(
                self._source, f"an answer that is not an event stream ({error})", data
            ) from None
        except msgspec.DecodeError as error:
            excerpt = b" ".join(events)
            raise failures.invalid_answer(
                self._source, f"a broken chunk ({error})", excerpt
            ) from None
        except StreamFailedError as error:
            raise failures.refused_in_stream(
                self._source, error.problem, now=self._clock.wall()
            ) from None

    def _last_pieces(self, reply: Reply, parser: SseParser, head: bytes) -> list[Piece]:
        """Return the last pieces. Raise `ModelError` if the reply is not complete at the end."""
        pieces: list[Piece] = []
        try:
            pieces = reply.add(parser.finish())
        except msgspec.DecodeError:
            pass  # an incomplete chunk; reported below
        except StreamFailedError as error:
            raise failures.refused_in_stream(
                self._source, error.problem, now=self._clock.wall()
            ) from None
        if not reply.is_complete:
            if head and not reply.has_begun:
                raise failures.invalid_answer(
                    self._source, "an answer that is not an event stream", head
                )
            raise failures.cut(self._source, "it ended before the reply was complete")
        return pieces

    def _finished(self, reply: Reply) -> Finished:
        cost = reply.cost
        if cost is None and self._public is not None:
            cost = self._public.cost(reply.usage, reply.cache_writes)
        return Finished(reply.stop_reason, reply.usage, self.name, cost)
