"""The HTTP listener for platforms that deliver by webhook. It knows paths and handlers only."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from keryx.errors import KeryxError, UserMustActError

if TYPE_CHECKING:
    from aiohttp import web

LARGEST_BODY: Final = 2 * 1024 * 1024
# Seconds for requests that still run when the gateway ends; their senders repeat them.
PATIENCE: Final = 2.0
NOT_FOUND: Final = 404
UNAVAILABLE: Final = 503
_log: Final = logging.getLogger("keryx.gateway")


class Posted(msgspec.Struct, frozen=True):
    """A request: its headers, with names in lower case, and its body."""

    headers: Mapping[str, str]
    body: bytes


Handler = Callable[[Posted], Awaitable[int]]
"""Returns the status of the response."""


class Listener:
    """Listens while it is started; a path without handler does not exist."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._handlers: dict[str, tuple[Handler, int]] = {}
        self._runner: web.AppRunner | None = None
        self.port = port
        """The port that it listens at, once it is started."""

    def add(self, path: str, handler: Handler, *, largest: int = LARGEST_BODY) -> None:
        """`largest`: bytes of a request's body."""
        self._handlers[path] = (handler, largest)

    def remove(self, path: str) -> None:
        self._handlers.pop(path, None)

    async def start(self) -> None:
        from aiohttp import web  # noqa: PLC0415 (heavy)

        async def respond(request: web.Request) -> web.Response:
            handler, largest = self._handlers.get(request.path, (None, 0))
            if handler is None or request.method != "POST":
                return web.Response(status=NOT_FOUND)
            request = request.clone(client_max_size=largest)
            headers = {name.lower(): value for name, value in request.headers.items()}
            try:
                status = await handler(Posted(headers, await request.read()))
            except KeryxError as error:
                # The sender keeps the update and repeats it.
                _log.warning("an update could not be stored: %s", error)
                status = UNAVAILABLE
            return web.Response(status=status)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", respond)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=PATIENCE)
        await self._runner.setup()
        try:
            listening = socket.create_server((self._host, self._port), backlog=128)
        except OSError as error:
            await self._runner.cleanup()
            self._runner = None
            raise UserMustActError(
                f"the gateway cannot listen at {self._host}, port {self._port}: "
                f"{error.strerror or error}; choose another port in [gateway]"
            ) from error
        self.port = listening.getsockname()[1]
        await web.SockSite(self._runner, listening).start()

    async def close(self) -> None:
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
