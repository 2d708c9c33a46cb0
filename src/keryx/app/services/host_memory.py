"""Creates the memory of a host, with the providers that its configuration names."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from keryx.app.runtime import Runtime
from keryx.config import Config
from keryx.errors import UserMustActError
from keryx.ports.memory import Memory, MemoryEdits, MemoryProvider
from keryx.ports.memory_access import TellOwner
from keryx.ports.store import Store

if TYPE_CHECKING:
    from keryx.memory.memory_file import MemoryFile
    from keryx.memory.service import MemoryService

FILE: Final = "memory.db"
"""The file of the memories in the home."""
NOTES: Final = "memory"
"""The folder of the files of notes in the home."""
GROUP: Final = "keryx.memory"
"""The entry points of packages with providers: functions of the settings, as a dictionary."""


async def open_memory(
    runtime: Runtime,
    store: Store,
    config: Config,
    *,
    tell_owner: TellOwner | None = None,
) -> MemoryService | None:
    """Create the memory; None if no provider is configured.

    `tell_owner`: another process owns the home, takes in and delivers (see `MemoryService`).
    """
    if not config.memory.providers:
        return None
    # Imported only here: a host without a memory starts faster. In a thread: another loop may be
    # importing it at the same time.
    load = importlib.import_module
    service: Any = await runtime.bridge.to_thread(load, "keryx.memory.service")
    file = service.MemoryFile(config.home / FILE, runtime.bridge)
    edits = ServiceEdits()
    providers = await runtime.bridge.to_thread(create_providers, runtime, config, file, edits)
    edits.service = service.MemoryService(
        store,
        file,
        runtime.scope,
        providers=providers,
        report=_report,
        budget=config.memory.wait,
        tell_owner=tell_owner,
    )
    return edits.service


class ServiceEdits:
    """Passes people's edits at a provider on to the service, which is created after it."""

    def __init__(self) -> None:
        self.service: MemoryService | None = None

    async def add(self, memory: Memory) -> None:
        assert self.service is not None, "providers are used by their service only"
        await self.service.curation.add(memory)

    async def remove(self, memory_id: str) -> None:
        assert self.service is not None, "providers are used by their service only"
        await self.service.curation.remove([memory_id])


def create_providers(
    runtime: Runtime, config: Config, file: MemoryFile, edits: MemoryEdits
) -> Sequence[MemoryProvider]:
    """Create the providers by name, in a thread; `UserMustActError` if there is no such one."""
    built_in: Mapping[str, Callable[[], MemoryProvider]] = {
        "notes": partial(_notes, runtime, config, edits),
        "vector": partial(_vector, runtime, config, file),
        "honcho": partial(_honcho, runtime, config, file),
    }
    providers: list[MemoryProvider] = []
    for name in dict.fromkeys(config.memory.providers):
        if name in built_in:
            providers.append(built_in[name]())
            continue
        from importlib.metadata import entry_points  # noqa: PLC0415 (slow, and rarely needed)

        installed = {point.name: point for point in entry_points(group=GROUP)}
        if name not in installed:
            raise UserMustActError(_unknown(name, [*built_in, *installed]))
        providers.append(installed[name].load()(config.memory.settings.get(name, {})))
    return providers


def _notes(runtime: Runtime, config: Config, edits: MemoryEdits) -> MemoryProvider:
    # Imported only here: a host without it starts faster.
    notes: Any = importlib.import_module("keryx.memory.providers.notes.provider")
    return notes.NotesProvider(
        config.home / NOTES, runtime.bridge, edits=edits, wall=runtime.scope.clock.wall
    )


def _vector(runtime: Runtime, config: Config, file: MemoryFile) -> MemoryProvider:
    opening: Any = importlib.import_module("keryx.memory.providers.vector.opening")
    return opening.open_index(config.home, runtime.scope, runtime.bridge, file, _report)


def _honcho(runtime: Runtime, config: Config, file: MemoryFile) -> MemoryProvider:
    module: Any = importlib.import_module("keryx.memory.providers.honcho.provider")
    honcho = config.memory.honcho
    return module.HonchoProvider(
        file,
        runtime.bridge,
        url=honcho.url,
        api_key=honcho.api_key,
        workspace=honcho.workspace,
        clock=runtime.scope.clock,
    )


def _unknown(name: str, names: Sequence[str]) -> str:
    import difflib  # noqa: PLC0415 (only a wrong name needs it)

    close = difflib.get_close_matches(name, names, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names)}"
    return f"[memory] in config.toml names the provider {name!r}, which does not exist; {advice}"


def _report(name: str, error: BaseException) -> None:
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"the memory failed: {name}", "exception": error}
    )
