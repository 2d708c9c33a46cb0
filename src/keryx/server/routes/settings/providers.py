"""The providers of models: listed without their keys, tested, changed and removed."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from litestar import delete, get, post, put
from litestar.params import JSONBody, PathParameter

from keryx.app.settings.provider_entries import (
    ProviderEntry,
    change_provider,
    provider_entries,
    remove_provider,
)
from keryx.config import Provider
from keryx.server.problems import not_found, unprocessable
from keryx.server.routes.params import TheService
from keryx.server.routes.setup import Address
from keryx.server.schemas import Secret, Word
from keryx.server.service import Service

Name = Annotated[str, PathParameter(min_length=1, max_length=200, description="A provider.")]


class ProviderEntries(msgspec.Struct, frozen=True):
    providers: tuple[ProviderEntry, ...]


class ProviderChange(msgspec.Struct, frozen=True, kw_only=True):
    """Another address or key. What is absent stays. `model` is the one to test with."""

    base_url: Address | None = None
    api_key: Secret | None = None
    model: Word | None = None


class TestedProvider(msgspec.Struct, frozen=True):
    """The model that answered with one token, and all that the provider lists."""

    model: str
    models: tuple[str, ...]


@get("/api/settings/providers")
async def list_providers(service: TheService) -> ProviderEntries:
    """The providers, and where each is configured. Keys are never returned."""
    client = service.host_client
    return ProviderEntries(await client.to_thread(lambda: provider_entries(client.config)))


@post("/api/settings/providers/{name:str}/test", status_code=200)
async def test_provider(service: TheService, name: Name) -> TestedProvider:
    """Test the stored key with a request for one token."""
    tested = await service.host_client.models.try_out(_provider(service, name), None)
    return TestedProvider(tested.model, tested.models)


@put("/api/settings/providers/{name:str}")
async def change(service: TheService, name: Name, data: JSONBody[ProviderChange]) -> TestedProvider:
    """Test another address or key with a request for one token; if a model answers, store it."""
    client = service.host_client
    old = _provider(service, name)
    key = (data.api_key or "").strip() or None
    if key is None and data.base_url is not None and old.api_key:
        _check_same_server(old.base_url, data.base_url)
    new = msgspec.structs.replace(
        old, base_url=data.base_url or old.base_url, api_key=key or old.api_key
    )
    tested = await client.models.try_out(new, data.model)
    await client.to_thread(lambda: change_provider(service.settings_file, client.config, name, new))
    await client.reconfigure()
    return TestedProvider(tested.model, tested.models)


@delete("/api/settings/providers/{name:str}", status_code=204)
async def remove(service: TheService, name: Name) -> None:
    """Remove a provider and its key, unless a setting uses one of its models."""
    client = service.host_client
    _provider(service, name)
    await client.to_thread(lambda: remove_provider(service.settings_file, client.config, name))
    await client.reconfigure()


def _provider(service: Service, name: str) -> Provider:
    providers = service.host_client.config.default.providers
    if name not in providers:
        names = ", ".join(providers) or "none"
        raise not_found(f"There is no provider {name!r}", f"configured providers: {names}")
    return providers[name]


def _check_same_server(old: str, new: str) -> None:
    """Raise `ProblemError` if the stored key would be sent to another server."""
    if urlsplit(old)[:2] != urlsplit(new)[:2]:
        raise unprocessable(
            "A stored key is not sent to another server", "enter the key of this server"
        )


ROUTES = (list_providers, test_provider, change, remove)
