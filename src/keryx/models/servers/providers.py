"""The providers that Keryx has heard of: address, key variable, wire format, deviations.

Plain data, loaded with the configuration. Setting a provider's variable is all there is to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from keryx.models.wire.quirks import Quirks

CHAT: Final = "chat"
FORMATS: Final = (CHAT, "responses", "anthropic", "gemini")
"""The wire formats: Chat Completions, Responses, Messages, generateContent."""

AZURE_PATH: Final = "/openai/deployments/{model}?api-version="
AZURE_VERSION: Final = "2024-10-21"


class Row(msgspec.Struct, frozen=True):
    """One provider."""

    base_url: str
    """Where it is; empty if each customer has an address of their own."""
    keys: tuple[str, ...] = ()
    """The variables that may hold the key, the usual one first. None: it runs on this machine."""
    format: str = CHAT
    quirks: Quirks = Quirks()
    hosts: tuple[str, ...] = ()
    """The ends of the host's name, if addresses differ."""
    address: str = ""
    """The variable that holds the address, if addresses differ."""


_LIMITED: Final = Quirks(token_limit="max_tokens")  # noqa: S106 (the name of a field)

ROWS: Final[Mapping[str, Row]] = {
    "openai": Row("https://api.openai.com/v1", ("OPENAI_API_KEY",), "responses"),
    "anthropic": Row("https://api.anthropic.com/v1", ("ANTHROPIC_API_KEY",), "anthropic"),
    "google": Row(
        "https://generativelanguage.googleapis.com/v1beta",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "gemini",
    ),
    "openrouter": Row(
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        quirks=Quirks(returned="reasoning_details", reports_cost=True),
    ),
    "groq": Row("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "mistral": Row(
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        quirks=Quirks(without=("stream_options",), token_limit="max_tokens"),  # noqa: S106 (a name)
    ),
    "deepseek": Row(
        "https://api.deepseek.com/v1",
        ("DEEPSEEK_API_KEY",),
        quirks=Quirks(
            returned="reasoning_content",
            needs_reasoning=True,
            token_limit="max_tokens",  # noqa: S106 (the name of a field)
            takes_schemas=False,
        ),
    ),
    "xai": Row("https://api.x.ai/v1", ("XAI_API_KEY",)),
    "together": Row("https://api.together.xyz/v1", ("TOGETHER_API_KEY",), quirks=_LIMITED),
    "fireworks": Row(
        "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",), quirks=_LIMITED
    ),
    "nous": Row("https://inference-api.nousresearch.com/v1", ("NOUS_API_KEY",), quirks=_LIMITED),
    "azure": Row(
        "",
        ("AZURE_OPENAI_API_KEY",),
        quirks=Quirks(key_header="api-key"),
        hosts=(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
        address="AZURE_OPENAI_ENDPOINT",
    ),
    "ollama": Row("http://127.0.0.1:11434/v1", quirks=_LIMITED),
    "lmstudio": Row("http://127.0.0.1:1234/v1", quirks=_LIMITED),
    "vllm": Row("http://127.0.0.1:8000/v1", quirks=_LIMITED),
    "llamacpp": Row(
        "http://127.0.0.1:8080/v1",
        quirks=Quirks(token_limit="max_tokens", names_parallel_calls=True),  # noqa: S106 (a name)
    ),
}

LOCAL_SERVERS: Final = {name: row.base_url for name, row in ROWS.items() if not row.keys}
"""The usual addresses of local model servers."""


def row_at(base_url: str) -> Row | None:
    """Return the row of the provider at that address; None for an unknown one.

    A provider may offer Chat Completions at more than one path of its host, with the same
    deviations. Another format has one path: elsewhere the host speaks another one.
    """
    host = urlsplit(base_url).hostname or ""
    server, path = _place(base_url)
    for row in ROWS.values():
        if row.hosts and host.endswith(row.hosts):
            return row
        if row.base_url and _place(row.base_url)[0] == server:
            return row if row.format == CHAT or _place(row.base_url)[1] == path else None
    return None


def key_header(base_url: str, usual: str = "Authorization") -> str:
    """Return the header for the key of the server at that address; `usual`: of its format."""
    row = row_at(base_url)
    return usual if row is None else row.quirks.key_header or usual


def _place(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2].lower(), parts.path.rstrip("/")


def azure_address(address: str, version: str | None) -> str:
    """Return the address of a deployment, which is named like the model."""
    return f"{address.rstrip('/')}{AZURE_PATH}{version or AZURE_VERSION}"
