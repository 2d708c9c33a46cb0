"""Model servers: which models a server has, and which servers run on this machine.

It only asks; the configuration is done elsewhere.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

import msgspec

from keryx.decoding import decode_json
from keryx.errors import ModelError
from keryx.models import failures
from keryx.models.http import Clients, endpoint
from keryx.models.requirements import check_address

LIST_TIMEOUT: Final = 10.0
LOCAL_TIMEOUT: Final = 0.5
"""A local server answers at once."""
MAX_MODELS: Final = 500
MAX_BODY: Final = 4 << 20

LOCAL_SERVERS: Final = {
    "ollama": "http://127.0.0.1:11434/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
}
"""The default addresses of local model servers."""

_OK: Final = 200
_NOT_CHAT: Final = re.compile(
    r"embed|whisper|tts|transcri|speech|audio|realtime|dall-e|image|diffusion|flux|sora"
    r"|moderation|rerank|guard|davinci|babbage|instruct-0914",
    re.IGNORECASE,
)
"""Names of models that are not for chat; a list says nothing about their purpose."""


class _ListedModel(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_ListedModel]


class FoundServer(msgspec.Struct, frozen=True):
    """A model server that runs on this machine."""

    name: str
    base_url: str
    models: tuple[str, ...]


async def models_of(
    clients: Clients, base_url: str, api_key: str | None, *, seconds: float = LIST_TIMEOUT
) -> tuple[str, ...]:
    """Return the models of a server. Raise `ModelError` if they cannot be read."""
    key = (api_key or "").strip()
    source = failures.source("the server", base_url, key, {})
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first exchange)

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        check_address(base_url)
    except ValueError as error:
        raise ModelError("not_configured", str(error), "correct the address") from error
    try:
        async with (
            asyncio.timeout(seconds),
            (await clients()).get(endpoint(base_url, "models"), headers=headers) as answer,
        ):
            body = await answer.content.read(MAX_BODY)
            if answer.status != _OK:
                headers = {name.lower(): value for name, value in answer.headers.items()}
                raise failures.refused(source, answer.status, headers, body, now=0.0)
    except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
        raise ModelError(
            "unreachable",
            f"{source.url} cannot be reached: {source.redact(str(error)) or type(error).__name__}",
            "check the address, and whether the server runs",
        ) from error
    try:
        listed = decode_json(body, _ModelList)
    except msgspec.DecodeError as error:
        raise failures.invalid_answer(
            source, "an answer that is not a list of models", body
        ) from error
    return tuple(model.id for model in listed.data[:MAX_MODELS])


def chat_models(models: tuple[str, ...]) -> tuple[str, ...]:
    """Return the models whose names look like chat models; all if none does."""
    return tuple(name for name in models if not _NOT_CHAT.search(name)) or models


async def find_local(clients: Clients) -> list[FoundServer]:
    """Return the model servers that run on this machine."""
    servers: list[FoundServer] = []
    for name, base_url in LOCAL_SERVERS.items():
        try:
            models = await models_of(clients, base_url, None, seconds=LOCAL_TIMEOUT)
        except ModelError:
            continue
        if models:
            servers.append(FoundServer(name, base_url, models))
    return servers
