"""Checks the memory that is configured, for `keryx doctor`: starts no host and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec

from keryx.app.memory_hosting.provider_creation import Providers, create_providers
from keryx.app.runtime import Runtime
from keryx.app.services.host_memory import FILE, ServiceEdits
from keryx.config import Config
from keryx.errors import StoreError
from keryx.memory import deliveries
from keryx.memory.memory_file import MEMORIES, MemoryFile
from keryx.ports.memory import MemoryProvider
from keryx.sqlite_file import check_file

CLOSE_TIMEOUT: Final = 2.0
"""Seconds. A provider that does not close holds nobody up."""


class MemoryCheck(msgspec.Struct, frozen=True):
    """What of the memory works."""

    usable: tuple[str, ...]
    """The providers that can be used."""
    problems: tuple[str, ...]
    """What does not work, and what to do."""
    is_broken: bool
    """Whether there is no memory at all: its file cannot be used."""


async def check_memory(runtime: Runtime, config: Config) -> MemoryCheck:
    """Check the file and all providers; `UserMustActError` if the configuration is wrong."""
    file = MemoryFile(config.home / FILE, runtime.bridge)
    try:
        providers = await runtime.bridge.to_thread(
            lambda: create_providers(runtime, config, file, ServiceEdits(), _ignore)
        )
        try:
            return await runtime.bridge.to_thread(lambda: _check(config, providers))
        finally:
            await _close(providers.usable)
    finally:
        await file.close()


def _check(config: Config, providers: Providers) -> MemoryCheck:
    usable = tuple(provider.name for provider in providers.usable)
    left_out = [provider.reason for provider in providers.left_out]
    try:
        failing = check_file(config.home / FILE, MEMORIES, _failing, thorough=True) or {}
    except StoreError as error:
        return MemoryCheck(usable, (str(error), *left_out), is_broken=True)
    fails = [
        f"the last attempt to store something at {name} failed: {error}; `keryx memory lag` shows "
        "what waits, `keryx memory retry` tries again"
        for name, error in failing.items()
        if name in usable
    ]
    return MemoryCheck(usable, (*left_out, *fails), is_broken=False)


def _failing(connection: Any) -> dict[str, str]:
    """Return the providers whose last attempt failed, with the reason."""
    names = deliveries.registered(connection)
    breakers = {name: deliveries.breaker(connection, name) for name in names}
    return {name: breaker.error for name, breaker in breakers.items() if breaker.failures}


async def _close(providers: Iterable[MemoryProvider]) -> None:
    for provider in providers:
        with suppress(Exception):  # whatever fails in a provider, the check is done
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await provider.close()


def _ignore(name: str, error: BaseException) -> None:
    """Do nothing: a provider that was only created does no work that could fail."""
