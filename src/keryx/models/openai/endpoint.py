"""A model that is asked with one request and answers with one body: images, speech, transcription.

It owns the key, the retries and the limit of the answer. The tools own the bodies.
"""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlsplit

from keryx.aio.clock import Clock, RealClock
from keryx.errors import ModelError
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
from keryx.models.requirements import key_invalid, key_missing
from keryx.models.retry import RetryDelays, Sleep
from keryx.models.servers.providers import key_header
from keryx.ports.model_access import EndpointAnswer

FIRST_BYTE_TIMEOUT: Final = 300.0
"""A large image takes minutes, and nothing is sent before."""
BETWEEN_BYTES_TIMEOUT: Final = 120.0

_OK: Final = 200
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class OpenAIEndpoint:
    """One model at one address, for the functions of the API beside Chat Completions."""

    def __init__(
        self,
        *,
        name: str,
        model: str,
        base_url: str,
        api_key: str | None,
        missing_key: str | None = None,
        clients: Clients,
        first_byte: float = FIRST_BYTE_TIMEOUT,
        between_bytes: float = BETWEEN_BYTES_TIMEOUT,
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        key = api_key.strip() if api_key else ""
        self.name: Final = name
        self.model: Final = model
        self._base_url = base_url = base_url.replace("{model}", model)
        self._missing_key = missing_key
        self._source = failures.source(name, base_url, key, {})
        self._has_invalid_key = not (key.isascii() and key.isprintable())
        self._headers = {
            # The limit is for the bytes that were sent, and media are compressed already.
            "Accept-Encoding": "identity",
            **key_headers(key_header(base_url), key),
        }
        self._clients = clients
        self._silence_limits = SilenceLimits(first_byte, between_bytes)
        self._clock = clock or RealClock()
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"OpenAIEndpoint({self.name!r})"

    @property
    def address(self) -> str:
        return self._source.url

    @property
    def host(self) -> str:
        parts = urlsplit(self._base_url)
        host = parts.hostname or ""
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def post(
        self, function: str, body: bytes, *, content_type: str, limit: int
    ) -> EndpointAnswer:
        if self._missing_key is not None:
            raise key_missing(self.name, self._missing_key)
        if self._has_invalid_key:
            raise key_invalid(self.name, self.address)
        delays = RetryDelays()
        while True:
            try:
                return await self._post_once(function, body, content_type, limit)
            except ModelError as error:
                delay = delays.after(error)
            await self._sleep(delay)

    async def _post_once(
        self, function: str, body: bytes, content_type: str, limit: int
    ) -> EndpointAnswer:
        exchange = await post(
            await self._clients(),
            endpoint(self._base_url, function),
            headers={**self._headers, "Content-Type": content_type},
            body=body,
            source=self._source,
            limits=self._silence_limits,
            clock=self._clock,
        )
        try:
            if exchange.status != _OK:
                start = await exchange.read_some(MAX_ERROR_BODY)
                raise _without_session(
                    failures.refused(
                        self._source,
                        exchange.status,
                        exchange.headers,
                        start,
                        now=self._clock.wall(),
                    )
                )
            return EndpointAnswer(_media_type(exchange), await self._read(exchange, limit))
        finally:
            exchange.close()

    async def _read(self, exchange: HttpExchange, limit: int) -> bytes:
        body = bytearray()
        while data := await exchange.read():
            body += data
            if len(body) > limit:
                raise self._too_large(limit)
        return bytes(body)

    def _too_large(self, limit: int) -> ModelError:
        return ModelError(
            "bad_response",
            f"{self.name} sent more than {limit:,} bytes, and the rest was not read",
            f"ask for less at once; does {self.address} support this API?",
        )


def _media_type(exchange: HttpExchange) -> str:
    return exchange.headers.get("content-type", "").partition(";")[0].strip().lower()


def _without_session(error: ModelError) -> ModelError:
    """Return the error with a hint that fits: no session can be compacted to make this shorter."""
    if error.kind != "context_too_long":
        return error
    return ModelError(
        error.kind, error.message, "send less at once: a shorter text, a smaller file"
    )
