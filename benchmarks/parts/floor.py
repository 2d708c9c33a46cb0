"""The floor: bare exchanges with aiohttp and msgspec, with no agent around them."""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
import msgspec


class _Function(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class _Call(msgspec.Struct):
    id: str = ""
    function: _Function = msgspec.field(default_factory=_Function)


class _Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_Call] = []


class _Choice(msgspec.Struct):
    delta: _Delta


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []


decode_chunk = msgspec.json.Decoder(_Chunk).decode
_HEADERS = {"Content-Type": "application/json"}

USER = b'{"role":"user","content":"hi"}'


def new_client() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))


class Floor:
    """Asks one model, and passes on the text as it arrives."""

    def __init__(self, client: aiohttp.ClientSession, url: str, model: str) -> None:
        self._client = client
        self._url = f"{url}/chat/completions"
        self._begin = b'{"model":"%b","stream":true,"messages":[' % model.encode()

    async def exchange(
        self, history: list[bytes], tools: bytes = b"", on_text: Callable[[str], object] = len
    ) -> tuple[str, str]:
        """Send one request; return the text of the reply, and the id of the call in it."""
        body = self._begin + b",".join(history) + b"]"
        body += b',"tools":%b}' % tools if tools else b"}"
        text, call = "", ""
        async with self._client.post(self._url, data=body, headers=_HEADERS) as response:
            assert response.status == 200, await response.text()
            pending = b""
            async for data in response.content.iter_any():
                *lines, pending = (pending + data).split(b"\n")
                before = len(text)
                for line in lines:
                    if line.startswith(b"data: {"):
                        for choice in decode_chunk(line[6:]).choices:
                            if choice.delta.content:
                                text += choice.delta.content
                            for tool_call in choice.delta.tool_calls:
                                call = tool_call.id or call
                if len(text) > before:
                    on_text(text[before:])
        return text, call
