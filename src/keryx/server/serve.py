"""Runs the server: a listening socket, uvicorn on the running loop, and a bounded shutdown.

Shutdown ends the streams first, then the connections. It does not end the host.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec
import uvicorn

from keryx.aio.bridge import Bridge
from keryx.aio.clock import RealClock
from keryx.aio.scope import Scope
from keryx.app import Keryx
from keryx.app.host_client import HostClient
from keryx.config.users import UserRecord, user_home
from keryx.errors import UserMustActError
from keryx.ports.model import Model
from keryx.server.access.auth import Access
from keryx.server.access.forwarded import Proxies, PublicUrl
from keryx.server.app import Application
from keryx.server.guards import WILDCARDS, Guard
from keryx.server.page import Page
from keryx.server.service import UPLOAD_LIMIT, Service
from keryx.server.stream import Streams
from keryx.server.users.user_hosts import UserHosts

HOST: Final = "127.0.0.1"
PORT: Final = 8377
PORTS_TRIED: Final = 100
BACKLOG: Final = 2048
THREADS: Final = 8
# Seconds that answers may still take during shutdown; streams have ended before that.
PATIENCE: Final = 3
IDLE: Final = 75
"""Seconds after which an idle connection is closed."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    host: str = HOST
    port: int = PORT
    """The first port to try; 0: any free port."""
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose X-Forwarded-* headers are trusted."""
    url: str | None = None
    """The address that browsers use, if it differs, such as that of a proxy."""
    password: str | None = None
    workspace: Path = Path()
    upload_limit: int = UPLOAD_LIMIT


class Serving(msgspec.Struct, frozen=True):
    """A server that accepts connections."""

    url: str
    """The address that browsers use."""
    listens: str
    """The address that the server itself listens at."""
    once: str
    """The token that logs one browser in."""
    streams: Streams

    @property
    def link(self) -> str:
        """Return the address that signs in the first browser that opens it."""
        return f"{self.url}#token={self.once}"


@asynccontextmanager
async def serving(
    host_client: HostClient, settings: Settings, model: str | Model | None = None
) -> AsyncGenerator[Serving]:
    """Serve the sessions of this host until the block ends.

    `model` is the model of named users; None: the configured one.
    """
    scope = Scope("server", clock=RealClock())
    threads = Bridge(scope, threads=THREADS)
    try:
        access = Access(host_client.config, threads, scope.clock)
        await access.load(settings.password)
        _require_password(settings.host, access)
        service = Service(
            host_client,
            threads,
            access,
            workspace=await threads.to_thread(settings.workspace.resolve),
            version=await threads.to_thread(version, "keryx"),
            upload_limit=settings.upload_limit,
        )
        page = await threads.to_thread(Page.read)
        users = UserHosts(
            scope,
            partial(_open_host, host_client.config.settings_home, model),
            partial(_service_of, service),
        )
        try:
            users.prepare(access.users.values())
            streams = Streams(scope, access.refresh)
            async with _listening(service, users, page, settings, streams) as server:
                host_client.models.prepare()
                yield server
        finally:
            await users.close()
    finally:
        await threads.close()
        scope.close()


def _open_host(settings_home: Path, model: str | Model | None, user: UserRecord) -> Keryx:
    home = user_home(settings_home, user.name)
    return Keryx(model=model, home=home, workspace=user.folder, titles=True)


async def _service_of(owner: Service, app: Keryx, user: UserRecord) -> Service:
    """Return the service of a named user, who works below the folder of the record only."""
    folder = await owner.threads.to_thread(Path(user.folder).resolve)
    return Service(
        app.host_client,
        owner.threads,
        owner.access,
        workspace=folder,
        version=owner.version,
        upload_limit=owner.upload_limit,
        fence=folder,
    )


@asynccontextmanager
async def _listening(
    service: Service, users: UserHosts, page: Page, settings: Settings, streams: Streams
) -> AsyncGenerator[Serving]:
    url = None if settings.url is None else PublicUrl.read(settings.url)
    proxies = Proxies(settings.trusted_proxies, url)
    with bind(settings.host, settings.port) as listening:
        port: int = listening.getsockname()[1]
        guard = Guard(port, host=settings.host, allowed=settings.allowed_hosts, url=proxies.url)
        server = _server(Application(service, users, guard, proxies, page, streams))
        await server.startup(sockets=[listening])
        try:
            listens = _url(settings.host, port)
            url = listens if proxies.url is None else str(proxies.url)
            yield Serving(url, listens, service.access.once, streams)
        finally:
            await streams.close()
            await server.shutdown(sockets=[listening])


def _server(app: Application) -> uvicorn.Server:
    """Return uvicorn without its own loop, signal handlers, logs and Date header."""
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=PATIENCE,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    return server


def _require_password(host: str, access: Access) -> None:
    if not _is_loopback(host) and not access.has_password:
        raise UserMustActError(
            f"{host} can be reached from other machines, so a password is needed: set "
            "KERYX_PASSWORD or give --password-file; or leave --host out to serve this machine only"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at this port, or at the next free one."""
    ports: Sequence[int] = range(port, min(port + PORTS_TRIED, 65536)) if port else (0,)
    for candidate in ports:
        try:
            return _listen(host, candidate)
        except (OSError, UnicodeError) as error:
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                continue
            raise UserMustActError(
                f"the server cannot listen at {host}, port {candidate}: {_reason(error)}; choose "
                "another with --host and --port"
            ) from error
    raise UserMustActError(
        f"the ports {port} to {ports[-1]} are all in use; choose another with --port"
    )


def _reason(error: OSError | UnicodeError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "this is not a host name"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A server that was killed can then be restarted at the same address.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening


def _url(host: str, port: int) -> str:
    shown = HOST if host in WILDCARDS else host
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"
