"""The host's side of one worker process: start it, learn its address, notice its end."""

from __future__ import annotations

import asyncio
import re
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from keryx.aio.group import Group
from keryx.decoding import decode_json
from keryx.errors import ModelError, SpawnError, WardenLostError
from keryx.models.embedded.model_file import ModelFile
from keryx.warden import Process, Warden
from keryx.warden.process import Exit

LOAD_TIMEOUT: Final = 600.0
"""Seconds until a model must be loaded: a large file on a slow disk takes minutes."""
EXIT_REPORT: Final = 2.0
"""Seconds from a connection that broke until the worker's end is reported, if it ended."""
MAX_LINE: Final = 1 << 16
MAX_LOG: Final = 1 << 14
"""Bytes of the worker's last error messages that are kept."""

# Isolated: neither the environment nor the working directory affects what it imports.
_PROGRAM: Final = (
    sys.executable,
    "-I",
    "-X",
    "utf8",
    str(Path(__file__).with_name("worker.py")),
)
_CAUSE: Final = re.compile(r"error loading model: (.+)|(gguf_init\w*: .+)")


class _Ready(msgspec.Struct, frozen=True):
    """The worker's one line: where it serves, or why it cannot."""

    address: str = ""
    window: int = 0
    tools: bool = False
    error: str = ""


class WorkerProcess:
    """A worker that has loaded its model."""

    def __init__(
        self, file: ModelFile, process: Process, ended: asyncio.Future[str], ready: _Ready, key: str
    ) -> None:
        self.file: Final = file
        self.address: Final = ready.address
        self.window: Final = ready.window
        self.has_tools: Final = ready.tools
        """Whether the template of its messages has tools."""
        self.key: Final = key
        self.pid: Final = process.pid
        self._process = process
        self._ended = ended

    def __repr__(self) -> str:
        return f"WorkerProcess({str(self.file.path)!r}, pid={self.pid})"

    @property
    def is_running(self) -> bool:
        return not self._ended.done()

    async def wait_ended(self) -> str:
        """Return how the process ended; the empty text if it still runs after a moment."""
        await asyncio.wait([self._ended], timeout=EXIT_REPORT)
        return self._ended.result() if self._ended.done() else ""

    def kill(self) -> None:
        self._process.kill()


class _Output:
    """Takes the worker's output: one line on stdout, the log of its library on stderr."""

    def __init__(self, first_line: asyncio.Future[bytes | None]) -> None:
        self._first_line = first_line
        self._line = b""
        self.log = b""

    def feed(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self.log = (self.log + data)[-MAX_LOG:]
        elif not self._first_line.done():
            self._line += data
            if b"\n" in self._line or len(self._line) > MAX_LINE:
                self._first_line.set_result(self._line)


async def start_worker(
    warden: Warden, group: Group, file: ModelFile, packages: str
) -> WorkerProcess:
    """Start a worker and wait until its model is loaded; `ModelError` says why it is not."""
    loop = asyncio.get_running_loop()
    first_line: asyncio.Future[bytes | None] = loop.create_future()
    ended: asyncio.Future[str] = loop.create_future()
    output, scope, key = _Output(first_line), group.scope, secrets.token_hex(32)
    try:
        process = await warden.spawn(
            _PROGRAM, env={}, cwd="/", scope=scope, output=output, stdin=True
        )
    except SpawnError as error:
        raise ModelError(
            "internal", f"the process of the model cannot be started: {error}", "try again"
        ) from error

    async def watch() -> None:
        async with process:
            ended.set_result(_end_text(await _exit(process)))
        if not first_line.done():
            first_line.set_result(None)

    group.start(watch(), name=f"model {file.path.name}")
    overdue = scope.deadlines.add(scope.clock.monotonic() + LOAD_TIMEOUT, process.kill)
    try:
        with suppress(BrokenPipeError):  # it has ended already, which is reported
            await process.write(_order(file, packages, key))
        line = await first_line
    except BaseException:
        process.kill()  # nobody else would ever use it
        raise
    finally:
        scope.deadlines.drop(overdue)
    ready = _read(line)
    if not ready.address:
        process.kill()
        raise _not_loaded(file, output.log, ready.error or await asyncio.shield(ended))
    return WorkerProcess(file, process, ended, ready, key)


def _order(file: ModelFile, packages: str, key: str) -> bytes:
    order = {
        "path": str(file.path),
        "packages": packages,
        "key": key,
        "slots": file.slots,
        "window": file.window,
        "temperature": file.temperature,
    }
    return msgspec.json.encode(order) + b"\n"


def _read(line: bytes | None) -> _Ready:
    if line is None:
        return _Ready()
    try:
        return decode_json(line, _Ready)
    except msgspec.DecodeError:
        return _Ready(error="its first line cannot be read")


async def _exit(process: Process) -> Exit | WardenLostError:
    try:
        return await process.wait()
    except WardenLostError as error:
        return error


def _end_text(end: Exit | WardenLostError) -> str:
    if isinstance(end, WardenLostError):
        return "its warden ended"
    if end.signal is not None:
        return end.cause or f"signal {end.signal}"
    return f"exit code {end.code}"


def _not_loaded(file: ModelFile, log: bytes, cause: str) -> ModelError:
    """Return the error for a file that the library refuses; its log has the reason."""
    text = log.decode(errors="replace")
    match = _CAUSE.search(text)
    reason = cause if match is None else (match[1] or match[2])
    printable = "".join(c if c.isprintable() else " " for c in reason)[:300]
    return ModelError(
        "model_not_found",
        f"{file.path} cannot be loaded: {printable}",
        "get the file again, or name another GGUF file; a large one also needs enough memory",
    )
