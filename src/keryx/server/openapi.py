"""Builds the OpenAPI document from the routes, and adds the answers that all routes share.

The event streams do not use the framework, so they are described here by hand.
"""

from __future__ import annotations

import http
from typing import Any, Final

import msgspec
from litestar.openapi import OpenAPIConfig

from keryx.events import LiveEvent, LoggedEvent, NestedCalls
from keryx.server import routing, schemas
from keryx.server.access.auth import COOKIE
from keryx.server.problems import MEDIA_TYPE, Problem
from keryx.server.routes import about, login
from keryx.server.routes.exchange.exports import ARCHIVE, ENCODERS, LINES
from keryx.server.routes.memory import memory_schemas
from keryx.server.schemas import ID_PATTERN

Document = dict[str, Any]

EVERYWHERE: Final = (400, 401, 403, 500, 503)
WITH_ID: Final = (404, 422)
UNSAFE: Final = (409, 413, 422)
MORE: Final = {
    "/api/login": (429,),
    "/api/sessions": (422,),
    "/api/memory": (422,),
    "/api/exports": (404, 422),
    "/api/usage/report": (422,),
    "/api/usage/report.csv": (422,),
    "/api/trust": (404,),
    "/api/trust/folder": (422,),
}
OPEN: Final = ("/api/health", "/api/login")
_SCHEMAS: Final = "#/components/schemas/"
_METHODS: Final = ("get", "post", "put", "patch", "delete")


def document(version: str) -> bytes:
    """Return the document as JSON. This is slow: call it in a thread."""
    config = OpenAPIConfig(
        title="Keryx", version=version, description=_ABOUT, use_handler_docstrings=True
    )
    app = routing.framework(config)
    result: Document = msgspec.json.decode(msgspec.json.encode(app.openapi_schema.to_schema()))
    result["paths"] = {
        path: operations for path, operations in result["paths"].items() if path.startswith("/api/")
    }
    result["paths"] |= _streams()
    for path, operations in result["paths"].items():
        for method in _METHODS:
            if method in operations:
                _complete(path, method, operations[method])
    _add_upload_body(result)
    _add_exports(result)
    components = result.setdefault("components", {})
    components["schemas"] = _schemas(components.get("schemas", {}))
    components["responses"] = {str(status): _answer(status) for status in _statuses()}
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "login": {"type": "apiKey", "in": "cookie", "name": COOKIE},
    }
    result["security"] = [{"token": []}, {"login": []}]
    result.pop("servers", None)
    return msgspec.json.encode(result)


_ABOUT: Final = (
    "Everything but /api/health and /api/login needs a token made with `keryx tokens make`, or the "
    "cookie of a login. Errors are problem documents (RFC 9457) with a kind and a hint. "
    "No GET changes anything."
)


def _statuses() -> list[int]:
    more = (status for statuses in MORE.values() for status in statuses)
    return sorted({*EVERYWHERE, *WITH_ID, *UNSAFE, *more})


def _complete(path: str, method: str, operation: Document) -> None:
    responses: Document = operation["responses"]
    for status in [status for status in responses if status >= "400"]:
        del responses[status]
    responses.get("204", {}).pop("content", None)
    statuses = {*EVERYWHERE, *MORE.get(path, ())}
    statuses |= {*WITH_ID} if "{" in path else set()
    statuses |= {*UNSAFE} if method != "get" else set()
    for status in sorted(statuses):
        responses[str(status)] = {"$ref": f"#/components/responses/{status}"}
    if path in OPEN:
        operation["security"] = []


def _answer(status: int) -> Document:
    content: Document = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": http.HTTPStatus(status).phrase, "content": content}


def _schemas(described: Document) -> Document:
    """Return msgspec's own schemas of our types: the framework loses bounds of nested types.

    Events and blobs of nested calls are read by clients too, though no route answers with them.
    """
    structs = [
        value
        for value in (
            *vars(schemas).values(),
            *vars(about).values(),
            *vars(login).values(),
            *vars(memory_schemas).values(),
            Problem,
        )
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
    ]
    (logged, live, *_), components = msgspec.json.schema_components(
        [LoggedEvent, LiveEvent, NestedCalls, *structs], ref_template=f"{_SCHEMAS}{{name}}"
    )
    session_event = {"anyOf": [{"$ref": f"{_SCHEMAS}{name}Event"} for name in ("Logged", "Live")]}
    unions = {"LoggedEvent": logged, "LiveEvent": live, "SessionEvent": session_event}
    return described | components | unions


def _add_upload_body(result: Document) -> None:
    body = {"schema": {"type": "string", "format": "binary"}}
    for path in ("/api/uploads", "/api/sessions/import"):
        result["paths"][path]["post"]["requestBody"] = {
            "required": True,
            "content": {"application/octet-stream": body},
        }


def _add_exports(result: Document) -> None:
    """Describe the types of exported files: the framework knows one type for each route."""
    text = {"schema": {"type": "string"}}
    single = (LINES, *(media_type for _, media_type, _ in ENCODERS.values()))
    for path, types in (
        ("/api/sessions/{session_id}/export", single),
        ("/api/exports", (LINES, ARCHIVE)),
    ):
        answer = result["paths"][path]["get"]["responses"]["200"]
        answer["content"] = dict.fromkeys(types, text)


def _streams() -> Document:
    session: Document = {
        "name": "session_id",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "pattern": ID_PATTERN},
    }
    return {
        "/api/sessions/{session_id}/events": {
            "get": _stream(
                "FollowSession",
                "What the session says: the facts after that one, what streams now, then whatever "
                "comes. `data` is a `SessionEvent`. `id` is the `seq` of a fact; other events pass "
                "by and have none. `deleted` is the last one of a session that was deleted.",
                [session],
            )
        },
        "/api/events": {
            "get": _stream(
                "FollowSessions",
                "Which sessions change: `session` with the session as the list shows it, and "
                "`deleted`. `id` is the position of the change.",
                [],
            )
        },
    }


def _stream(name: str, text: str, parameters: list[Document]) -> Document:
    number = {"type": "integer", "minimum": 0, "maximum": 2**53}
    return {
        "operationId": name,
        "summary": name,
        "description": text,
        "parameters": [
            *parameters,
            {"name": "after", "in": "query", "required": False, "schema": number},
            {"name": "Last-Event-ID", "in": "header", "required": False, "schema": number},
        ],
        "responses": {
            "200": {
                "description": "Server-sent events",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            }
        },
    }
