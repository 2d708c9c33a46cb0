"""The scripted model server: its routes and keys, and which request gets which reply."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Self

import msgspec
from aiohttp import web
from aiohttp.client_exceptions import ClientConnectionResetError

from keryx.testing.modelserver.answer import Answer, ReceivedRequest, error_response, json_response
from keryx.testing.modelserver.apis.anthropic import AnthropicApi
from keryx.testing.modelserver.apis.api import Api, RefusedError, Request
from keryx.testing.modelserver.apis.chat import ChatApi
from keryx.testing.modelserver.apis.gemini import GeminiApi
from keryx.testing.modelserver.apis.responses import ResponsesApi
from keryx.testing.modelserver.script import Reply

MODEL: Final = "test-model"
# Seconds for answers that still hang at shutdown: no client waits for them.
SHUTDOWN: Final = 0.05
LARGEST_BODY: Final = 1 << 28


Answers = Sequence[Reply] | Callable[[ReceivedRequest], Reply]
"""Replies in order, or a function that chooses one."""


class ModelServer:
    """Serves while it is entered. `lists_to_all`: it lists its models without a key."""

    def __init__(
        self,
        answers: Answers,
        *,
        key: str | None = None,
        models: Sequence[str] = (MODEL,),
        port: int = 0,
        keeps_asked: bool = True,
        lists_to_all: bool = False,
    ) -> None:
        self._answers = answers
        self._key = key
        self._models = tuple(models)
        self._port = port
        self._keeps_asked = keeps_asked
        self._lists_to_all = lists_to_all
        self._count = 0
        self._runner: web.AppRunner | None = None
        self._more = asyncio.Event()
        self.apis: dict[str, Api] = {
            api.name: api for api in (ChatApi(), ResponsesApi(), AnthropicApi(), GeminiApi())
        }
        """The APIs that it speaks, by name."""
        self.host = ""
        self.url = ""
        """Its address, with `/v1` at the end, once it is entered."""
        self.asked: list[ReceivedRequest] = []
        """All requests, refused or not; empty without `keeps_asked`."""
        self.refused: list[RefusedError] = []

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=LARGEST_BODY)
        for api in self.apis.values():
            app.router.add_post(api.path, partial(self._ask, api=api))
        app.router.add_get("/v1/models", self._list_v1)
        app.router.add_get("/v1beta/models", partial(self._list, api=self.apis["gemini"]))
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN
        )
        await self._runner.setup()
        # Made here, because the runner does not tell the port.
        listener = socket.create_server(("127.0.0.1", self._port), backlog=1024)
        port: int = listener.getsockname()[1]
        await web.SockSite(self._runner, listener).start()
        self.host = f"http://127.0.0.1:{port}"
        self.url = self.url_of("chat")
        return self

    def url_of(self, api: str) -> str:
        """Return the address that an adapter for that API gets."""
        return f"{self.host}{self.apis[api].folder}"

    async def __aexit__(self, *exc: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def wait_asked(self, number: int) -> ReceivedRequest:
        """Wait for the request of that number, counted from 1, and return it."""
        while len(self.asked) < number:
            self._more.clear()
            await self._more.wait()
        return self.asked[number - 1]

    # -- routes

    async def _list(self, request: web.Request, *, api: Api) -> web.Response:
        try:
            if not self._lists_to_all:
                self._check_headers(request, api)
        except RefusedError as refused:
            return error_response(api, refused)
        return json_response(msgspec.json.encode(api.models(self._models)))

    async def _list_v1(self, request: web.Request) -> web.Response:
        """Answer as the API whose header the request has: two of them list at the same path."""
        name = "anthropic" if "anthropic-version" in request.headers else "chat"
        return await self._list(request, api=self.apis[name])

    async def _ask(self, request: web.Request, *, api: Api) -> web.StreamResponse:
        raw = await request.read()
        self._count += 1
        received = ReceivedRequest(self._count, dict(request.headers), raw, api.name)
        if self._keeps_asked:
            self.asked.append(received)
        self._more.set()
        try:
            self._check_headers(request, api)
            named = request.match_info.get("model", "")
            incoming = Request(raw, request.headers, request.query, named)
            accepted = api.check(incoming, self._models)
            reply = self._reply(received)
        except RefusedError as refused:
            self.refused.append(refused)
            return error_response(api, refused)
        answer = Answer(request, received, api, accepted, reply)
        try:
            response = await answer.give()
        except (asyncio.CancelledError, ClientConnectionResetError):
            received.gone.set()
            raise
        received.answered.set()
        return response

    def _check_headers(self, request: web.Request, api: Api) -> None:
        if request.method == "POST" and request.content_type != "application/json":
            raise RefusedError("the content type must be application/json")
        key = api.key(request.headers)
        if self._key is not None and key != self._key:
            # Real servers show a part of the key; this one all, to prove that nobody repeats it.
            raise RefusedError(f"Incorrect API key provided: {key}", 401, "invalid_api_key")

    def _reply(self, received: ReceivedRequest) -> Reply:
        if callable(self._answers):
            return self._answers(received)
        if received.number > len(self._answers):
            message = f"the script has {len(self._answers)} replies and is over"
            raise RefusedError(message, code="script_is_over")
        return self._answers[received.number - 1]
