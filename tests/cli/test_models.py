"""`keryx models`: all providers are asked at once, and each that fails is named."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from keryx.app.models.listing import list_models
from keryx.config import Provider
from keryx.models.embedded.model_file import FOLDER, SMOLLM2
from keryx.models.http import model_clients
from keryx.models.servers.connection_test import try_out
from keryx.models.servers.discovery import MAX_MODELS
from keryx.models.servers.providers import key_header
from keryx.testing.modelserver import ModelServer
from tests.app.hosts import PATIENCE, keryx, keryx_beside

pytestmark = pytest.mark.promise("model.3")


async def test_all_providers_are_asked_and_embedding_models_are_left_out(tmp_path: Path) -> None:
    names = ("gpt-6", "text-embedding-3", "claude-x")
    async with (
        asyncio.timeout(2 * PATIENCE),
        ModelServer([], key="sk-right-0123", models=names) as server,
    ):
        text = ""
        for api in server.apis:
            text += f'[providers.{api}]\nbase_url = "{server.url_of(api)}"\nformat = "{api}"\n'
            text += 'api_key = "sk-right-0123"\n'
        text += '[providers.wrong]\napi_key = "sk-wrong-0123"\n'
        text += f'base_url = "{server.url}"\n[providers.gone]\nbase_url = "http://127.0.0.1:9/v1"\n'
        text += f'[providers.unset]\nbase_url = "{server.url}"\napi_key_env = "NOT_SET"\n'
        (tmp_path / "config.toml").write_text(text)
        code, out, err = await keryx_beside(tmp_path, "models", "list")
        _, as_json, _ = await keryx_beside(tmp_path, "models", "list", "--json")
    listed = [line for line in out.splitlines() if line.partition(":")[0] in server.apis]
    assert listed == [f"{api}:{name}" for api in server.apis for name in ("gpt-6", "claude-x")]
    assert code == 0
    problems = err.splitlines()
    assert [line.split(": ")[1] for line in problems] == ["gone", "unset", "wrong"]
    assert "check the address, and whether the server runs" in problems[0]
    assert "set NOT_SET" in problems[1]
    assert "check the key" in problems[2]
    assert "sk-wrong" not in err
    assert set(listed) <= set(json.loads(as_json)["models"])


async def test_a_server_that_never_answers_is_given_up_and_the_others_are_listed() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    clients = model_clients()
    listener = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with asyncio.timeout(PATIENCE), listener, ModelServer([], models=("good",)) as server:
        port = listener.sockets[0].getsockname()[1]
        hangs = Provider(f"http://127.0.0.1:{port}/v1")
        providers = {"hangs": hangs, "works": Provider(server.url), "also": hangs}
        models, problems = await list_models(clients.get, providers, seconds=0.5)
        await clients.close()
    assert models == ("works:good",)
    assert [problem.partition(":")[0] for problem in problems] == ["also", "hangs"]


@pytest.mark.parametrize("api", ["chat", "anthropic", "gemini"])
async def test_a_list_that_comes_in_many_parts_is_read_whole(api: str) -> None:
    names = [f"vendor/a-model-of-many-{number:05}" for number in range(10_000)]
    clients = model_clients()
    async with asyncio.timeout(PATIENCE), ModelServer([], models=names) as server:
        provider = Provider(server.url_of(api), format=api)
        models, problems = await list_models(clients.get, {"large": provider})
    await clients.close()
    assert problems == ()
    assert models == tuple(f"large:{name}" for name in names[:MAX_MODELS])


async def serve_once(answer: bytes) -> tuple[asyncio.Server, str, list[bytes]]:
    """A server that answers every request with these bytes, and what it was asked."""
    asked: list[bytes] = []

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", asked


async def test_a_list_without_anything_around_it_is_read() -> None:
    body = (
        b'[{"id":"meta/chat","type":"chat"},{"id":"meta/words","type":"language"},'
        b'{"id":"meta/vectors","type":"embedding"},{"id":"meta/safe","type":"moderation"}]'
    )
    server, url, _ = await serve_once(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    clients = model_clients()
    async with asyncio.timeout(PATIENCE), server:
        listed = await list_models(clients.get, {"together": Provider(url)})
    await clients.close()
    assert listed == (("together:meta/chat", "together:meta/words"), ())


async def test_a_deployment_is_tested_at_its_own_address() -> None:
    server, url, asked = await serve_once(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    )
    clients = model_clients()
    async with asyncio.timeout(PATIENCE), server:
        tried = await try_out(clients.get, f"{url}/deployments/{{model}}?v=1", "k", "mine")
    await clients.close()
    assert tried.model == "mine"
    assert asked[0].startswith(b"POST /v1/deployments/mine/chat/completions?v=1 ")
    assert key_header("https://mine.openai.azure.com/openai/deployments/{model}") == "api-key"
    assert key_header("https://api.openai.com/v1") == "Authorization"


@pytest.mark.parametrize("api", ["chat", "anthropic", "gemini"])
async def test_a_key_does_not_follow_a_redirect(api: str) -> None:
    target, target_url, asked = await serve_once(b"HTTP/1.1 204 No Content\r\n\r\n")
    source, url, _ = await serve_once(
        b"HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: %b\r\n\r\n"
        % target_url.encode()
    )
    clients = model_clients()
    async with asyncio.timeout(PATIENCE), source, target:
        provider = Provider(url, "sk-secret-0123", format=api)
        models, (problem,) = await list_models(clients.get, {"moved": provider})
    await clients.close()
    assert models == ()
    assert "302" in problem
    assert asked == []


def test_with_nothing_configured_it_says_what_to_do(tmp_path: Path) -> None:
    ended = keryx(tmp_path, "models", "providers")
    assert ended.returncode == 0
    assert "anthropic   set ANTHROPIC_API_KEY" in ended.stdout
    assert "ollama      runs on this machine" in ended.stdout
    rows = json.loads(keryx(tmp_path, "models", "providers", "--json").stdout)
    assert {"name", "address", "variable", "format"} == set(rows[0])


def test_a_model_that_was_pulled_is_listed(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / SMOLLM2.file_name).touch()
    assert "local:smollm2" in keryx(tmp_path, "models", "list").stdout.splitlines()
