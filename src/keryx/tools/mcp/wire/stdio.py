"""Speaks with a server that is a program: one JSON message a line, over its stdin and stdout.

The `mcp` package would start the program itself. Here the warden starts it, so that it ends with
the host; this module only passes messages between the process and the package's streams. A server
may send anything: lines that are too long, that are not JSON, or more than anybody can handle.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from keryx.aio.capture import OutputSink
from keryx.errors import KeryxError
from keryx.ports.place import Process

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of one message. An image is a few megabytes as text."""
MOST_QUEUED: Final = 2 * LONGEST_LINE
"""Bytes that wait to be handled."""
LONG_LINE: Final = 256 * 1024
"""Bytes. Longer lines are parsed in a thread, so that they do not block the loop."""
MOST_INVALID: Final = 1_000
"""Lines that are no messages: some servers print a few remarks to stdout, a broken one many."""
WRITE_PATIENCE: Final = 10.0
"""Seconds for one message to be written. A server that reads nothing for so long hangs."""
WAITING_MESSAGES: Final = 64
"""Messages that may wait to be written, so that a cancel need not wait for a slow server."""
LAST_WORDS: Final = 2_000
"""Bytes of stderr that an error quotes."""

Spawn = Callable[[OutputSink], Awaitable[Process]]
InThread = Callable[..., Awaitable[Any]]


class ServerOutput:
    """Collects the output of a server: lines of stdout, and the end of stderr."""

    def __init__(self, on_fault: Callable[[str], None]) -> None:
        self._on_fault = on_fault
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._line = bytearray()
        self._stderr = b""
        self._woken = asyncio.Event()
        self._is_over = False

    @property
    def last_words(self) -> str:
        """The end of what the server wrote to stderr."""
        return self._stderr.decode(errors="replace").strip()

    def feed(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._stderr = (self._stderr + data)[-LAST_WORDS:]
            return
        if self._is_over:
            return
        first, *others = data.split(b"\n")
        self._line += first
        for part in others:
            self._add(bytes(self._line))
            self._line = bytearray(part)
        if len(self._line) > LONGEST_LINE:
            self._fail(f"it sent a line of more than {LONGEST_LINE} bytes")
        elif self._size > MOST_QUEUED:
            self._fail("it sends messages faster than they can be handled")
        self._woken.set()

    def end(self) -> None:
        """Accept no more output. What came before is still read."""
        self._is_over = True
        self._woken.set()

    async def next_line(self) -> bytes | None:
        """Return the next line; None: there is no more."""
        while not self._lines:
            if self._is_over:
                return None
            self._woken.clear()
            await self._woken.wait()
        line = self._lines.popleft()
        self._size -= len(line)
        return line

    def _add(self, line: bytes) -> None:
        if line.strip():
            self._lines.append(line)
            self._size += len(line)

    def _fail(self, fault: str) -> None:
        self._lines.clear()
        self._line.clear()
        self.end()
        self._on_fault(fault)


class StdioTransport:
    """The transport of one connection to a program, for `mcp.Client`."""

    def __init__(self, spawn: Spawn, in_thread: InThread, on_fault: Callable[[str], None]) -> None:
        """`on_fault` gets the reason, in words, once the connection cannot be used any more."""
        self._spawn = spawn
        self._in_thread = in_thread
        self._on_fault = on_fault
        self._output = ServerOutput(on_fault)
        self._invalid = 0
        self._open = self._streams()

    async def __aenter__(self) -> TransportStreams:
        return await self._open.__aenter__()

    async def __aexit__(self, *exc: object) -> bool | None:
        return await self._open.__aexit__(*cast("tuple[Any, Any, Any]", exc))

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[TransportStreams]:
        incoming: MemoryObjectSendStream[SessionMessage | Exception]
        to_write: MemoryObjectReceiveStream[SessionMessage]
        incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, to_write = anyio.create_memory_object_stream[SessionMessage](WAITING_MESSAGES)
        with incoming, received, sent, to_write:
            async with (
                await self._spawn(self._output) as process,
                anyio.create_task_group() as group,
            ):
                group.start_soon(self._read, incoming)
                group.start_soon(self._write, process, to_write)
                group.start_soon(self._watch, process)
                try:
                    yield received, sent
                finally:
                    process.close_stdin()
                    group.cancel_scope.cancel()

    async def _read(self, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        with incoming, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while (line := await self._output.next_line()) is not None:
                is_long = len(line) > LONG_LINE
                message = await self._in_thread(_parsed, line) if is_long else _parsed(line)
                if message is not None:
                    await incoming.send(SessionMessage(message))
                    continue
                self._invalid += 1
                if self._invalid > MOST_INVALID:
                    self._on_fault(f"it sent {self._invalid} lines that are no MCP messages")
                    return

    async def _write(
        self, process: Process, to_write: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        async for message in to_write:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                async with asyncio.timeout(WRITE_PATIENCE):
                    await process.write(text.encode() + b"\n")
            except TimeoutError:
                self._on_fault(f"it has read nothing for {WRITE_PATIENCE:g} seconds")
                return
            except OSError:
                return  # it closed its stdin, and will end: `_watch` reports how

    async def _watch(self, process: Process) -> None:
        try:
            end = await process.wait()
        except KeryxError as error:
            how = str(error)
        else:
            how = f"exit code {end.code}" if end.code is not None else f"signal {end.signal}"
            how = end.cause or how
        words = self._output.last_words
        self._output.end()
        self._on_fault(f"its program ended ({how})" + (f"; it wrote: {words}" if words else ""))


def _parsed(line: bytes) -> mcp_types.JSONRPCMessage | None:
    try:
        return mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except (ValueError, RecursionError):
        return None
