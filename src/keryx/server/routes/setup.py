"""The first steps: whether a model is configured, local model servers, and new providers."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.params import JSONBody
from msgspec import Meta

from keryx.app.local.local_models import TINY, LocalModel
from keryx.app.models import LOCAL, TOUR
from keryx.app.settings.fixed_settings import fixed_settings
from keryx.app.settings.settings_file import written_model
from keryx.config import OPENAI_URL, Provider, keep_key, keep_model
from keryx.config.editing import Change
from keryx.models.servers.discovery import FoundServer
from keryx.server.problems import conflict, unprocessable
from keryx.server.routes.params import TheService
from keryx.server.schemas import Secret, Word
from keryx.server.service import Service

SOME = 20
"""Models that an error names when the requested one does not exist."""
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
    """What the configured servers offer; `problems` names servers that did not answer, and why."""

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
    model = service.host_client.models.default or None
    return Setup(model is not None and model != TOUR, model)


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
    """Make a model of a configured server the default of new sessions."""
    host_client = service.host_client
    requested = host_client.models.default if host_client.models.is_requested else None
    for fixed in fixed_settings(host_client.config, requested):
        raise conflict(f"The default model is set by {fixed.by}", "change it where you start Keryx")
    if data.model == TINY and LOCAL not in host_client.config.default.providers:
        await _check_tiny(service)
    else:
        await _check_offered(service, data.model)
    await service.threads.to_thread(_keep_model, service, data.model)
    await host_client.reconfigure()
    return _now(service)


def _keep_model(service: Service, model: str) -> None:
    """Store the default model where it is now: in config.toml, or among what the page stores."""
    config = service.host_client.config
    path = written_model(config)
    if path is None:
        keep_model(config.settings_home, model)
    else:
        service.settings_file.change(config, (Change(path, model),))


async def _check_tiny(service: Service) -> None:
    local = await service.host_client.models.local.state(service.host_client.config)
    if local.state != "ready":
        problem = local.problem or "It is not on this machine yet"
        raise unprocessable(problem, local.hint or "download it first: POST /api/setup/local")


async def _check_offered(service: Service, name: str) -> None:
    """Raise `ProblemError` unless a configured server offers this model."""
    host_client = service.host_client
    provider_name, _, model_name = name.partition(":")
    provider = host_client.config.default.providers.get(provider_name)
    if provider is None:
        names = ", ".join(host_client.config.default.providers) or "none"
        raise unprocessable(
            f"There is no provider {provider_name!r}",
            f"write provider:name; configured providers: {names}",
        )
    models = await host_client.models.models_at(provider)
    if model_name not in models:
        raise unprocessable(f"{provider_name} has no model {model_name!r}", _some_of(models))


@get("/api/setup/local")
async def local_model(service: TheService) -> LocalModel:
    """The tiny model that runs on this machine: whether it is here, and how far its download is."""
    return await service.host_client.models.local.state(service.host_client.config)


@post("/api/setup/local", status_code=202)
async def pull_local_model(service: TheService) -> LocalModel:
    """Start to download the tiny model. A download that runs, or is done, is left as it is."""
    return await service.host_client.models.local.start_pull(service.host_client.config)


@post("/api/setup", status_code=200)
async def configure(service: TheService, data: JSONBody[NewProvider]) -> Configured:
    """Test a server and key with a request for one token; if a model answers, store both.

    Only the owner of the home can read them. The provider gets another name if a server with
    another address has this name already.
    """
    host_client = service.host_client
    key = (data.api_key or "").strip() or None
    provider = Provider(data.base_url, key)
    tested = await host_client.models.try_out(provider, data.model)
    await host_client.reconfigure()
    name = await service.threads.to_thread(
        keep_key,
        host_client.config.settings_home,
        data.name,
        provider,
        tested.model,
        host_client.config.default.providers,
    )
    await host_client.reconfigure()
    model = f"{name}:{tested.model}"
    return Configured(
        host_client.models.default or model, tuple(f"{name}:{other}" for other in tested.models)
    )


def _some_of(models: tuple[str, ...]) -> str:
    return f"it has {', '.join(models[:SOME]) or 'none'}"


ROUTES = (setup, servers, offered, choose, local_model, pull_local_model, configure)
