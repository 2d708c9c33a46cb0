"""Signing in and out, with the printed link or the password."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Request, Response, post
from litestar.datastructures import Cookie
from litestar.params import JSONBody
from msgspec import Meta

from keryx.server.access.auth import COOKIE
from keryx.server.access.forwarded import Outside
from keryx.server.access.login_link import token_in
from keryx.server.access.logins import LASTS
from keryx.server.routes.params import TheCaller, TheOutside, TheService
from keryx.server.schemas import Secret

LARGEST_LOGIN = 10_000
"""Bytes of a request body; whoever sends it has not signed in yet."""


class Login(msgspec.Struct, frozen=True):
    """A token or a password. With a secret of its own in `browser`, a browser can sign in again.

    Named users send their `name` with the password.
    """

    token: Secret | None = None
    password: Secret | None = None
    name: Annotated[str, Meta(max_length=64)] | None = None
    browser: Annotated[str, Meta(min_length=32, max_length=1_000)] | None = None


@post("/api/login", status_code=204, request_max_body_size=LARGEST_LOGIN)
async def log_in(
    request: Request[Any, Any, Any],
    service: TheService,
    outside: TheOutside,
    data: JSONBody[Login],
) -> Response[None]:
    """Sign in with the printed link or its token, which work once, or with the password.

    If the answer gets lost, the token works again for a short time with the same `browser`.
    """
    secret = await service.access.log_in(
        outside.client,
        token=token_in(data.token),
        password=data.password,
        name=data.name,
        browser=data.browser,
        cookies=request.headers.get("cookie"),
    )
    return Response(None, status_code=204, cookies=[_cookie(outside, secret, LASTS)])


@post("/api/logout", status_code=204)
async def log_out(service: TheService, outside: TheOutside, caller: TheCaller) -> Response[None]:
    """End this login; its event streams end with it."""
    await service.access.log_out(caller)
    return Response(None, status_code=204, cookies=[_cookie(outside, "", 0)])


def _cookie(outside: Outside, value: str, age: int) -> Cookie:
    return Cookie(
        key=COOKIE,
        value=value,
        max_age=age,
        path=f"{outside.prefix}/",
        httponly=True,
        samesite="strict",
        secure=outside.is_secure,
    )


ROUTES = (log_in, log_out)
