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
