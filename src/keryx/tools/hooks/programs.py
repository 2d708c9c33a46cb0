"""Runs hooks as processes: JSON on stdin, the answer on stdout. One process for each call."""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from keryx.aio.scope import Scope
from keryx.errors import HookFailedError, KeryxError, ToolCancelledError
from keryx.ports.hook_programs import HookAnswer, HookEvent
from keryx.ports.place import Place, Process
from keryx.tools.hooks.answers import read_answer
from keryx.tools.hooks.settings import HookSettings

LARGEST_ANSWER: Final = 1024 * 1024
"""Bytes of stdout. An answer is a small JSON object; more is a mistake."""
LAST_WORDS: Final = 8_000
"""Bytes of stderr that are kept."""


class Hook(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One hook of one session: what runs, where, and with which environment."""

    settings: HookSettings
    name: str
    place: Place
    env: Mapping[str, str]
    cwd: str

    @property
    def timeout(self) -> float:
        return self.settings.timeout

    async def run(self, request: bytes, scope: Scope) -> HookAnswer:
        output = _Output()
        try:
            async with (
                asyncio.timeout(self.timeout),
                await self.place.spawn(
                    self.settings.argv,
                    env=self.env,
                    cwd=self.cwd,
                    scope=scope,
                    output=output,
                    stdin=True,
                ) as process,
            ):
                output.process = process
                with suppress(OSError):  # it need not read
                    await process.write(request)
                process.close_stdin()
                end = await process.wait()
        except TimeoutError:
            raise HookFailedError(f"it has not ended after {self.timeout:g} seconds") from None
        except ToolCancelledError:
            raise
        except (KeryxError, OSError) as error:
            raise HookFailedError(f"it cannot be run: {error}") from error
        if output.is_too_large:
            raise HookFailedError(f"it wrote more than {LARGEST_ANSWER} bytes to stdout")
        return read_answer(self.settings.event, end, bytes(output.stdout), output.words)


class _Output:
    """Collects stdout up to a limit, and the end of stderr."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.is_too_large = False
        self.process: Process | None = None
        self._stderr = b""

    def feed(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._stderr = (self._stderr + data)[-LAST_WORDS:]
        elif not self.is_too_large:
            self.stdout += data
            self.is_too_large = len(self.stdout) > LARGEST_ANSWER
        if self.is_too_large and self.process is not None:
            self.process.kill()

    @property
    def words(self) -> str:
        return self._stderr.decode(errors="replace").strip()


class HookTable:
    """The hooks of one session, in the order in which they run."""

    def __init__(self, hooks: Sequence[Hook]) -> None:
        self._hooks = hooks
        self._matching: dict[tuple[HookEvent, str], tuple[Hook, ...]] = {}

    def matching(self, event: HookEvent, tool: str) -> tuple[Hook, ...]:
        key = (event, tool)
        if key not in self._matching:
            self._matching[key] = tuple(
                hook
                for hook in self._hooks
                if hook.settings.event == event
                and any(fnmatch.fnmatchcase(tool, text) for text in hook.settings.patterns)
            )
        return self._matching[key]
