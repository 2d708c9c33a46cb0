"""The ASGI app: it checks a request, then serves the page, an event stream, or a route.

Streams and the page do not use the framework: an idle stream costs only a few objects.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from email.utils import formatdate
from time import time
from typing import Any, Final

from keryx.server import openapi, problems, routing
from keryx.server.access.auth import Caller
from keryx.server.access.forwarded import Outside, Proxies
from keryx.server.guards import API_HEADERS, Guard, Head, Headers, Scope, head_of
from keryx.server.page import Page
from keryx.server.problems import ProblemError
from keryx.server.schemas import is_id
from keryx.server.service import Service
from keryx.server.sharing.share_links import PREFIX as SHARED
from keryx.server.sharing.shared_page import SharedPages
from keryx.server.stream import Receive, Send, Streams
from keryx.server.users.roles import check_role
from keryx.server.users.user_hosts import UserHosts
from keryx.server.v1.api_errors import no_key, of_error
from keryx.server.v1.endpoints import PREFIX as V1
from keryx.server.v1.endpoints import OpenAiApi
from keryx.server.v1.exchanges import refuse

UNAUTHORIZED: Final = 401
START: Final = "http.response.start"
OPEN: Final = frozenset({("GET", "/api/health"), ("POST", "/api/login")})
DOCUMENT: Final = "/api/openapi.json"
ALL_EVENTS: Final = "/api/events"
_EVENTS: Final = re.compile(r"/api/sessions/([^/]+)/events")
_NUMBER: Final = re.compile(r"[0-9]{1,16}")
_OWN: Final = frozenset({b"content-security-policy", b"cache-control"})

Message = MutableMapping[str, Any]


class Application:
    """The ASGI callable that uvicorn calls for each request. Belongs to one loop."""

    def __init__(
        self,
        service: Service,
        users: UserHosts,
        guard: Guard,
        proxies: Proxies,
        page: Page,
        streams: Streams,
    ) -> None:
        self._service = service
        self._users = users
        self._guard = guard
        self._proxies = proxies
        self._page = page
        self._streams = streams
        self._shared = SharedPages(service, users)
        self._framework: Callable[[Any, Any, Any], Awaitable[None]] = routing.framework()
        self._openai: dict[str, OpenAiApi] = {}
        """The OpenAI-compatible API of each user who has used it, by the name of the user."""
        self._document: bytes | None = None
        self._date = (0, b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "websockets and lifespan are switched off"
        started = False

        async def send_dated(message: Message) -> None:
            nonlocal started
            if message["type"] == START:
                started = True
                message["headers"] = [*message["headers"], (b"date", self._now())]
            await send(message)

        try:
            await self._serve(scope, receive, send_dated, send)
        except Exception as error:
            if started:
                raise
            if scope["path"].startswith(V1):
                await refuse(send_dated, of_error(error))
            else:
                await self._refuse(problems.problem_of(error), send_dated)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, raw: Send) -> None:
        head, method = head_of(scope), scope["method"]
        peer = scope["client"][0] if scope["client"] else ""
        path, outside = scope["path"], Outside(peer, head.host or "", "http", "")
        if self._proxies.are_expected or head.forwarded_for is not None:
            outside = self._proxies.look(peer, head.host or "", head.forwarded)
            scope["path"] = path = self._proxies.inner_path(path, outside)
        scope[routing.OUTSIDE] = outside
        self._guard.check(scope, head, outside.host)
        if path.startswith(V1):
            caller = await self._service.access.caller(head.authorization, None)
            if caller is None:
                raise no_key()
            service = await self._service_of(caller, method, path)
            await self._openai_of(caller, service).serve(scope, caller, receive, send)
            return
        if path.startswith(SHARED):
            await self._shared.serve(method, path, outside.client, send)
            return
        if not path.startswith("/api/"):
            await self._page.serve(method, path, send, head.encodings)
            return
        path = path.rstrip("/")
        caller = await self._service.access.caller(head.authorization, head.cookie)
        if caller is None and (method, path) not in OPEN:
            raise _unauthorized()
        service = self._service if caller is None else await self._service_of(caller, method, path)
        scope[routing.CALLER], scope[routing.SERVICE] = caller, service
        scope[routing.USER_HOSTS] = self._users
        session_events = _EVENTS.fullmatch(path)
        if caller is not None and (session_events or path in (ALL_EVENTS, DOCUMENT)):
            if method != "GET":
                raise _only_get()
            if path == DOCUMENT:
                await self._describe(send)
            else:
                session_id = None if session_events is None else session_events[1]
                after = _after(scope, head)
                await self._stream(service, session_id, after, caller, receive, raw)
        else:
            await self._framework(scope, receive, _guarded(send))

    async def _service_of(self, caller: Caller, method: str, path: str) -> Service:
        """Return the caller's own service; `ProblemError` if the caller may not use this route."""
        if not caller.user:
            return self._service
        check_role(caller, method, path)
        return await self._users.service_of(self._service.access.users[caller.user])

    def _openai_of(self, caller: Caller, service: Service) -> OpenAiApi:
        api = self._openai.get(caller.user)
        if api is None or api.service is not service:
            api = self._openai[caller.user] = OpenAiApi(service, self._streams)
        return api

    # -- streams

    async def _stream(
        self,
        service: Service,
        session_id: str | None,
        after: int | None,
        caller: Caller,
        receive: Receive,
        send: Send,
    ) -> None:
        def may_read() -> bool:
            return self._service.access.is_valid(caller)

        if session_id is None:
            changes = service.host_client.changes(after)
            await self._streams.changes(changes, receive, send, may_read)
            return
        if not is_id(session_id):
            raise _bad("this is not the id of a session")
        row = await service.row(session_id)
        if (after or 0) > row.last_seq:
            raise _bad(f"the session has only {row.last_seq} events, so none after {after}")
        events = await service.host_client.follow(session_id, after=after or 0)
        await self._streams.session((caller.user, session_id), events, receive, send, may_read)

    # -- other answers

    async def _describe(self, send: Send) -> None:
        if self._document is None:
            version = self._service.version
            self._document = await self._service.threads.to_thread(openapi.document, version)
        headers: Headers = [*API_HEADERS, (b"content-type", b"application/json")]
        await _answer(send, 200, headers, self._document)

    async def _refuse(self, error: ProblemError, send: Send) -> None:
        headers: Headers = [*API_HEADERS, (b"content-type", problems.MEDIA_TYPE.encode())]
        headers += [(name.encode(), value.encode()) for name, value in error.headers.items()]
        await _answer(send, error.problem.status, headers, problems.encode(error))

    def _now(self) -> bytes:
        """Return the Date header; it is formatted once a second."""
        now = int(time())
        if self._date[0] != now:
            self._date = (now, formatdate(now, usegmt=True).encode())
        return self._date[1]


def _guarded(send: Send) -> Send:
    """Return a `send` that adds the security headers to the framework's answers."""

    async def send_guarded(message: Message) -> None:
        if message["type"] == START:
            own = {name.lower() for name, _ in message["headers"]} & _OWN
            added = [header for header in API_HEADERS if header[0] not in own]
            message["headers"] = [*message["headers"], *added]
        await send(message)

    return send_guarded


async def _answer(send: Send, status: int, headers: Headers, body: bytes) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": START, "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


def _after(scope: Scope, head: Head) -> int | None:
    """Return the last event that the reader has seen.

    Last-Event-ID is newer than the query: a browser sends it when it reconnects.
    """
    text = head.last_event_id
    if text is None:
        values = re.findall(rb"(?:^|&)after=([^&]*)", scope["query_string"])
        text = values[-1].decode("latin-1") if values else None
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise _bad("`after` and Last-Event-ID must be event numbers")
    return int(text)


def _bad(detail: str) -> ProblemError:
    hint = "read the session again, and follow its events after the `seq` in that answer"
    return ProblemError(problems.BAD_REQUEST, "bad_request", detail, hint)


def _only_get() -> ProblemError:
    return ProblemError(
        405, "wrong_method", "this address can only be read", "use GET", headers={"allow": "GET"}
    )


def _unauthorized() -> ProblemError:
    return ProblemError(
        UNAUTHORIZED,
        "not_logged_in",
        "You are not signed in",
        "open the link that `keryx serve` printed, or send a token from `keryx tokens make`",
        headers={"www-authenticate": "Bearer"},
    )
