"""Tests a server and a key as a turn would use them: it asks a model for one token.

Many servers list their models without a key, so the list does not prove that the key works.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Final
from urllib.parse import urlsplit

import msgspec

from keryx.errors import ModelError
from keryx.models import failures
from keryx.models.http import MAX_ERROR_BODY, Clients, endpoint, key_headers, read_body
from keryx.models.servers.discovery import chat_models, models_of
from keryx.models.servers.providers import CHAT, key_header

TOKEN_TIMEOUT: Final = 60.0
"""Seconds for one token: a server may have to load the model first."""
MAX_TRIED: Final = 3
"""The most models that are asked if none is named; the first of a list may not be a chat model."""
MAX_NAMED: Final = 20
"""The most models that an error lists."""
_OK: Final = 200
LISTED_WITH_KEY: Final = ("anthropic", "gemini")
"""The formats whose servers list their models only to a key that works."""
_LIMITS: Final = ("max_completion_tokens", "max_tokens")
"""The names of the token limit: of the current API, and of older servers."""


class TriedServer(msgspec.Struct, frozen=True):
    """A server that answered: the model that answered, and the chat models of its list."""

    model: str
    models: tuple[str, ...]

    @classmethod
    def of(cls, model: str, models: tuple[str, ...]) -> TriedServer:
        return cls(model, chat_models(models))


async def try_out(
    clients: Clients,
    base_url: str,
    api_key: str | None,
    model: str | None,
    *,
    wire_format: str = CHAT,
) -> TriedServer:
    """Ask the server for one token. Raise `ModelError` if it gives none."""
    if wire_format in LISTED_WITH_KEY:
        return _listed(await models_of(clients, base_url, api_key, wire_format=wire_format), model)
    models = await _list_models(clients, base_url, api_key, model)
    chosen = (model,) if model is not None else chat_models(models)[:MAX_TRIED]
    if not chosen:
        raise ModelError(
            "model_not_found", "the server has no model", "load one into it, and try again"
        )
    if api_key is None and is_local_address(base_url) and chosen[0] in models:
        # There is no key to test, and loading a model may take a minute on this machine.
        return TriedServer.of(chosen[0], models)
    unknown: ModelError | None = None
    for name in chosen:
        try:
            await _ask(clients, base_url, api_key, name)
        except ModelError as error:
            if error.kind != "model_not_found":
                raise
            unknown = error
        else:
            return TriedServer.of(name, models)
    assert unknown is not None
    raise _model_not_found(chosen, models, unknown)


def _listed(models: tuple[str, ...], model: str | None) -> TriedServer:
    """Return the model to begin with, of a list that proves the key."""
    chosen = model or next(iter(chat_models(models)), None)
    if chosen is None or chosen not in models:
        hint = f"it lists {', '.join(models[:MAX_NAMED])}"
        raise ModelError(
            "model_not_found", f"the server accepts the key, but it has no model {chosen!r}", hint
        )
    return TriedServer.of(chosen, models)


async def _list_models(
    clients: Clients, base_url: str, api_key: str | None, model: str | None
) -> tuple[str, ...]:
    """Return the server's models; empty if a model is named and the key may not read the list."""
    try:
        return await models_of(clients, base_url, api_key)
    except ModelError as error:
        if model is None or error.kind == "unreachable":
            raise
        return ()


async def _ask(clients: Clients, base_url: str, api_key: str | None, model: str) -> None:
    """Return if the key is accepted and the model exists; else raise `ModelError`."""
    source = failures.source("the server", base_url, api_key, {})
    for limit in _LIMITS:
        status, headers, body = await _post(clients, base_url, api_key, model, limit, source)
        if status == _OK:
            return
        refusal = failures.refused(source, status, headers, body, now=0.0)
        if refusal.kind == "rate_limit":
            return  # a rate limit means that the key is accepted
        if refusal.kind not in ("bad_response", "context_too_long"):
            raise refusal
    # The server refuses this test request, but has accepted the key; a turn asks differently.


async def _post(
    clients: Clients,
    base_url: str,
    api_key: str | None,
    model: str,
    limit: str,
    source: failures.Source,
) -> tuple[int, dict[str, str], bytes]:
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first exchange)

    question = {"model": model, "messages": [{"role": "user", "content": "Hi"}], limit: 1}
    headers = {
        "Content-Type": "application/json",
        **key_headers(key_header(base_url), api_key or ""),
    }
    try:
        async with (
            asyncio.timeout(TOKEN_TIMEOUT),
            (await clients()).post(
                endpoint(base_url.replace("{model}", model), "chat/completions"),
                data=msgspec.json.encode(question),
                headers=headers,
                # The key must not be sent to any other address.
                allow_redirects=False,
            ) as answer,
        ):
            body = await read_body(answer, MAX_ERROR_BODY)
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, body
    except TimeoutError:
        raise failures.stalled(source, TOKEN_TIMEOUT, stage="before its answer") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise failures.unreachable(source, str(error) or type(error).__name__) from error


def _model_not_found(
    chosen: tuple[str, ...], models: tuple[str, ...], refusal: ModelError
) -> ModelError:
    names = " and ".join(repr(name) for name in chosen)
    hint = f"it lists {', '.join(models[:MAX_NAMED])}" if models else refusal.hint
    return ModelError(
        "model_not_found", f"the server accepts the key, but it has no chat model {names}", hint
    )


def is_local_address(base_url: str) -> bool:
    """Return whether the address is on this machine."""
    try:
        host = urlsplit(base_url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
