"""The OpenAPI document against the server: no server error, and no answer that it does not tell."""

from __future__ import annotations

import importlib
import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from litestar.routes import HTTPRoute

from keryx.aio.loops import LoopThread
from keryx.server import routing
from tests.server.served_host import PATIENCE, ServedHost, served_host

pytestmark = pytest.mark.promise("server.5")


EXAMPLES = 40
KNOWN = "s-known"
# Loaded by name: their types are only known in part.
RULES: Any = importlib.import_module("schemathesis.specs.openapi.checks")
NO_SERVER_ERROR: Any = importlib.import_module("schemathesis.checks").not_a_server_error
CHECKS: list[Any] = [
    RULES.status_code_conformance,
    RULES.content_type_conformance,
    RULES.response_schema_conformance,
]
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


STREAMS = {("GET", "/api/events"), ("GET", "/api/sessions/{session_id}/events")}
NOT_TRIED = {("GET", "/api/setup"), ("POST", "/api/setup")}


def routes_of_the_server() -> set[tuple[str, str]]:
    return {
        (method, re.sub(r":\w+}", "}", route.path_format))
        for route in routing.framework().routes
        if isinstance(route, HTTPRoute)
        for method in route.methods - {"OPTIONS"}
    }


async def enter(stack: AsyncExitStack, path: Path) -> ServedHost:
    return await stack.enter_async_context(served_host(path))


@pytest.fixture
def here(tmp_path: Path) -> Iterator[ServedHost]:
    """A server on a loop of its own: what asks it here blocks."""
    with LoopThread() as loop:
        stack = AsyncExitStack()
        try:
            yield loop.call(enter, stack, tmp_path)
        finally:
            loop.call(stack.aclose)


def described(here: ServedHost) -> Any:
    headers = {"Authorization": f"Bearer {here.token}"}
    return schemathesis.openapi.from_url(
        f"{here.client.url}/api/openapi.json", headers=headers, timeout=PATIENCE
    )


def operations(here: ServedHost) -> Iterator[Any]:
    for result in described(here).get_all_operations():
        operation = result.ok()
        # Streams do not end by themselves, and a setup would ask whatever address is made up.
        route = (operation.method.upper(), operation.path)
        if route not in STREAMS | NOT_TRIED:
            yield operation


def ask_often(here: ServedHost, operation: Any) -> None:
    """Asks with what fits the document, of sessions that are there and of those that are not."""
    headers = {"Authorization": f"Bearer {here.token}"}
    checks = [NO_SERVER_ERROR, *CHECKS]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=SLOW,
    )
    @given(case=operation.as_strategy(), use_known=st.booleans())
    def ask(case: Any, *, use_known: bool) -> None:
        if use_known and "session_id" in case.path_parameters:
            case.path_parameters["session_id"] = KNOWN
        response = case.call(headers=headers, timeout=PATIENCE)
        case.validate_response(response, checks=checks)

    ask()


def test_every_answer_is_one_that_the_document_tells(here: ServedHost) -> None:
    all_operations = list(operations(here))
    assert len(all_operations) == len(routes_of_the_server()) - len(NOT_TRIED)
    for operation in all_operations:
        open_known(here)
        ask_often(here, operation)


def open_known(here: ServedHost) -> None:
    headers = {"Authorization": f"Bearer {here.token}", "Content-Type": "application/json"}
    body = json.dumps({"session_id": KNOWN}).encode()
    request = urllib.request.Request(f"{here.client.url}/api/sessions", body, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert answer.status == 201


def test_the_document_tells_all_routes_and_no_other(here: ServedHost) -> None:
    raw = described(here).raw_schema
    routes = {
        (method.upper(), path)
        for path, operations in raw["paths"].items()
        for method in operations
        if method in ("get", "post", "put", "patch", "delete")
    }
    assert routes == routes_of_the_server() | STREAMS
    text = json.dumps(raw)
    assert "urn:keryx" not in text
    for path, operations in raw["paths"].items():
        for operation in operations.values():
            assert {"400", "401", "403", "500"} <= operation["responses"].keys(), path
            assert operation["description"], path
