"""The HTTP client of the tools: one for each loop, shared by all tools that run there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from keryx.aio.owned import Owned
from keryx.ports.http import HttpClient

if TYPE_CHECKING:
    import aiohttp

# The limit for opening a connection only. How long an answer may take is decided by the tool and
# its timeout.
CONNECT_TIMEOUT: Final = 30.0


class HttpClients:
    """One client for each loop, created and closed on that loop."""

    def __init__(self) -> None:
        self._clients = Owned(_create, _close)

    async def get(self) -> HttpClient:
        # aiohttp types every option; the port accepts any options.
        return cast("HttpClient", await self._clients.get())

    async def close(self) -> None:
        """Close the running loop's client."""
        await self._clients.close()


async def _create() -> aiohttp.ClientSession:
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first request)

    # Cookies of one session must not reach another, and all sessions share this client.
    return aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
    )


async def _close(client: aiohttp.ClientSession) -> None:
    await client.close()
