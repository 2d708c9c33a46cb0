"""Model servers: which models one has, and which servers run on this machine.

Only asks; what a person makes of it is configured elsewhere.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

import msgspec

from keryx.errors import ModelError
from keryx.models import failures
from keryx.models.http import Clients, endpoint
from keryx.models.requirements import check_address

PATIENCE: Final = 10.0
LOCAL_PATIENCE: Final = 0.5
"""A server on this machine answers at once, or is none."""
MOST: Final = 500
LARGEST: Final = 4 << 20

LOCAL: Final = {
    "ollama": "http://127.0.0.1:11434/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
}
"""Where servers that people run for themselves listen, unless they are told otherwise."""

_OK: Final = 200
_NO_TALK: Final = re.compile(
    r"embed|whisper|tts|transcri|speech|audio|realtime|dall-e|image|diffusion|flux|sora"
    r"|moderation|rerank|guard|davinci|babbage|instruct-0914",
    re.IGNORECASE,
)
"""A list of models says nothing about what each is for, but its name does."""


class _Listed(msgspec.Struct):
    id: str


class _List(msgspec.Struct):
    data: list[_Listed]


class FoundServer(msgspec.Struct, frozen=True):
    """A model server that runs on this machine."""

    name: str
    base_url: str
    models: tuple[str, ...]


async def models_of(
    clients: Clients, base_url: str, api_key: str | None, *, patience: float = PATIENCE
) -> tuple[str, ...]:
    """The models of a server; `ModelError` says why there are none to be had."""
    key = (api_key or "").strip()
    source = failures.source("the server", base_url, key, {})
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first exchange)

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        check_address(base_url)
    except ValueError as error:
        raise ModelError("not_configured", str(error), "mend the address") from error
    try:
        async with (
            asyncio.timeout(patience),
            (await clients()).get(endpoint(base_url, "models"), headers=headers) as answer,
        ):
            body = await answer.content.read(LARGEST)
            if answer.status != _OK:
                headers = {name.lower(): value for name, value in answer.headers.items()}
                raise failures.refused(source, answer.status, headers, body, now=0.0)
    except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
        raise ModelError(
            "unreachable",
            f"{source.url} cannot be reached: {source.shown(str(error)) or type(error).__name__}",
            "look at the address, and whether the server runs",
        ) from error
    try:
        listed = msgspec.json.decode(body, type=_List)
    except msgspec.DecodeError as error:
        raise failures.nonsense(source, "no list of models", body) from error
    return tuple(each.id for each in listed.data[:MOST])


def talking(models: tuple[str, ...]) -> tuple[str, ...]:
    """Those whose name does not say that they do something else than talking; else all."""
    return tuple(name for name in models if not _NO_TALK.search(name)) or models


async def find_local(clients: Clients) -> list[FoundServer]:
    """The model servers that run on this machine."""
    found: list[FoundServer] = []
    for name, base_url in LOCAL.items():
        try:
            models = await models_of(clients, base_url, None, patience=LOCAL_PATIENCE)
        except ModelError:
            continue
        if models:
            found.append(FoundServer(name, base_url, models))
    return found
