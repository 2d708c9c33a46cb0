"""Tokens with which programs sign in: created, listed and revoked. A token is shown once."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.params import JSONBody, PathParameter

from keryx.server.access.tokens import Tokens
from keryx.server.problems import not_found
from keryx.server.routes.params import TheService
from keryx.server.schemas import Word
from keryx.server.service import Service

Name = Annotated[str, PathParameter(min_length=1, max_length=200, description="A token.")]


class TokenEntry(msgspec.Struct, frozen=True):
    """A token without its secret. `created` and `used` are days; no `used`: never."""

    name: str
    created: str
    used: str | None


class TokenEntries(msgspec.Struct, frozen=True):
    tokens: tuple[TokenEntry, ...]


class NewToken(msgspec.Struct, frozen=True):
    """`name` says what the token is for."""

    name: Word


class MadeToken(msgspec.Struct, frozen=True):
    """The token itself. It is not stored, and cannot be shown again."""

    name: str
    token: str


@get("/api/settings/tokens")
async def list_tokens(service: TheService) -> TokenEntries:
    """The tokens, without their secrets."""
    tokens = await service.threads.to_thread(_tokens(service).all)
    return TokenEntries(tuple(TokenEntry(token.name, token.made, token.used) for token in tokens))


@post("/api/settings/tokens", status_code=201)
async def make_token(service: TheService, data: JSONBody[NewToken]) -> MadeToken:
    """Create a token and return it, this once."""
    return MadeToken(data.name, await service.threads.to_thread(_tokens(service).make, data.name))


@delete("/api/settings/tokens/{name:str}", status_code=204)
async def revoke_token(service: TheService, name: Name) -> None:
    """Revoke a token: it no longer signs in."""
    if not await service.threads.to_thread(_tokens(service).revoke, name):
        raise not_found(f"There is no token {name!r}", "GET /api/settings/tokens lists all")
    await service.access.reload()


def _tokens(service: Service) -> Tokens:
    return Tokens(service.host_client.config.home)


ROUTES = (list_tokens, make_token, revoke_token)
