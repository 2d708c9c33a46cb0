"""The first steps: is a model configured, which servers run here, a key that a person pastes."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.params import JSONBody
from msgspec import Meta

from keryx.app.models import TOUR
from keryx.config import OPENAI_URL, Provider, keep_key, keep_model
from keryx.models.servers.discovery import FoundServer
from keryx.server.problems import conflict, unprocessable
from keryx.server.routes.params import TheService
from keryx.server.schemas import Secret, Word
from keryx.server.service import Service

SOME = 20
"""Models that are named to who asked for one that is not there."""
Address = Annotated[str, Meta(pattern=r"^https?://[^\s]{1,1000}$")]
Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]


class Setup(msgspec.Struct, frozen=True):
    """Whether a model is configured; if not, the tour's works with no key."""

    configured: bool
    model: str | None
    tour: str = TOUR


class FoundServers(msgspec.Struct, frozen=True):
    servers: tuple[FoundServer, ...]


class NewProvider(msgspec.Struct, frozen=True, kw_only=True):
    """A model server, and the key to it; `model` is the one to begin with, if there is a choice."""

    name: Name = "openai"
    base_url: Address = OPENAI_URL
    api_key: Secret | None = None
    model: Word | None = None


class NewModel(msgspec.Struct, frozen=True):
    """`provider:name`."""

    model: Word


class OfferedModels(msgspec.Struct, frozen=True):
    """What the configured servers offer; who did not answer is named, with the reason."""

    models: tuple[str, ...]
    problems: tuple[str, ...]


class Configured(msgspec.Struct, frozen=True):
    model: str
    models: tuple[str, ...]


@get("/api/setup")
async def setup(service: TheService) -> Setup:
    """Whether a model is configured."""
    return _now(service)


def _now(service: Service) -> Setup:
    found = service.host_client.models.default or None
    return Setup(found is not None and found != TOUR, found)


@get("/api/setup/servers")
async def servers(service: TheService) -> FoundServers:
    """Model servers that run on this machine."""
    return FoundServers(tuple(await service.host_client.models.on_this_machine()))


@get("/api/setup/models")
async def offered(service: TheService) -> OfferedModels:
    """The models that the configured servers offer right now."""
    return OfferedModels(*await service.host_client.models.offered())


@post("/api/setup/model", status_code=200)
async def choose(service: TheService, data: JSONBody[NewModel]) -> Setup:
    """Make a model of a configured server the one that new sessions begin with."""
    host_client = service.host_client
    if host_client.config.is_model_written or host_client.models.is_given:
        raise conflict(
            "the model is named where this server was started",
            "change KERYX_MODEL, `model` in config.toml, or what starts it",
        )
    provider, _, name = data.model.partition(":")
    found = host_client.config.default.providers.get(provider)
    if found is None:
        known = ", ".join(host_client.config.default.providers) or "none"
        raise unprocessable(
            f"no server is configured as {provider!r}",
            f"write provider:name; there is {known}",
        )
    has = await host_client.models.at(found.base_url, found.api_key)
    if name not in has:
        raise unprocessable(f"{provider} has no model {name!r}", _some_of(has))
    await service.threads.to_thread(keep_model, host_client.config.home, data.model)
    await host_client.reconfigure()
    return _now(service)


@post("/api/setup", status_code=200)
async def configure(service: TheService, data: JSONBody[NewProvider]) -> Configured:
    """Try a server with a key, by asking a model for one token; if it answers, both are kept.

    They are for the person's eyes only. The name in the answer is another one if the wanted one is
    that of another address.
    """
    host_client = service.host_client
    key = (data.api_key or "").strip() or None
    tried = await host_client.models.try_out(data.base_url, key, data.model)
    provider = Provider(data.base_url, key)
    await host_client.reconfigure()
    name = await service.threads.to_thread(
        keep_key,
        host_client.config.home,
        data.name,
        provider,
        tried.model,
        host_client.config.default.providers,
    )
    await host_client.reconfigure()
    model = f"{name}:{tried.model}"
    return Configured(
        host_client.models.default or model, tuple(f"{name}:{each}" for each in tried.models)
    )


def _some_of(models: tuple[str, ...]) -> str:
    return f"it has {', '.join(models[:SOME]) or 'none'}"


ROUTES = (setup, servers, offered, choose, configure)
