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

# What is kept of the output of each: enough to look back, small enough for many.
KEPT_OUTPUT: Final = 1 << 20
# A session that needs more at once has lost sight of them.
MOST_RUNNING: Final = 32
MOST_KEPT: Final = 100


class Scrollback:
    """The end of an endless output, read from any place that is still kept."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._streams: dict[str, StreamRedactor] = {}
        self._tail = bytearray()
        self._total = 0
        self._ended = False

    def feed(self, stream: str, data: bytes) -> None:
        if self._redactor:
            through = self._streams.setdefault(stream, StreamRedactor(self._redactor))
            data = through.feed(data)
        self._total += len(data)
        self._tail += data
        if len(self._tail) > 2 * KEPT_OUTPUT:
            del self._tail[:-KEPT_OUTPUT]

    def end(self) -> None:
        """Nothing more comes: what was held back is shown."""
        for through in self._streams.values():
            rest = through.end()
            self._total += len(rest)
            self._tail += rest
        self._streams.clear()
        self._ended = True

    def read(self, after: int) -> Printed:
        first = self._total - len(self._tail)
        start = max(after, first)
        data = bytes(self._tail[start - first :])
        if not self._ended:
            # The rest of a character that has begun to come is read with its beginning.
            _, used = codecs.utf_8_decode(data, "replace", False)
            data = data[:used]
        return Printed(data, min(start + len(data), self._total), start - after)


class _Kept(msgspec.Struct, eq=False):
    name: str
    command: str
    process: Process
    output: Scrollback
    began: float
    over: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    took: float = 0.0
    ended: Exit | None = None
    lost: str = ""


class Backgrounds:
    """The background processes of one session, by name."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._group = Group(scope)
        self._kept: dict[str, _Kept] = {}
        self._count = 0

    @property
    def is_busy(self) -> bool:
        """Whether one of them still runs."""
        return any(not kept.over.is_set() for kept in self._kept.values())

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
        if sum(not kept.over.is_set() for kept in self._kept.values()) >= MOST_RUNNING:
            raise ToolFailedError(
                f"{MOST_RUNNING} background processes run already; end some of them first"
            )
        self._count += 1
        output = Scrollback(redactor)
        process = await place.spawn(
            argv, env=env, cwd=cwd, scope=self._scope, output=output, stdin=True, granted=granted
        )
        began = self._scope.clock.monotonic()
        kept = _Kept(f"bg{self._count}", command, process, output, began)
        self._kept[kept.name] = kept
        self._forget_old()
        self._group.start(self._watch(kept), name=kept.name)
        return kept.name

    async def _watch(self, kept: _Kept) -> None:
        try:
            kept.ended = await kept.process.wait()
        except WardenLostError as error:
            kept.lost = str(error)
        kept.took = self._scope.clock.monotonic() - kept.began
        kept.output.end()
        kept.over.set()

    def _forget_old(self) -> None:
        over = [name for name, kept in self._kept.items() if kept.over.is_set()]
        for name in over[: max(0, len(self._kept) - MOST_KEPT)]:
            del self._kept[name]

    def processes(self) -> list[BackgroundProcess]:
        return [self._tell(kept) for kept in self._kept.values()]

    def read(self, name: str, *, after: int = 0) -> Printed:
        return self._find(name).output.read(after)

    async def write(self, name: str, text: str) -> None:
        kept = self._find(name)
        try:
            await kept.process.write(text.encode())
        except BrokenPipeError as error:
            raise ToolFailedError(f"{name} reads no more input") from error

    async def wait(self, name: str, seconds: float) -> BackgroundProcess:
        kept = self._find(name)
        try:
            async with asyncio.timeout(seconds):
                await kept.over.wait()
        except TimeoutError:
            pass  # it runs on, and that is the answer
        return self._tell(kept)

    async def kill(self, name: str) -> BackgroundProcess:
        kept = self._find(name)
        await kept.process.__aexit__(None, None, None)
        await self.wait(name, 1.0)
        return self._tell(kept)

    async def close(self) -> None:
        """End them all."""
        self._scope.cancel("shutdown", by="the session is closed")
        for kept in self._kept.values():
            await kept.process.__aexit__(None, None, None)
        await self._group.leave()
        self._scope.close()

    def _find(self, name: str) -> _Kept:
        found = self._kept.get(name)
        if found is None:
            known = ", ".join(self._kept) or "none"
            raise ToolFailedError(
                f"there is no background process {name!r} (there are: {known}); "
                "they end with the session and with its host"
            )
        return found

    def _tell(self, kept: _Kept) -> BackgroundProcess:
        took = kept.took if kept.over.is_set() else self._scope.clock.monotonic() - kept.began
        return BackgroundProcess(
            name=kept.name,
            command=kept.command,
            running_for=took,
            ended=kept.ended,
            lost=kept.lost,
        )
