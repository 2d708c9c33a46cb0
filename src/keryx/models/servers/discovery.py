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
from keryx.models.http import Clients, endpoint, key_headers, read_body
from keryx.models.requirements import check_address
from keryx.models.servers.providers import CHAT, LOCAL_SERVERS, key_header

LIST_TIMEOUT: Final = 10.0
LOCAL_TIMEOUT: Final = 0.5
"""A local server answers at once."""
MAX_MODELS: Final = 500
MAX_BODY: Final = 4 << 20

_OK: Final = 200
_NOT_CHAT: Final = re.compile(
    r"embed|whisper|tts|transcri|speech|audio|realtime|dall-e|image|diffusion|flux|sora"
    r"|moderation|rerank|guard|davinci|babbage|instruct-0914",
    re.IGNORECASE,
)
"""Names of models that are not for chat; a list says nothing about their purpose."""


_OTHER_TYPES: Final = ("embedding", "image", "moderation", "rerank", "audio", "transcribe", "video")
"""The types of models that are not for chat, where a list says it, as that of Together does."""


class _ListedModel(msgspec.Struct):
    id: str = ""
    name: str = ""
    type: str = ""
    methods: list[str] | None = msgspec.field(name="supportedGenerationMethods", default=None)


class _ModelList(msgspec.Struct):
    """The list of OpenAI's and Anthropic's API."""

    data: list[_ListedModel]

    @property
    def names(self) -> list[str]:
        return [model.id for model in self.data if model.type not in _OTHER_TYPES]


class _GeminiList(msgspec.Struct):
    """The list of Google's API: it says what each model is for."""

    models: list[_ListedModel]

    @property
    def names(self) -> list[str]:
        return [
            model.name.removeprefix("models/")
            for model in self.models
            if model.methods is None or "generateContent" in model.methods
        ]


class _ListFormat(msgspec.Struct, frozen=True):
    path: str
    key_header: str
    kind: type[_ModelList | _GeminiList]
    headers: dict[str, str] = {}


_FORMATS: Final = {
    "anthropic": _ListFormat(
        "models?limit=1000", "x-api-key", _ModelList, {"anthropic-version": "2023-06-01"}
    ),
    "gemini": _ListFormat("models?pageSize=1000", "x-goog-api-key", _GeminiList),
}
_OPENAI_LIST: Final = _ListFormat("models", "Authorization", _ModelList)
"""The list of all other formats."""


class FoundServer(msgspec.Struct, frozen=True):
    """A model server that runs on this machine, and its chat models."""

    name: str
    base_url: str
    models: tuple[str, ...]


async def models_of(
    clients: Clients,
    base_url: str,
    api_key: str | None,
    *,
    wire_format: str = CHAT,
    seconds: float = LIST_TIMEOUT,
) -> tuple[str, ...]:
    """Return the models of a server. Raise `ModelError` if they cannot be read."""
    key = (api_key or "").strip()
    source = failures.source("the server", base_url, key, {})
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first exchange)

    listing = _FORMATS.get(wire_format, _OPENAI_LIST)
    headers = {**listing.headers, **key_headers(key_header(base_url, listing.key_header), key)}
    if "{model}" in base_url:
        raise ModelError(
            "not_configured",
            f"{source.url} has no list of its models",
            "write the name of a deployment as the model",
        )
    try:
        check_address(base_url)
    except ValueError as error:
        raise ModelError("not_configured", str(error), "correct the address") from error
    try:
        async with (
            asyncio.timeout(seconds),
            (await clients()).get(
                endpoint(base_url, listing.path),
                headers=headers,
                # The key must not be sent to any other address.
                allow_redirects=False,
            ) as answer,
        ):
            body = await read_body(answer, MAX_BODY)
            if answer.status != _OK:
                headers = {name.lower(): value for name, value in answer.headers.items()}
                raise failures.refused(source, answer.status, headers, body, now=0.0)
    except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
        raise ModelError(
            "unreachable",
            f"{source.url} cannot be reached: {source.redact(str(error)) or type(error).__name__}",
            "check the address, and whether the server runs",
        ) from error
    return _names(body, listing, source)


def _names(body: bytes, listing: _ListFormat, source: failures.Source) -> tuple[str, ...]:
    if body.lstrip().startswith(b"["):
        body = b'{"data":%b}' % body  # Together's list has nothing around it
    try:
        listed = decode_json(body, listing.kind)
    except msgspec.DecodeError as error:
        raise failures.invalid_answer(
            source, "an answer that is not a list of models", body
        ) from error
    return tuple(listed.names[:MAX_MODELS])


def chat_models(models: tuple[str, ...]) -> tuple[str, ...]:
    """Return the models whose names look like chat models; all if none does."""
    return tuple(name for name in models if not _NOT_CHAT.search(name)) or models


async def find_local(clients: Clients) -> list[FoundServer]:
    """Return the model servers that run on this machine. All usual ports are asked at once."""

    async def ask(name: str, base_url: str) -> FoundServer | None:
        try:
            models = chat_models(await models_of(clients, base_url, None, seconds=LOCAL_TIMEOUT))
        except ModelError:
            return None
        return FoundServer(name, base_url, models) if models else None

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(ask(name, base_url), name=f"models of {name}")
            for name, base_url in LOCAL_SERVERS.items()
        ]
    return [server for task in tasks if (server := task.result()) is not None]
