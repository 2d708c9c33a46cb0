"""A model that is asked once and answers with one body: silence, keys, and what is shown."""

from __future__ import annotations

import asyncio

import pytest

from keryx.aio.clock import FakeClock
from keryx.errors import ModelError
from keryx.models.http import model_clients
from keryx.models.openai import OpenAIEndpoint
from keryx.models.retry import ATTEMPTS
from tests.tools.hanging_tools import SilentServer

pytestmark = pytest.mark.promise("kit.3")

PATIENCE = 60.0


async def test_a_server_that_never_answers_is_given_up_after_some_attempts() -> None:
    clock, clients, server = FakeClock(), model_clients(), SilentServer()
    await server.open()
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)
        server.requested.clear()

    endpoint = OpenAIEndpoint(
        name="here:image-1",
        model="image-1",
        base_url=f"http://127.0.0.1:{server.port}/v1",
        api_key=None,
        clients=clients.get,
        clock=clock,
        sleep=sleep,
    )

    async def pass_time() -> None:
        while True:
            await server.requested.wait()
            clock.advance(300.0)
            await asyncio.sleep(0)

    try:
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            time = group.create_task(pass_time())
            with pytest.raises(ModelError, match=r"sent nothing for 300 s .* \(tried 5 times\)"):
                await endpoint.post("images/generations", b"{}", content_type="a/b", limit=10)
            time.cancel()
    finally:
        await clients.close()
        await server.close()
    assert len(delays) == ATTEMPTS - 1


@pytest.mark.parametrize(
    ("key", "missing", "problem"),
    [
        ("quoted\n\u201ckey\u201d", None, "characters that are not allowed"),
        (None, "KEY", "set KEY"),
    ],
)
async def test_a_key_that_cannot_be_sent_is_an_error_before_any_request(
    key: str | None, missing: str | None, problem: str
) -> None:
    clients = model_clients()
    endpoint = OpenAIEndpoint(
        name="here:image-1",
        model="image-1",
        base_url="http://127.0.0.1:9/v1",
        api_key=key,
        missing_key=missing,
        clients=clients.get,
    )
    with pytest.raises(ModelError, match=problem):
        await endpoint.post("images/generations", b"{}", content_type="a/b", limit=10)
    await clients.close()


@pytest.mark.parametrize(
    ("url", "host", "address"),
    [
        ("https://api.example.com/v1", "api.example.com:443", "https://api.example.com/v1"),
        ("http://[::1]:8080/v1?key=secret", "[::1]:8080", "http://[::1]:8080/v1"),
        ("http://me:secret@intranet/v1", "intranet:80", "http://intranet/v1"),
    ],
)
def test_host_and_address_have_no_secrets(url: str, host: str, address: str) -> None:
    endpoint = OpenAIEndpoint(
        name="here:image-1",
        model="image-1",
        base_url=url,
        api_key=None,
        clients=model_clients().get,
    )
    assert (endpoint.host, endpoint.address) == (host, address)
    assert "secret" not in repr(endpoint)
