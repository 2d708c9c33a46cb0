"""The routes of the API in the framework: their dependencies and their error answers."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from litestar import Litestar, Request, Response
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.routes import HTTPRoute
from litestar.types import ControllerRouterHandler

from keryx.decoding import prepare
from keryx.server import problems
from keryx.server.access.auth import Caller
from keryx.server.access.forwarded import Outside
from keryx.server.problems import ProblemError
from keryx.server.routes import (
    about,
    answers,
    calls,
    files,
    history,
    login,
    messages,
    sessions,
    setup,
)
from keryx.server.routes.access import users
from keryx.server.routes.exchange import exports, imports
from keryx.server.routes.memory import memories
from keryx.server.routes.settings import access_tokens, configuration, extensions, providers
from keryx.server.routes.sharing import shares
from keryx.server.routes.trust import folders
from keryx.server.service import Service
from keryx.server.users.user_hosts import UserHosts

ROUTES: Final[tuple[ControllerRouterHandler, ...]] = (
    *about.ROUTES,
    *login.ROUTES,
    *sessions.ROUTES,
    *exports.ROUTES,
    *imports.ROUTES,
    *shares.ROUTES,
    *messages.ROUTES,
    *calls.ROUTES,
    *answers.ROUTES,
    *history.ROUTES,
    *files.ROUTES,
    *setup.ROUTES,
    *folders.ROUTES,
    *memories.ROUTES,
    *users.ROUTES,
    *configuration.ROUTES,
    *providers.ROUTES,
    *extensions.ROUTES,
    *access_tokens.ROUTES,
)
CALLER: Final = "keryx.caller"
"""The key of the caller in the request's scope."""
SERVICE: Final = "keryx.service"
"""The key of the caller's own service in the request's scope."""
USER_HOSTS: Final = "keryx.user_hosts"
OUTSIDE: Final = "keryx.outside"
"""The key of the request's public address in its scope."""
LARGEST_BODY: Final = 8 * 1024 * 1024
WRONG_METHOD: Final = 405


def framework(openapi: OpenAPIConfig | None = None) -> Litestar:
    """Return the framework with all routes."""
    app = Litestar(
        ROUTES,
        dependencies={
            "service": Provide(_service, sync_to_thread=False),
            "user_hosts": Provide(_user_hosts, sync_to_thread=False),
            "caller": Provide(_caller, sync_to_thread=False),
            "outside": Provide(_outside, sync_to_thread=False),
        },
        exception_handlers={HTTPException: _from_framework, Exception: _from_us},
        openapi_config=openapi,
        logging_config=None,
        request_max_body_size=LARGEST_BODY,
    )
    for route in app.routes:
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
            prepare(handler.signature_model)  # the framework converts to it with msgspec
    return app


def _service(request: Request[Any, Any, Any]) -> Service:
    return cast("dict[str, Service]", request.scope)[SERVICE]


def _user_hosts(request: Request[Any, Any, Any]) -> UserHosts:
    return cast("dict[str, UserHosts]", request.scope)[USER_HOSTS]


def _outside(request: Request[Any, Any, Any]) -> Outside:
    outside: Outside = cast("dict[str, Any]", request.scope)[OUTSIDE]
    return outside


def _caller(request: Request[Any, Any, Any]) -> Caller:
    return cast("dict[str, Caller]", request.scope)[CALLER]


# The framework raises these when it cannot read a body; our own code never does.
_UNREADABLE: Final = (UnicodeDecodeError, RecursionError)


def _from_us(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    del request
    if isinstance(error, _UNREADABLE):
        detail = "The request body is not UTF-8 text, or it is nested too deeply"
        hint = "send JSON as /api/openapi.json describes it"
        return _answer(ProblemError(400, "bad_request", detail, hint))
    return _answer(problems.problem_of(error))


def _from_framework(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    if error.status_code >= problems.INTERNAL:
        return _answer(problems.unexpected(error))
    kind, hint = _KINDS.get(error.status_code, ("bad_request", "see /api/openapi.json"))
    headers = {"allow": _allowed(request)} if error.status_code == WRONG_METHOD else {}
    return _answer(ProblemError(error.status_code, kind, _detail(error), hint, headers=headers))


_KINDS: Final = {
    404: ("not_found", "/api/openapi.json lists all addresses"),
    WRONG_METHOD: ("wrong_method", "/api/openapi.json lists the methods of each address"),
    413: ("too_large", "send less at a time"),
}


def _allowed(request: Request[Any, Any, Any]) -> str:
    """Return the methods that this path has."""
    path = request.scope["path"].rstrip("/")
    methods = (
        route.methods
        for route in request.app.routes
        if isinstance(route, HTTPRoute)
        and re.fullmatch(re.sub(r"\{[^/]*\}", "[^/]+", route.path_format), path)
    )
    return ", ".join(sorted(set[str]().union(*methods)))


def _detail(error: HTTPException) -> str:
    """Return what is wrong, without quoting what was sent."""
    if error.status_code != problems.BAD_REQUEST:
        return error.detail or "the request cannot be served"
    extra = error.extra if isinstance(error.extra, list) else []
    faults = [
        ": ".join(str(fault[word]) for word in ("key", "message") if word in fault)
        for fault in cast("list[dict[str, object]]", extra)
    ]
    return "; ".join(faults) or "the request does not match /api/openapi.json"


def _answer(error: ProblemError) -> Response[bytes]:
    return Response(
        problems.encode(error),
        status_code=error.problem.status,
        media_type=problems.MEDIA_TYPE,
        headers=dict(error.headers),
    )
