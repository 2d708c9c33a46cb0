"""The connection of one loop to a Honcho server: one HTTP client, and what was opened over it.

Whatever is opened once (a workspace, a peer, a session) is opened by the first who needs it; all
others wait for the same future. The client is imported here, when it is first used.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from keryx.aio.bridge import Bridge
from keryx.aio.owned import Owned
from keryx.errors import UnsupportedError
from keryx.memory.providers.honcho.failures import answer
from keryx.memory.providers.honcho.names import AGENT, USER

PACKAGE: Final = "honcho"
# Sessions, peers and workspaces that a connection remembers as opened.
MAX_OPENED: Final = 1_000
_MISSING: Final = (
    "the memory provider 'honcho' needs the package honcho-ai; run: pip install 'keryx[honcho]'"
)


class HonchoSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where Honcho is, and how long it may take."""

    url: str
    api_key: str | None
    workspace: str
    """The first part of the names of the workspaces there; each profile has one of its own."""
    timeout: float
    """Seconds that one request may take."""
    settle: float
    """Seconds after which a request without an answer is not stored any more, if it was not."""


def require_package() -> None:
    """Raise `UnsupportedError` if the client is not installed. It is not imported yet."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise UnsupportedError(_MISSING)


class Connection:
    """Clients of one loop, by the workspace at Honcho. They share one HTTP client."""

    def __init__(self, package: Any, http: Any, bridge: Bridge, settings: HonchoSettings) -> None:
        self._package = package
        self._http = http
        self._bridge = bridge
        self._settings = settings
        self._opened: dict[tuple[str, ...], asyncio.Future[Any]] = {}

    async def close(self) -> None:
        for future in self._opened.values():
            future.cancel()
        await self._http.aclose()

    async def client(self, workspace: str) -> Any:
        """Return the client of a workspace, which exists then, with its user and its agent."""
        return await self._once((workspace,), lambda: self._open_workspace(workspace))

    async def peer(self, workspace: str, name: str) -> Any:
        """Return a peer. Honcho derives nothing about it by itself, except about the user."""
        client = await self.client(workspace)
        is_user = name == USER
        config = None if is_user else self._package.api_types.PeerConfig(observe_me=False)
        return await self._once(
            (workspace, "peer", name), lambda: client.aio.peer(name, configuration=config)
        )

    async def session(self, workspace: str, name: str) -> Any:
        """Return a session; simultaneous first users make one."""
        client = await self.client(workspace)
        return await self._once(
            (workspace, "session", name), lambda: client.aio.session(name, peers=[USER, AGENT])
        )

    async def opened_session(self, workspace: str, name: str) -> Any:
        """Return a session that may exist; it is not made."""
        return self._package.Session(name, await self.client(workspace))

    async def conclusions(self, workspace: str, observed: str, observer: str = AGENT) -> Any:
        """Return the client's view of what one peer concluded about another."""
        await self.peer(workspace, observed)
        return (await self.peer(workspace, observer)).conclusions_of(observed).aio

    def forget(self, workspace: str) -> None:
        """Open everything in this workspace anew: the server does not have it any more."""
        for key in [key for key in self._opened if key[0] == workspace]:
            if self._opened[key].done():
                del self._opened[key]

    async def _open_workspace(self, workspace: str) -> Any:
        client = await self._bridge.to_thread(self._create_client, workspace)
        # The user exists before anything else: a request that names nobody fails otherwise.
        await client.aio.peer(USER)
        return client

    def _create_client(self, workspace: str) -> Any:
        """Create a client, in a thread: it reads certificates for a connection it never makes."""
        settings = self._settings
        client = self._package.Honcho(
            api_key=settings.api_key,
            base_url=settings.url,
            workspace_id=workspace,
            timeout=settings.timeout,
            max_retries=0,
        )
        client._http.close()
        client._async_http = self._package.http.AsyncHonchoHTTPClient(
            base_url=settings.url,
            api_key=settings.api_key,
            timeout=settings.timeout,
            max_retries=0,
            http_client=self._http,
        )
        return client

    async def _once(self, key: tuple[str, ...], open_it: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            opened = self._opened.get(key)
            if opened is None:
                break
            await asyncio.wait([opened])
            if not opened.cancelled():
                return opened.result()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._opened[key] = future
        try:
            result = await answer(open_it())
        except BaseException:  # also a cancel: those who wait try it themselves
            if self._opened.get(key) is future:
                del self._opened[key]
            future.cancel()
            raise
        if not future.done():
            future.set_result(result)
        self._drop_oldest()
        return result

    def _drop_oldest(self) -> None:
        """Drop what is opened again when it is needed; sessions come and go."""
        for key in list(self._opened)[: max(0, len(self._opened) - MAX_OPENED)]:
            if self._opened[key].done():
                del self._opened[key]


def connections(bridge: Bridge, settings: HonchoSettings) -> Owned[Connection]:
    """Return the connections, one per loop; each is made when it is first used."""

    def create() -> tuple[Any, Any]:
        package: Any = importlib.import_module(PACKAGE)
        httpx: Any = importlib.import_module("httpx")
        if not hasattr(package, "Honcho"):
            # Another distribution has a package of the same name.
            raise UnsupportedError(_MISSING)
        # Without the proxies of the environment: nothing is ambient.
        http = httpx.AsyncClient(
            base_url=settings.url, timeout=httpx.Timeout(settings.timeout), trust_env=False
        )
        return package, http

    async def open_connection() -> Connection:
        package, http = await bridge.to_thread(create)
        return Connection(package, http, bridge, settings)

    return Owned(open_connection, Connection.close)
