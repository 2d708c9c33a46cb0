"""The first steps: is a model configured, which servers run here, a key that a person pastes."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.params import JSONBody
from msgspec import Meta

from keryx.app.models import TOUR
from keryx.config import OPENAI_URL, Provider, keep_key
from keryx.models.servers import FoundServer
from keryx.server.problems import unprocessable
from keryx.server.routes.params import TheService
from keryx.server.shapes import Secret, Word

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


class Configured(msgspec.Struct, frozen=True):
    model: str
    models: tuple[str, ...]


@get("/api/setup")
async def setup(service: TheService) -> Setup:
    """Whether a model is configured."""
    found = service.front.models.default or None
    return Setup(found is not None and found != TOUR, found)


@get("/api/setup/servers")
async def servers(service: TheService) -> FoundServers:
    """Model servers that run on this machine."""
    return FoundServers(tuple(await service.front.models.on_this_machine()))


@post("/api/setup", status_code=200)
async def configure(service: TheService, data: JSONBody[NewProvider]) -> Configured:
    """Try a server with a key; if it answers, both are kept for the person's eyes only."""
    front = service.front
    offered = await front.models.at(data.base_url, data.api_key)
    if data.model is not None and data.model not in offered:
        raise unprocessable(
            f"the server has no model {data.model}", f"it has {', '.join(offered[:20]) or 'none'}"
        )
    chosen = data.model or (offered[0] if offered else None)
    if chosen is None:
        raise unprocessable("the server has no model", "load one into it, and try again")
    provider = Provider(data.base_url, (data.api_key or "").strip() or None)
    model = f"{data.name}:{chosen}"
    await service.threads.to_thread(keep_key, front.config.home, data.name, provider, model)
    await front.reconfigure()
    return Configured(model, tuple(f"{data.name}:{each}" for each in offered))


ROUTES = (setup, servers, configure)
