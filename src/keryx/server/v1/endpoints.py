"""The addresses under `/v1`: they read a request, begin its turn, and write what it says.

Requests need a token: a login in a browser does not count here, so no other site can use it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qs

from keryx.server.access.auth import Caller
from keryx.server.guards import Scope
from keryx.server.problems import NOT_FOUND
from keryx.server.service import Service
from keryx.server.stream import Receive, Send, Streams
from keryx.server.v1.answering.chat_object import ChatChunks, completion, failure
from keryx.server.v1.answering.progress import Progress
from keryx.server.v1.answering.response_events import ResponseEvents
from keryx.server.v1.answering.response_object import response_of
from keryx.server.v1.api_errors import ApiError, of_error
from keryx.server.v1.asking import bodies
from keryx.server.v1.asking.starting import Starter
from keryx.server.v1.exchanges import NO_RETRY, Exchange
from keryx.server.v1.following import Follower
from keryx.server.v1.model_names import described, model_of, names
from keryx.server.v1.stored_responses import StoredResponses

PREFIX: Final = "/v1/"
ADDRESSES: Final = "/v1/chat/completions, /v1/responses and /v1/models"
Handler = Callable[[Exchange, str], Awaitable[None]]


class OpenAiApi:
    """Answers the requests of one user under `/v1`. Belongs to one loop."""

    def __init__(self, service: Service, streams: Streams) -> None:
        self.service: Final = service
        self._starter = Starter(service)
        self._follower = Follower(service, streams)
        self._responses = StoredResponses(service, self._follower)

    async def serve(self, scope: Scope, caller: Caller, receive: Receive, send: Send) -> None:
        """Answer one request; every error has OpenAI's form."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        exchange = Exchange(
            scope["method"],
            scope["path"].removeprefix(PREFIX).strip("/"),
            {name: values[-1] for name, values in query.items()},
            caller,
            receive,
            send,
        )
        try:
            await self._route(exchange)
        except Exception as error:  # noqa: BLE001 (each becomes an answer)
            await exchange.refuse(of_error(error))

    async def _route(self, exchange: Exchange) -> None:
        methods, name = self._methods(exchange.path)
        if not methods:
            text = f"There is nothing at this address; there are {ADDRESSES}"
            raise ApiError(NOT_FOUND, text, code="not_found")
        handler = methods.get(exchange.method)
        if handler is None:
            text = f"This address takes {' and '.join(methods)}, not {exchange.method[:10]}"
            raise ApiError(405, text, code="method_not_allowed")
        await handler(exchange, name)

    def _methods(self, path: str) -> tuple[dict[str, Handler], str]:
        """Return what can be done at an address, by method, and the id that it names."""
        area, _, rest = path.partition("/")
        if area == "models":
            return {"GET": self._models}, rest
        if path == "chat/completions":
            return {"POST": self._chat}, ""
        name, _, action = rest.partition("/")
        routes: dict[tuple[str, bool, str], dict[str, Handler]] = {
            ("responses", False, ""): {"POST": self._create},
            ("responses", True, ""): {
                "GET": self._responses.show,
                "DELETE": self._responses.delete,
            },
            ("responses", True, "cancel"): {"POST": self._responses.cancel},
            ("responses", True, "input_items"): {"GET": self._responses.list_input},
        }
        return routes.get((area, bool(name), action), {}), name

    async def _models(self, exchange: Exchange, name: str) -> None:
        host_client = self.service.host_client
        if name:
            model_of(host_client, name)
            await exchange.answer(described(name))
        else:
            data = [described(name) for name in names(host_client)]
            await exchange.answer({"object": "list", "data": data})

    async def _chat(self, exchange: Exchange, name: str) -> None:
        del name
        body = bodies.read_chat(await exchange.body())
        begun = await self._starter.chat(body, exchange.caller)
        progress = Progress(bodies.stop_sequences(body))
        if body.stream:
            options = body.stream_options or bodies.StreamOptions()
            chunks = ChatChunks(progress, body.model, with_usage=bool(options.include_usage))
            await self._follower.stream(exchange, begun, progress, chunks, cancels=True)
            return
        await self._follower.collect(exchange, begun, progress)
        if not progress.is_over:
            return
        if (error := failure(progress)) is not None:
            await exchange.refuse(error, NO_RETRY)
        else:
            await exchange.answer(completion(progress, body.model))

    async def _create(self, exchange: Exchange, name: str) -> None:
        del name
        body = bodies.read_response(await exchange.body())
        begun = await self._starter.response(body, exchange.caller)
        progress = Progress()
        if body.stream:
            events = ResponseEvents(progress)
            cancels = not body.background
            await self._follower.stream(exchange, begun, progress, events, cancels=cancels)
            return
        if body.background:
            store = self.service.host_client.store
            for event in await store.events(begun.session_id, after=begun.seq - 1):
                for _ in progress.apply(event):
                    pass
        else:
            await self._follower.collect(exchange, begun, progress)
        if progress.is_over or body.background:
            await exchange.answer(response_of(progress))
