"""The whole server as one ASGI app: guards, then the page, the streams, or the framework's routes.

Streams and the page are raw ASGI beside the framework: a stream that idles costs a few objects.
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
from keryx.server.stream import Receive, Send, Streams

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
    """What uvicorn calls for each request. Belongs to one loop."""

    def __init__(
        self, service: Service, guard: Guard, proxies: Proxies, page: Page, streams: Streams
    ) -> None:
        self._service = service
        self._guard = guard
        self._proxies = proxies
        self._page = page
        self._streams = streams
        self._framework: Callable[[Any, Any, Any], Awaitable[None]] = routing.framework(service)
        self._document: bytes | None = None
        self._date = (0, b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "there is nothing but HTTP here"
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == START:
                started = True
                message["headers"] = [*message["headers"], (b"date", self._now())]
            await send(message)

        try:
            await self._serve(scope, receive, sending, send)
        except Exception as error:
            if started:
                raise
            await self._refuse(problems.problem_of(error), sending)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, raw: Send) -> None:
        head, method = head_of(scope), scope["method"]
        peer = scope["client"][0] if scope["client"] else ""
        path, outside = scope["path"], Outside(peer, head.host or "", "http", "")
        if self._proxies.are_expected or head.forwarded_for is not None:
            outside = self._proxies.look(peer, head.host or "", head.forwarded)
            scope["path"] = path = self._proxies.inner_path(path, outside)
        scope[routing.OUTSIDE] = outside
        self._guard.check(scope, head, outside.host)
        if not path.startswith("/api/"):
            await self._page.serve(method, path, send, head.encodings)
            return
        path = path.rstrip("/")
        caller = await self._service.access.caller(head.authorization, head.cookie)
        if caller is None and (method, path) not in OPEN:
            raise _unauthorized()
        scope[routing.CALLER] = caller
        followed = _EVENTS.fullmatch(path)
        if caller is not None and (followed or path in (ALL_EVENTS, DOCUMENT)):
            if method != "GET":
                raise _only_get()
            if path == DOCUMENT:
                await self._describe(send)
            else:
                name = None if followed is None else followed[1]
                await self._stream(name, _after(scope, head), caller, receive, raw)
        else:
            await self._framework(scope, receive, _guarded(send))

    # -- streams

    async def _stream(
        self,
        session_id: str | None,
        after: int | None,
        caller: Caller,
        receive: Receive,
        send: Send,
    ) -> None:
        def still_wanted() -> bool:
            return self._service.access.still_counts(caller)

        if session_id is None:
            changes = self._service.host_client.changes(after)
            await self._streams.changes(changes, receive, send, still_wanted)
            return
        if not is_id(session_id):
            raise _bad("that is no id of a session")
        row = await self._service.row(session_id)
        if (after or 0) > row.last_seq:
            raise _bad(f"the session has {row.last_seq} facts, and none after {after}")
        events = await self._service.host_client.follow(session_id, after=after or 0)
        await self._streams.session(session_id, events, receive, send, still_wanted)

    # -- the rest

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
        """The date, made once a second."""
        now = int(time())
        if self._date[0] != now:
            self._date = (now, formatdate(now, usegmt=True).encode())
        return self._date[1]


def _guarded(send: Send) -> Send:
    """What the framework answers, with the headers that all answers have."""

    async def guarded(message: Message) -> None:
        if message["type"] == START:
            own = {name.lower() for name, _ in message["headers"]} & _OWN
            added = [each for each in API_HEADERS if each[0] not in own]
            message["headers"] = [*message["headers"], *added]
        await send(message)

    return guarded


async def _answer(send: Send, status: int, headers: Headers, body: bytes) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": START, "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


def _after(scope: Scope, head: Head) -> int | None:
    """The last fact that the reader has seen. What a browser sends by itself is newer."""
    given = head.last_event_id
    if given is None:
        found = re.findall(rb"(?:^|&)after=([^&]*)", scope["query_string"])
        given = found[-1].decode("latin-1") if found else None
    if given is None:
        return None
    if not _NUMBER.fullmatch(given):
        raise _bad("after and Last-Event-ID are numbers of facts")
    return int(given)


def _bad(detail: str) -> ProblemError:
    hint = "read the session anew, and follow it after the `seq` that it tells"
    return ProblemError(problems.BAD_REQUEST, "bad_request", detail, hint)


def _only_get() -> ProblemError:
    return ProblemError(
        405, "wrong_method", "this can only be read", "use GET", headers={"allow": "GET"}
    )


def _unauthorized() -> ProblemError:
    return ProblemError(
        UNAUTHORIZED,
        "not_logged_in",
        "nobody is let in without a token or a login",
        "open the link that `keryx serve` printed, or make a token with `keryx tokens make`",
        headers={"www-authenticate": "Bearer"},
    )
