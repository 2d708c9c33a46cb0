"""The HTTP client for addresses that a model or a page names: it connects to public addresses only.

There is one for each loop. A name is looked up once for each connection. All of its addresses are
checked, and the connection goes to one of the checked addresses, so a name server cannot give
another answer between the check and the connection. Redirects and addresses that are written as
numbers pass the same check.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from keryx.aio.owned import Owned
from keryx.errors import ToolFailedError
from keryx.ports.http import HttpClient

if TYPE_CHECKING:
    import aiohttp

    from keryx.tools.web.addresses import Exceptions

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Looks up a host for a port; returns IP addresses. Raises `OSError` if there is no such host."""

CONNECT_TIMEOUT: Final = 15.0
# Of all tools and sessions on this loop together.
MOST_CONNECTIONS: Final = 100


class PublicHttpClients:
    """One client for each loop and each list of exceptions. Only public addresses are reached."""

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._resolve = resolve or look_up
        # A connection of one client is never reused by another, so an exception of one
        # configuration does not open anything for a different one.
        self._clients: dict[tuple[str, ...], Owned[aiohttp.ClientSession]] = {}

    async def get(self, allow_private: Sequence[str] = ()) -> HttpClient:
        """Return the running loop's client. `allow_private` names hosts that it may reach too."""
        key = tuple(allow_private)
        create = partial(_create, self._resolve, key)
        clients = self._clients.setdefault(key, Owned(create, _close))
        # aiohttp types every option; the port accepts any options.
        return cast("HttpClient", await clients.get())

    async def close(self) -> None:
        """Close the running loop's clients."""
        for clients in tuple(self._clients.values()):
            await clients.close()


async def look_up(host: str, port: int) -> list[str]:
    """Ask the system for the addresses of a host."""
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


async def _create(resolve: Resolve, allow_private: tuple[str, ...]) -> aiohttp.ClientSession:
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first request)

    from keryx.tools.web.addresses import Exceptions  # noqa: PLC0415 (loads `ipaddress`)

    connector = _connector(resolve, Exceptions(allow_private))
    # Cookies of one session must not reach another, and all sessions share this client.
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
        # A compressed answer can be a bomb: whoever reads it decompresses it up to a limit.
        auto_decompress=False,
    )


async def _close(client: aiohttp.ClientSession) -> None:
    await client.close()


def _connector(resolve: Resolve, exceptions: Exceptions) -> aiohttp.TCPConnector:
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first request)
    from aiohttp.abc import AbstractResolver, ResolveResult  # noqa: PLC0415 (same)

    from keryx.tools.web import addresses  # noqa: PLC0415 (loads `ipaddress`)

    class CheckedResolver(AbstractResolver):
        """Looks up names; a name with an address that is not public is refused."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            del family  # the system decides which families it can use
            resolved = await resolve(host, port)
            if not resolved:
                raise OSError(f"{host} has no address")
            if not exceptions.cover(host, port):
                for address in resolved:
                    if not addresses.is_public(address):
                        raise _refusal(host, address)
            return [_result(host, address, port) for address in resolved]

        async def close(self) -> None:
            pass

    class PublicConnector(aiohttp.TCPConnector):
        """Checks hosts that are addresses already; the resolver is not asked for these."""

        async def connect(self, req: aiohttp.ClientRequest, *args: Any, **options: Any) -> Any:
            host, port = req.url.raw_host or "", req.url.port or 0
            address = addresses.literal(host)
            if address is not None or addresses.is_numeric(host):
                allowed = address is not None and addresses.is_public(str(address))
                if not allowed and not exceptions.cover(host, port):
                    raise _refusal(host, "" if address is None else str(address))
            return await super().connect(req, *args, **options)

    return PublicConnector(resolver=CheckedResolver(), limit=MOST_CONNECTIONS)


def _result(host: str, address: str, port: int) -> Any:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return {
        "hostname": host,
        "host": address,
        "port": port,
        "family": family,
        "proto": 0,
        "flags": flags,
    }


def _refusal(host: str, address: str) -> ToolFailedError:
    subject = host if address in ("", host) else f"{host} ({address})"
    return ToolFailedError(
        f"{subject} is not a public address, so it is not contacted; use a public address, "
        "or ask the user to list the host in `allow_private` of [tools.web] in config.toml"
    )
