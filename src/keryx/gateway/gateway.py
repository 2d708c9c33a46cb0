"""The gateway of a home: its platforms, attached to the host of the home.

One process at a time is the gateway of a home: a lock file says which. What it has taken in and has
to send is in `gateway.db`, so the next process goes on where this one ended.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from keryx.aio.acquire import acquire, release
from keryx.aio.bridge import Bridge
from keryx.aio.clock import RealClock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app.host_client import HostClient
from keryx.app.services.attachments import Uploads
from keryx.errors import KeryxError, NobodyMustActError, UserMustActError
from keryx.gateway.channel import Channel
from keryx.gateway.gateway_file import FILE, SCHEMA
from keryx.gateway.listener import Listener
from keryx.gateway.platforms import configured_platforms
from keryx.gateway.tuning import Tuning
from keryx.sqlite_file import SqliteFile

LOCK: Final = "gateway.lock"
THREADS: Final = 8
NOT_CONFIGURED: Final = (
    "no chat platform is configured; add [gateway.telegram] with the token of a bot, or "
    "[gateway.webhook], to config.toml: see docs/gateway.md"
)
RESTART: Final = "start it again, and please report what the log says"
_log: Final = logging.getLogger("keryx.gateway")


class GatewayTakenError(UserMustActError):
    """Another process is the gateway of this home."""


class Gateway:
    """The running platforms of a home."""

    def __init__(self, listener: Listener, group: Group) -> None:
        self._channels: Sequence[Channel] = ()
        self.listener = listener
        self._group = group
        self._on_failure: Callable[[KeryxError], object] = _ignore
        self.failure: KeryxError | None = None
        """The error of the first platform that could not go on."""

    @property
    def platforms(self) -> tuple[str, ...]:
        return tuple(channel.platform.name for channel in self._channels)

    def on_failure(self, callback: Callable[[KeryxError], object]) -> None:
        """Call this when a platform cannot go on, at once if one could not."""
        self._on_failure = callback
        if self.failure is not None:
            callback(self.failure)

    def start(self, channels: Sequence[Channel]) -> None:
        self._channels = channels
        for channel in self._channels:
            self._group.start(self._run(channel), name=channel.platform.name)

    async def close(self) -> None:
        await self._group.leave()
        for channel in self._channels:
            await channel.close()

    async def _run(self, channel: Channel) -> None:
        try:
            await channel.run()
        except KeryxError as error:
            self.fail(channel, error)
        except Exception as error:  # noqa: BLE001 (whatever it is, somebody must be told)
            # A gateway that receives nothing must not look as if it did.
            _log.exception("%s has stopped", channel.platform.name)
            text = f"it stopped because of a fault in Keryx ({type(error).__name__}); {RESTART}"
            self.fail(channel, NobodyMustActError(text))

    def fail(self, channel: Channel, error: KeryxError) -> None:
        """Note that a platform cannot go on; the first error counts."""
        if self.failure is None:
            _log.error("%s cannot go on: %s", channel.platform.name, error)
            self.failure = error
            self._on_failure(error)


@asynccontextmanager
async def running_gateway(
    host_client: HostClient, *, workspace: str, tuning: Tuning | None = None
) -> AsyncGenerator[Gateway]:
    """Run the configured platforms until the block ends."""
    config = host_client.config
    if not config.gateway.is_configured:
        raise UserMustActError(NOT_CONFIGURED)
    tuning = tuning or Tuning()
    scope = Scope("gateway", clock=RealClock())
    bridge = Bridge(scope, threads=THREADS)
    file = SqliteFile(config.home / FILE, bridge, SCHEMA)
    listener = Listener(config.gateway.host, config.gateway.port)
    lock = await acquire(bridge, partial(_lock, config.home), os.close)
    try:
        platforms = configured_platforms(
            config.gateway, scope.clock, bridge.to_thread, listener, tuning
        )
        gateway = Gateway(listener, Group(scope.child("platforms"), on_error=_report))
        channels = [
            Channel(
                platform,
                host_client,
                file,
                scope,
                read_blob=Uploads(config.home, bridge).read,
                workspace=workspace,
                tuning=tuning,
                on_failure=gateway.fail,
            )
            for platform in platforms
        ]
        try:
            if any(platform.needs_listener for platform in platforms):
                await listener.start()
            gateway.start(channels)
            yield gateway
        finally:
            await listener.close()
            await gateway.close()
    finally:
        await file.close()
        await release(bridge, partial(os.close, lock))
        await bridge.close()
        scope.close()


def _lock(home: Path) -> int:
    """Become the gateway of the home, until the returned descriptor is closed."""
    descriptor = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise GatewayTakenError(
            "the gateway of this home runs in another process already, such as `keryx serve`; "
            "stop it first, or choose another home"
        ) from error
    return descriptor


def _ignore(_error: KeryxError) -> None:
    """Stands for nobody who listens."""


def _report(name: str, error: BaseException) -> None:
    _log.error("%s failed", name, exc_info=error)
