"""A model behind Chat Completions.

It joins the parts: body, exchange, events, pieces. It gets plain arguments, and asks once; who
asks again, or someone else, is a wrapper around it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Final

import msgspec

from keryx.aio.clock import Clock, RealClock
from keryx.errors import ModelError
from keryx.messages import Message
from keryx.models import failures
from keryx.models.http import ERROR_BODY, Clients, Patience, WorkerCall, endpoint, post
from keryx.models.openai.reply import BrokenOffError, Reply
from keryx.models.openai.wire import EncodedTools, LoadBlob, encode_body, encode_message
from keryx.models.prices import PublicModel
from keryx.models.requirements import key_missing
from keryx.models.sse import EventTooLargeError, SseParser
from keryx.ports.model import Finished, ModelRequest, Piece

FIRST_BYTE: Final = 300.0
"""Models that think before they speak are silent for minutes."""
BETWEEN_BYTES: Final = 120.0
# Far more than any event holds; a stream without line ends must not fill the memory.
LARGEST_EVENT: Final = 1 << 27

_OK: Final = 200
# No event stream begins with these; pages and plain JSON do.
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
        first_byte: float = FIRST_BYTE,
        between_bytes: float = BETWEEN_BYTES,
        headers: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        key = api_key.strip() if api_key else ""
        self._name = name
        self._missing_key = missing_key
        self._model = msgspec.json.encode(model)
        self._url = endpoint(base_url, "chat/completions")
        self._has_odd_key = not (key.isascii() and key.isprintable())
        self._source = failures.source(name, base_url, key, headers or {})
        self._headers = {
            "Accept": "text/event-stream",
            # Compressed, pieces would wait for one another.
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {key}"} if key else {}),
            **(headers or {}),
        }
        self._clients = clients
        self._window = window
        self._public = public
        self._sees_images = sees_images
        self._blobs = blobs if sees_images else None
        self._patience = Patience(first_byte, between_bytes)
        self._clock = clock or RealClock()
        self._tools = EncodedTools()

    def __repr__(self) -> str:
        return f"OpenAIModel({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def window(self) -> int | None:
        if self._window is not None or self._public is None:
            return self._window
        return self._public.window

    @property
    def sees_images(self) -> bool:
        return self._sees_images

    def encode(self, message: Message) -> bytes:
        return encode_message(message, self._blobs)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        if self._missing_key is not None:
            raise key_missing(self._name, self._missing_key)
        if self._public is not None:
            self._public.want()
        exchange = await self._ask(request)
        try:
            await self._check(exchange)
            reply, parser = Reply(), SseParser(limit=LARGEST_EVENT)
            head = b""
            while not reply.is_done:
                try:
                    data = await exchange.read()
                except ModelError:
                    if reply.is_whole:
                        break  # whatever follows a finish_reason is no part of the reply
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

    async def _ask(self, request: ModelRequest) -> WorkerCall:
        if self._has_odd_key:
            raise ModelError(
                "auth",
                f"the key for {self._name} holds characters that no key has",
                f"set the key for {self._source.url} again, without quotes or line ends",
            )
        return await post(
            await self._clients(),
            self._url,
            headers=self._headers,
            body=encode_body(self._model, request, self._tools),
            source=self._source,
            patience=self._patience,
            clock=self._clock,
        )

    async def _check(self, exchange: WorkerCall) -> None:
        """Refuse an answer that is an error by its status."""
        if exchange.status != _OK:
            body = await exchange.read_some(ERROR_BODY)
            raise failures.refused(
                self._source, exchange.status, exchange.headers, body, now=self._clock.wall()
            )

    async def _check_head(self, exchange: WorkerCall, data: bytes) -> bytes:
        """Refuse an answer that cannot be an event stream; servers label theirs in many ways."""
        if data.lstrip().startswith(_NOT_EVENTS):
            body = await exchange.read_some(ERROR_BODY, data)
            problem = failures.problem_in(body)
            if problem is not None:
                raise failures.refused_in_stream(self._source, problem, now=self._clock.wall())
            kind = exchange.headers.get("content-type", "no content type")
            raise failures.nonsense(self._source, f"no event stream but {kind}", body)
        return data[: failures.EXCERPT * 4]

    def _pieces(self, reply: Reply, parser: SseParser, data: bytes) -> list[Piece]:
        events: list[bytes] = []
        try:
            events = parser.feed(data)
            return reply.take(events)
        except EventTooLargeError as error:
            raise failures.nonsense(self._source, f"no event stream ({error})", data) from None
        except msgspec.DecodeError as error:
            excerpt = b" ".join(events)
            raise failures.nonsense(self._source, f"a broken chunk ({error})", excerpt) from None
        except BrokenOffError as error:
            raise failures.refused_in_stream(
                self._source, error.problem, now=self._clock.wall()
            ) from None

    def _last_pieces(self, reply: Reply, parser: SseParser, head: bytes) -> list[Piece]:
        """What the end of the stream completes. A reply that is not whole by then was cut."""
        pieces: list[Piece] = []
        try:
            pieces = reply.take(parser.finish())
        except msgspec.DecodeError:
            pass  # half a chunk; the next line says so
        except BrokenOffError as error:
            raise failures.refused_in_stream(
                self._source, error.problem, now=self._clock.wall()
            ) from None
        if not reply.is_whole:
            if head and not reply.has_begun:
                raise failures.nonsense(self._source, "no event stream", head)
            raise failures.cut(self._source, "it ended without a finish_reason")
        return pieces

    def _finished(self, reply: Reply) -> Finished:
        cost = None if self._public is None else self._public.cost(reply.usage)
        return Finished(reply.stop_reason, reply.usage, self._name, cost)
