"""Background processes: they outlive the call that started them, and end with their session."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.engine.redaction import Redactor, StreamRedactor
from keryx.errors import ToolFailedError, WardenLostError
from keryx.messages import Needs
from keryx.ports.background import BackgroundProcess, Printed
from keryx.ports.place import Exit, Place, Process

# Bytes that are kept of the output of one process: enough to look back, and small enough for many.
OUTPUT_LIMIT: Final = 1 << 20
# Processes of one session that run at the same time; more is almost always a mistake.
MOST_RUNNING: Final = 32
# Processes that stay listed, including those that have ended.
MOST_LISTED: Final = 100


class Scrollback:
    """The last part of an endless output. It can be read from any offset that is still kept."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._streams: dict[str, StreamRedactor] = {}
        self._tail = bytearray()
        self._total = 0
        self._ended = False

    def feed(self, stream: str, data: bytes) -> None:
        if self._redactor:
            redactor = self._streams.setdefault(stream, StreamRedactor(self._redactor))
            data = redactor.feed(data)
        self._total += len(data)
        self._tail += data
        if len(self._tail) > 2 * OUTPUT_LIMIT:
            del self._tail[:-OUTPUT_LIMIT]

    def end(self) -> None:
        """Take what the redactors held back: the output is complete."""
        for redactor in self._streams.values():
            data = redactor.end()
            self._total += len(data)
            self._tail += data
        self._streams.clear()
        self._ended = True

    def read(self, after: int) -> Printed:
        first = self._total - len(self._tail)
        start = max(after, first)
        data = bytes(self._tail[start - first :])
        if not self._ended:
            # An incomplete character at the end is read later, together with its missing bytes.
            _, used = codecs.utf_8_decode(data, "replace", False)
            data = data[:used]
        return Printed(data, min(start + len(data), self._total), start - after)


class _Background(msgspec.Struct, eq=False):
    """One background process."""

    name: str
    command: str
    process: Process
    output: Scrollback
    began: float
    has_ended: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    duration: float = 0.0
    exit: Exit | None = None
    lost: str = ""
    """Why the exit is unknown; empty if it is not."""


class Backgrounds:
    """The background processes of one session, by name."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._group = Group(scope)
        self._entries: dict[str, _Background] = {}
        self._count = 0

    @property
    def is_busy(self) -> bool:
        """Whether a process still runs."""
        return any(not entry.has_ended.is_set() for entry in self._entries.values())

    async def start(
        self,
        argv: Sequence[str],
        *,
        command: str,
        place: Place,
        env: Mapping[str, str],
        cwd: str,
        granted: Needs,
        redactor: Redactor,
    ) -> str:
        if sum(not entry.has_ended.is_set() for entry in self._entries.values()) >= MOST_RUNNING:
            raise ToolFailedError(
                f"{MOST_RUNNING} background processes are running already; end some of them first"
            )
        self._count += 1
        output = Scrollback(redactor)
        process = await place.spawn(
            argv, env=env, cwd=cwd, scope=self._scope, output=output, stdin=True, granted=granted
        )
        began = self._scope.clock.monotonic()
        entry = _Background(f"bg{self._count}", command, process, output, began)
        self._entries[entry.name] = entry
        self._forget_old()
        self._group.start(self._watch(entry), name=entry.name)
        return entry.name

    async def _watch(self, entry: _Background) -> None:
        try:
            entry.exit = await entry.process.wait()
        except WardenLostError as error:
            entry.lost = str(error)
        entry.duration = self._scope.clock.monotonic() - entry.began
        entry.output.end()
        entry.has_ended.set()

    def _forget_old(self) -> None:
        ended = [name for name, entry in self._entries.items() if entry.has_ended.is_set()]
        for name in ended[: max(0, len(self._entries) - MOST_LISTED)]:
            del self._entries[name]

    def processes(self) -> list[BackgroundProcess]:
        return [self._describe(entry) for entry in self._entries.values()]

    def read(self, name: str, *, after: int = 0) -> Printed:
        return self._find(name).output.read(after)

    async def write(self, name: str, text: str) -> None:
        entry = self._find(name)
        try:
            await entry.process.write(text.encode())
        except BrokenPipeError as error:
            raise ToolFailedError(
                f"{name} reads no more input: it has closed it, or has ended"
            ) from error

    async def wait(self, name: str, seconds: float) -> BackgroundProcess:
        entry = self._find(name)
        try:
            async with asyncio.timeout(seconds):
                await entry.has_ended.wait()
        except TimeoutError:
            pass  # it still runs, and the answer says so
        return self._describe(entry)

    async def kill(self, name: str) -> BackgroundProcess:
        entry = self._find(name)
        await entry.process.__aexit__(None, None, None)
        await self.wait(name, 1.0)
        return self._describe(entry)

    async def close(self) -> None:
        """End all background processes."""
        self._scope.cancel("shutdown", by="the session is closed")
        for entry in self._entries.values():
            await entry.process.__aexit__(None, None, None)
        await self._group.leave()
        self._scope.close()

    def _find(self, name: str) -> _Background:
        entry = self._entries.get(name)
        if entry is None:
            names = ", ".join(self._entries) or "none"
            raise ToolFailedError(
                f"there is no background process {name!r} (there are: {names}); "
                "a background process ends when its session or the host is closed"
            )
        return entry

    def _describe(self, entry: _Background) -> BackgroundProcess:
        duration = (
            entry.duration
            if entry.has_ended.is_set()
            else self._scope.clock.monotonic() - entry.began
        )
        return BackgroundProcess(
            name=entry.name,
            command=entry.command,
            running_for=duration,
            ended=entry.exit,
            lost=entry.lost,
        )
