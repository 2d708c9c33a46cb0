"""The table of providers: a variable is all that one needs, and what is wrong is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from keryx.app.models import Models
from keryx.config import ConfigurationError, Provider, load
from keryx.errors import ModelError
from keryx.models.servers.providers import ROWS, row_at

pytestmark = pytest.mark.promise("model.3")

CLOUD = [(name, variable) for name, row in ROWS.items() for variable in row.keys]
ENDPOINT = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/"}


@pytest.mark.parametrize(("name", "variable"), CLOUD)
def test_setting_the_usual_variable_is_all_there_is_to_do(
    tmp_path: Path, name: str, variable: str
) -> None:
    env = {variable: "sk-0123456789", **(ENDPOINT if name == "azure" else {})}
    config = load(tmp_path, env)
    assert list(config.default.providers) == [name]
    provider = config.default.providers[name]
    assert (provider.api_key, provider.wire_format) == ("sk-0123456789", ROWS[name].format)
    assert row_at(provider.base_url) == ROWS[name]
    models = Models(config)
    models.check(f"{name}:some-model")
    assert models.find(f"{name}:some-model").name == f"{name}:some-model"


def test_an_address_of_its_own_makes_openai_any_compatible_server(tmp_path: Path) -> None:
    official = load(tmp_path, {"OPENAI_API_KEY": "k"}).default.providers["openai"]
    assert official.wire_format == "responses"
    other = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    assert load(tmp_path, other).default.providers["openai"].wire_format == "chat"


def test_azure_is_its_deployments(tmp_path: Path) -> None:
    env = {"AZURE_OPENAI_API_KEY": "k", **ENDPOINT, "OPENAI_API_VERSION": "2025-01-01"}
    provider = load(tmp_path, env).default.providers["azure"]
    assert provider.base_url == (
        "https://mine.openai.azure.com/openai/deployments/{model}?api-version=2025-01-01"
    )
    assert "azure" not in load(tmp_path, {"AZURE_OPENAI_API_KEY": "k"}).default.providers


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not row.keys])
def test_a_server_on_this_machine_is_used_by_its_name(tmp_path: Path, name: str) -> None:
    models = Models(load(tmp_path, {}))
    assert models.find(f"{name}:qwen3").name == f"{name}:qwen3"
    assert models.find(f"{name}:qwen3:8b").name == f"{name}:qwen3:8b"


def test_the_file_may_leave_out_what_the_table_knows(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[providers.anthropic]\napi_key_env = "MINE"\n[providers.google]\n'
        '[providers.proxy]\nbase_url = "https://proxy.example/v1"\nformat = "anthropic"\n'
    )
    providers = load(tmp_path, {"MINE": "k-0123456789", "GOOGLE_API_KEY": "g"}).default.providers
    assert providers["anthropic"].api_key == "k-0123456789"
    assert providers["anthropic"].base_url == ROWS["anthropic"].base_url
    assert providers["google"].api_key == "g"
    assert providers["proxy"].wire_format == "anthropic"
    without = load(tmp_path, {}).default.providers
    assert without["google"].missing_key == "GEMINI_API_KEY"


@pytest.mark.parametrize(
    ("model", "sees"),
    [
        *[("o3", True), ("o3-2025-04-16", True), ("o3-mini", False), ("o4-mini", True)],
        *[("openai/gpt-4.1", True), ("openai/o3", True), ("openai/o3-mini", False)],
        *[("gemma-4-27b-it", True), ("mistral-medium-2508", True), ("codestral-latest", False)],
    ],
)
def test_images_are_sent_to_models_that_read_them(model: str, *, sees: bool) -> None:
    assert Provider("https://example.com/v1").sees(model) == sees


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[providers.x]\nbase_url = "http://h"\nformat = "antropic"\n', "did you mean 'anthropic'"),
        ('[providers.x]\nbase_url = "http://h"\nformat = "zzz"\n', "there are: chat, responses"),
        ('[providers.x]\napi_key = "k"\n', r"\[providers.x\] has no address: write base_url"),
        ('[providers.azure]\napi_key = "k"\n', "or set AZURE_OPENAI_ENDPOINT"),
        ('[providers.x]\nbase_url = "http://h"\nformt = "chat"\n', 'did you mean "format"'),
    ],
)
def test_what_is_wrong_in_the_file_is_said(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        load(tmp_path, {})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("anthropic:claude", "set ANTHROPIC_API_KEY"),
        ("google:gemini", "set GEMINI_API_KEY"),
        ("azure:mine", "set AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY"),
    ],
)
def test_a_provider_without_its_variable_says_which(tmp_path: Path, name: str, hint: str) -> None:
    for env in ({}, {"OPENAI_API_KEY": "k"}):
        with pytest.raises(ModelError) as caught:
            Models(load(tmp_path, env)).find(name)
        assert caught.value.kind == "not_configured"
        assert hint in caught.value.hint


def test_an_adapter_is_imported_when_its_first_model_is_created() -> None:
    code = """
import sys
from keryx.app.models import Models
from keryx.config import load
models = Models(load(sys.argv[1], {"ANTHROPIC_API_KEY": "k"}))
adapters = ["keryx.models." + name for name in ("openai", "responses", "anthropic", "gemini")]
before = [name for name in adapters if name in sys.modules]
models.find("anthropic:claude")
print(before, [name for name in adapters if name in sys.modules], "aiohttp" in sys.modules)
"""
    command = [sys.executable, "-c", code, "/nonexistent"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.strip() == "[] ['keryx.models.anthropic'] False"


def test_every_row_is_plain_data_that_an_adapter_takes() -> None:
    rows = msgspec.json.decode(msgspec.json.encode(ROWS), type=dict[str, type(ROWS["openai"])])
    assert rows == ROWS
    assert {
        *("openai", "anthropic", "google", "openrouter", "groq", "mistral", "deepseek", "xai"),
        *("together", "fireworks", "nous", "azure", "ollama", "lmstudio", "llamacpp", "vllm"),
    } == set(ROWS)


@pytest.mark.parametrize("name", ["nobody:knows", "just-a-name", "openai:"])
def test_a_name_that_no_provider_has_is_a_model_that_does_not_exist(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(ModelError) as caught:
        Models(load(tmp_path, {"OPENAI_API_KEY": "k"})).find(name)
    assert caught.value.kind == "model_not_found"
    assert "configured providers: openai" in caught.value.hint
