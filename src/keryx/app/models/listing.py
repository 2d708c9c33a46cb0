"""Asks the servers of all providers which models they have, at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from keryx.config import Provider
from keryx.errors import ModelError
from keryx.models.http import Clients
from keryx.models.requirements import key_missing
from keryx.models.servers.discovery import LIST_TIMEOUT, chat_models, models_of


async def models_at(
    clients: Clients, provider: Provider, *, seconds: float = LIST_TIMEOUT
) -> tuple[str, ...]:
    """Return the models of a server; `ModelError` says why it names none."""
    return await models_of(
        clients,
        provider.base_url,
        provider.api_key,
        wire_format=provider.wire_format,
        seconds=seconds,
    )


async def list_models(
    clients: Clients, providers: Mapping[str, Provider], *, seconds: float = LIST_TIMEOUT
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the chat models as `provider:name`, and why other providers name none.

    Each server has so many seconds, whatever the others do.
    """
    problems: list[str] = []

    async def ask(name: str, provider: Provider) -> list[str]:
        try:
            if provider.missing_key is not None:
                raise key_missing(name, provider.missing_key)
            models = chat_models(await models_at(clients, provider, seconds=seconds))
        except ModelError as error:
            problems.append(f"{name}: {error}")
            return []
        return [f"{name}:{model}" for model in models]

    async with asyncio.TaskGroup() as group:
        lists = [
            group.create_task(ask(name, provider), name=f"models of {name}")
            for name, provider in providers.items()
        ]
    models = tuple(model for list_ in lists for model in list_.result())
    return models, tuple(sorted(problems))
