"""Trying a server with a key, as a turn would use it: a model is asked for one token.

Many servers list their models to everybody, so a list says nothing of a key.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Final
from urllib.parse import urlsplit

import msgspec

from keryx.errors import ModelError
from keryx.models import failures
from keryx.models.http import ERROR_BODY, Clients, endpoint
from keryx.models.servers.discovery import models_of, talking

PATIENCE: Final = 60.0
"""Seconds for one token: a server may have to load the model first."""
MOST_TRIED: Final = 3
"""Models that are asked if nobody named one; what is first in a list need not be one that talks."""
SOME: Final = 20
"""Models that are named to who asked for one that is not there."""
_OK: Final = 200
_LIMITS: Final = ("max_completion_tokens", "max_tokens")
"""How the number of tokens is bounded: as the API has it today, and as older servers know it."""


class TriedServer(msgspec.Struct, frozen=True):
    """A server that answered: the model that did, and all that it lists."""

    model: str
    models: tuple[str, ...]


async def try_out(
    clients: Clients, base_url: str, api_key: str | None, model: str | None
) -> TriedServer:
    """Ask the server for one token; `ModelError` says why it gives none."""
    models = await _listed(clients, base_url, api_key, model)
    chosen = (model,) if model is not None else talking(models)[:MOST_TRIED]
    if not chosen:
        raise ModelError(
            "model_not_found", "the server has no model", "load one into it, and try again"
        )
    if api_key is None and is_here(base_url) and chosen[0] in models:
        # There is no key to be tried, and to load a model may take this machine a minute.
        return TriedServer(chosen[0], models)
    unknown: ModelError | None = None
    for name in chosen:
        try:
            await _ask(clients, base_url, api_key, name)
        except ModelError as error:
            if error.kind != "model_not_found":
                raise
            unknown = error
        else:
            return TriedServer(name, models)
    assert unknown is not None
    raise _unknown_model(chosen, models, unknown)


async def _listed(
    clients: Clients, base_url: str, api_key: str | None, model: str | None
) -> tuple[str, ...]:
    """The server's list. Who names a model needs none, and not every key may read it."""
    try:
        return await models_of(clients, base_url, api_key)
    except ModelError as error:
        if model is None or error.kind == "unreachable":
            raise
        return ()


async def _ask(clients: Clients, base_url: str, api_key: str | None, model: str) -> None:
    """Returns if the key lets one in, and the model is there."""
    source = failures.source("the server", base_url, api_key, {})
    for limit in _LIMITS:
        status, headers, body = await _post(clients, base_url, api_key, model, limit, source)
        if status == _OK:
            return
        refusal = failures.refused(source, status, headers, body, now=0.0)
        if refusal.kind == "rate_limit":
            return  # who is told to wait is let in
        if refusal.kind not in ("bad_response", "context_too_long"):
            raise refusal
    # It does not like the question, which is asked otherwise in a turn; the key it has taken.


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
    headers = {"Content-Type": "application/json"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    try:
        async with (
            asyncio.timeout(PATIENCE),
            (await clients()).post(
                endpoint(base_url, "chat/completions"),
                data=msgspec.json.encode(question),
                headers=headers,
                # A key is sent to the address that was named, and to no other.
                allow_redirects=False,
            ) as answer,
        ):
            body = await answer.content.read(ERROR_BODY)
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, body
    except TimeoutError:
        raise failures.stalled(source, PATIENCE, where="before its answer") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise failures.unreachable(source, str(error) or type(error).__name__) from error


def _unknown_model(
    chosen: tuple[str, ...], models: tuple[str, ...], refusal: ModelError
) -> ModelError:
    named = " and ".join(repr(name) for name in chosen)
    hint = f"it lists {', '.join(models[:SOME])}" if models else refusal.hint
    return ModelError(
        "model_not_found", f"the server lets you in, but it has no model {named} to talk to", hint
    )


def is_here(base_url: str) -> bool:
    """Whether that is on this machine."""
    try:
        host = urlsplit(base_url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
