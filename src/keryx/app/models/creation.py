"""Creates a model by its name: the adapter for its wire format, with its address and key."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Final

from keryx.config import Provider
from keryx.errors import ModelError
from keryx.models.failures import not_configured
from keryx.models.formats import adapter
from keryx.models.http import Clients
from keryx.models.prices import Prices
from keryx.models.requirements import not_named, provider_missing
from keryx.models.retry import Retrying
from keryx.models.servers.providers import ROWS, row_at
from keryx.ports.model import Model
from keryx.ports.model_access import Endpoint

TOUR: Final = "scripted:tour"


class ModelFactory:
    """Creates models that share their connections, prices and images."""

    def __init__(self, clients: Clients, prices: Prices, blobs: Callable[[str], bytes]) -> None:
        self._clients = clients
        self._prices = prices
        self._blobs = blobs

    def create(self, name: str, providers: Mapping[str, Provider]) -> Model:
        """Return the model; `ModelError` says what to configure."""
        provider = name.partition(":")[0]
        if provider == "scripted":
            # Imported here only: few programs use one.
            scripted: Model = importlib.import_module("keryx.models.scripted").named_model(name)
            return scripted
        settings, model = _provider_of(name, providers)
        address, row = settings.public_address, row_at(settings.base_url)
        return Retrying(
            adapter(settings.wire_format)(
                name=name,
                model=model,
                base_url=settings.base_url,
                api_key=settings.api_key,
                missing_key=settings.missing_key,
                clients=self._clients,
                window=settings.window(model),
                public=None if address is None else self._prices.of(address, model),
                sees_images=settings.sees(model),
                blobs=self._blobs,
                quirks=None if row is None else row.quirks,
            )
        )

    def create_endpoint(self, name: str, providers: Mapping[str, Provider]) -> Endpoint:
        """Return a model that makes or reads media; `ModelError` says what to configure."""
        provider, model = _provider_of(name, providers)
        # Imported here only: few sessions make or read media.
        module = importlib.import_module("keryx.models.openai.endpoint")
        endpoint: Endpoint = module.OpenAIEndpoint(
            name=name,
            model=model,
            base_url=provider.base_url,
            api_key=provider.api_key,
            missing_key=provider.missing_key,
            clients=self._clients,
        )
        return endpoint


def _provider_of(name: str, providers: Mapping[str, Provider]) -> tuple[Provider, str]:
    """Return the provider and its own name of a model; `ModelError` says what to configure."""
    provider, _, model = name.partition(":")
    row = ROWS.get(provider)
    if model and row is not None and provider not in providers:
        if not row.keys:
            return Provider(row.base_url), model  # a server on this machine needs no configuration
        raise provider_missing(name, provider, *filter(None, (row.address, row.keys[0])))
    if not name:
        raise not_named(providers) if providers else not_configured()
    settings = providers.get(provider)
    if settings is None or not model:
        configured = ", ".join(sorted(providers)) or "none"
        raise ModelError(
            "model_not_found",
            f"the model {name!r} is not configured",
            f"write provider:name; configured providers: {configured}; `keryx models providers` "
            "lists those that only need a key",
        )
    return settings, model
