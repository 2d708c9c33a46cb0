"""A model of the Chat Completions API.

It combines the parts: body, exchange, events, pieces. It gets plain arguments and asks once;
wrappers retry or use another model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Final

import msgspec

from keryx.aio.clock import Clock, RealClock
from keryx.errors import ModelError
from keryx.models import failures
from keryx.models.http import MAX_ERROR_BODY, Clients, HttpExchange, SilenceLimits, endpoint, post
from keryx.models.openai.reply import Reply, StreamFailedError
from keryx.models.openai.wire import EncodedTools, LoadBlob, encode_body, encode_message
from keryx.models.prices import PublicModel
from keryx.models.requirements import key_invalid, key_missing
from keryx.models.sse import EventTooLargeError, SseParser
from keryx.ports.model import Finished, ModelRequest, Piece

FIRST_BYTE_TIMEOUT: Final = 300.0
"""Reasoning models are silent for minutes before they answer."""
BETWEEN_BYTES_TIMEOUT: Final = 120.0
# Far more than any event has; a stream without line ends must not fill the memory.
MAX_EVENT: Final = 1 << 27

_OK: Final = 200
# HTML pages and plain JSON begin with these, event streams do not.
_NOT_EVENTS: Final = (b"<", b"{", b"[")


class OpenAIModel:
    """One model at one address."""

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
        clock: Clock | None = None,
    ) -> None:
        key = api_key.strip() if api_key else ""
        self.name: Final = name
        self._missing_key = missing_key
        self._model = msgspec.json.encode(model)
        self._url = endpoint(base_url, "chat/completions")
        self._has_invalid_key = not (key.isascii() and key.isprintable())
        self._source = failures.source(name, base_url, key, headers or {})
        self._headers = {
            "Accept": "text/event-stream",
            # With compression pieces would be delayed.
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {key}"} if key else {}),
            **(headers or {}),
        }
        self._clients = clients
        self._window = window
        self._public = public
        self.sees_images: Final = sees_images
        self.encode: Final = partial(encode_message, blobs=blobs if sees_images else None)
        self._silence_limits = SilenceLimits(first_byte, between_bytes)
        self._clock = clock or RealClock()
        self._tools = EncodedTools()

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r})"

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
            reply, parser = Reply(), SseParser(limit=MAX_EVENT)
            head = b""
            while not reply.is_done:
                try:
                    data = await exchange.read()
                except ModelError:
                    if reply.is_complete:
                        break  # the reply is complete after a finish_reason
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
            body=encode_body(self._model, request, self._tools),
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
            problem = failures.problem_in(body)
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
            raise failures.cut(self._source, "it ended without a finish_reason")
        return pieces

    def _finished(self, reply: Reply) -> Finished:
        cost = None if self._public is None else self._public.cost(reply.usage)
        return Finished(reply.stop_reason, reply.usage, self.name, cost)
