"""Serve the page and the API. Ctrl+C ends the server; running turns continue at the next start.

Precedence: flags, KERYX_MODEL, config.toml, then OPENAI_*
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from keryx.aio.loops import run_loop
from keryx.app import Keryx
from keryx.cli.logs import redact_logs
from keryx.cli.values import folder, port, read_password
from keryx.config import secrets_of
from keryx.errors import KeryxError
from keryx.gateway.gateway import Gateway, GatewayTakenError, running_gateway
from keryx.server.serve import HOST, PORT, Settings, serving


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default=HOST, help=f"the address to listen at; default: {HOST}")
    parser.add_argument(
        "--port", type=port, default=PORT, help=f"default: {PORT}; if it is in use, the next free"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another host name of this server, such as that of a proxy",
    )
    parser.add_argument(
        "--url",
        help="the address that browsers use, such as that of a proxy: https://example.com/keryx",
    )
    parser.add_argument(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="the address or network of a proxy whose X-Forwarded-* headers are trusted",
    )
    parser.add_argument(
        "--password-file", help="a file with the password for other machines; or KERYX_PASSWORD"
    )
    parser.add_argument(
        "--workspace", type=folder, default=".", help="the default folder of new sessions"
    )
    parser.add_argument("--model", help="provider:name; default: KERYX_MODEL, or config.toml")
    parser.add_argument(
        "--take-over", action="store_true", help="take the home from a host that does not respond"
    )


def run(options: argparse.Namespace) -> int:
    settings = Settings(
        host=options.host,
        port=options.port,
        allowed_hosts=tuple(options.allow_host),
        trusted_proxies=tuple(options.trusted_proxy),
        url=options.url,
        password=None if options.password_file is None else read_password(options.password_file),
        workspace=options.workspace,
    )
    return run_loop(_serve(options, settings))


def _configured(settings: Settings, app: Keryx) -> Settings:
    """Fill what no flag sets from the configuration."""
    configured = app.host_client.config.server
    return msgspec.structs.replace(
        settings,
        url=settings.url or configured.url,
        trusted_proxies=settings.trusted_proxies or configured.trusted_proxies,
    )


async def _serve(options: argparse.Namespace, settings: Settings) -> int:
    keryx = Keryx(
        model=options.model,
        workspace=options.workspace,
        home=options.home,
        take_over=options.take_over,
        titles=True,
    )
    async with keryx as app:
        redact_logs(secrets_of(app.host_client.config))
        await app.host_client.tools_to_choose()  # an unknown name in the configuration is an error
        return await _run_server(app, settings, options.model)


@asynccontextmanager
async def _gateway(app: Keryx, workspace: Path) -> AsyncGenerator[Gateway | None]:
    """Run the gateway too, if it is configured and no other process runs it."""
    async with AsyncExitStack() as stack:
        gateway = None
        if app.host_client.config.gateway.is_configured:
            folder_path = str(await app.host_client.to_thread(workspace.resolve))
            try:
                gateway = await stack.enter_async_context(
                    running_gateway(app.host_client, workspace=folder_path)
                )
            except GatewayTakenError:
                print("The gateway of this home runs in another process", flush=True)
        yield gateway


def _say_failure(error: KeryxError) -> None:
    print(f"keryx: the gateway: {error}", file=sys.stderr, flush=True)


async def _run_server(app: Keryx, settings: Settings, model: str | None) -> int:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    async with (
        serving(app.host_client, _configured(settings, app), model) as server,
        _gateway(app, settings.workspace) as gateway,
    ):
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        print(f"Keryx is at {server.url}")
        print(f"Sign in on the page with this link, which works once: {server.link}", flush=True)
        if server.listens != server.url:
            print(f"The server listens at {server.listens}", flush=True)
        if gateway is not None:
            print(f"The gateway serves: {', '.join(gateway.platforms)}", flush=True)
            gateway.on_failure(_say_failure)
        try:
            await stop.wait()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
        print("stopping; running turns continue at the next start", flush=True)
    return 0
