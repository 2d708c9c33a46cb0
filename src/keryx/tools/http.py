"""The HTTP client that tools use: one per loop, shared by all that runs there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from keryx.aio.owned import Owned
from keryx.ports.tool import HttpClient

if TYPE_CHECKING:
    import aiohttp

# A connection that cannot be made in this time will not be made; how long an answer may take is
# the tool's own affair, and its timeout's.
CONNECT_TIMEOUT: Final = 30.0


class HttpClients:
    """A client for each loop that asks, made and closed on it."""

    def __init__(self) -> None:
        self._clients = Owned(_make, _close)

    async def get(self) -> HttpClient:
        # aiohttp names every option in its types; the port leaves them open.
        return cast("HttpClient", await self._clients.get())

    async def close(self) -> None:
        """Close the running loop's client."""
        await self._clients.close()


async def _make() -> aiohttp.ClientSession:
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first request)

    # Cookies of one session must not reach another, and all sessions share this client.
    return aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
    )


async def _close(client: aiohttp.ClientSession) -> None:
    await client.close()
