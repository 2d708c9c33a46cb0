"""One MCP server: connected when it is first used, and again after it has failed.

idle → connecting → ready → failed. After a failure the next use connects again, after a delay that
grows with every failure in a row, so that a broken server is not started over and over.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from keryx.aio.bridge import Bridge
from keryx.aio.capture import OutputSink
from keryx.aio.clock import Clock
from keryx.aio.group import Group
from keryx.errors import KeryxError, ToolFailedError, UserMustActError
from keryx.ports.place import Process
from keryx.ports.tool_context import ToolContext
from keryx.tools.mcp.listing import Listing, write_listing
from keryx.tools.mcp.settings import ServerSettings
from keryx.tools.mcp.tool import McpTool, Sent, build_tools, checked_listing

if TYPE_CHECKING:
    from keryx.tools.mcp.wire.connection import Connection

State = Literal["idle", "connecting", "ready", "failed"]

CONNECT_TIMEOUT: Final = 60.0
"""Seconds. A package manager may download the server when it is first started."""
FIRST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 60.0
LONGEST_REASON: Final = 500  # characters of a failure in the prompt; an error in a call is longer

Spawn = Callable[[str, ServerSettings, OutputSink], Awaitable[Process]]
"""Starts the program of a server: its name, its settings, and where its output goes."""


class Surroundings(msgspec.Struct, frozen=True, eq=False):
    """What the servers of one host use."""

    bridge: Bridge
    group: Group
    clock: Clock
    spawn: Spawn
    folder: Path
    """Where listings and logins are stored."""


class McpServer:
    """The connection to one server, its tools, and why they are missing if they are."""

    def __init__(self, name: str, settings: ServerSettings, surroundings: Surroundings) -> None:
        self.name = name
        self.settings = settings
        self.tools: list[McpTool] = []
        self.problems: tuple[str, ...] = ()
        """What is wrong with its listing; the tools that are named there are left out."""
        self.login: str | None = None
        """An address at which the person must log in before it can be used."""
        self.is_listed = False
        self._around = surroundings
        self._connection: Connection | None = None
        self._connecting: asyncio.Task[Connection] | None = None
        self._changed = asyncio.Event()
        self._failures, self.retry_at, self._fault = 0, 0.0, ""

    @property
    def timeout(self) -> float:
        return self.settings.timeout

    @property
    def state(self) -> State:
        if self._open_connection() is not None:
            return "ready"
        if self._connecting is not None:
            return "connecting"
        return "failed" if self._failure else "idle"

    @property
    def _failure(self) -> str:
        if self._connection is not None and not self._connection.is_open:
            return self._connection.fault
        return self._fault

    @property
    def fault(self) -> str:
        """Why it is not available, in words; empty if nothing is known to be wrong."""
        return " ".join(self._failure.split())[:LONGEST_REASON]

    # -- use

    async def call(self, tool: str, args: dict[str, Any], context: ToolContext, sent: Sent) -> Any:
        connection = await self._connected(context)
        sent.is_sent = True
        try:
            result = await connection.call(tool, args, context, self.timeout)
        except ToolFailedError as error:
            if connection.is_open:
                self._failures = 0
                raise
            self._note_failure(connection.fault)
            raise ToolFailedError(
                f"the MCP server {self.name} ended during the call: {connection.fault}. "
                "It may have done a part of its work; check that before you call it again."
            ) from error
        self._failures = 0
        return result

    async def list(self) -> None:
        """Connect, unless it is connected. Errors are in `fault`."""
        try:
            await self._connect()
        except KeryxError:
            return

    def start_listing(self) -> None:
        """Connect in the background, if it is time to try."""
        if self.state in ("idle", "failed") and self._is_time():
            self._start_connecting()

    async def wait_listed(self) -> None:
        """Wait until it is listed, has failed, or waits for a login."""
        while self._connecting is not None and self.login is None:
            self._changed.clear()
            await self._changed.wait()

    def use_listing(self, listing: Listing) -> None:
        """Take the tools from a listing: the server's own, or a stored one."""
        self.tools, problems = build_tools(self, listing.tools)
        self.problems = (*listing.problems, *problems)
        self.is_listed = True

    async def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait((self._connecting,), timeout=1.0)
        if self._connection is not None:
            await self._connection.close()

    # -- connecting

    def _open_connection(self) -> Connection | None:
        connection = self._connection
        return connection if connection is not None and connection.is_open else None

    async def _connected(self, context: ToolContext) -> Connection:
        """Return an open connection, for a call. `ToolFailedError` says what to do."""
        if (connection := self._open_connection()) is not None:
            return connection
        if self.state != "connecting" and not self._is_time():
            seconds = max(1, round(self.retry_at - self._around.clock.monotonic()))
            raise ToolFailedError(
                f"the MCP server {self.name} does not work: {self._failure}. It is tried again "
                f"in {seconds} s at the earliest; go on without it, or tell the person."
            )
        connecting = self._start_connecting()
        await self.wait_listed()
        fault = ""
        if self.login is not None:
            answer = await context.ask(_login_text(self.name, self.login), ("done", "not now"))
            if answer == "done":
                await asyncio.wait((connecting,))
            fault = "it needs a login, and the person has not logged in"
        if (connection := self._open_connection()) is not None:
            return connection
        raise ToolFailedError(
            f"the MCP server {self.name} cannot be used: {self._failure or fault}. "
            "Go on without it, or tell the person."
        )

    async def _connect(self) -> Connection:
        if (connection := self._open_connection()) is not None:
            return connection
        # Others wait for the same connection: a cancelled call must not end it.
        return await asyncio.shield(self._start_connecting())

    def _start_connecting(self) -> asyncio.Task[Connection]:
        if self._connecting is None:
            work = self._open()
            self._connecting = self._around.group.start(work, name=f"connect mcp {self.name}")
            self._connecting.add_done_callback(self._end_connecting)
        return self._connecting

    def _end_connecting(self, task: asyncio.Task[Connection]) -> None:
        self._connecting = None
        self.login = None
        if task.cancelled():
            self._note_failure("connecting was given up")
        elif (error := task.exception()) is not None:
            self._note_failure(str(error))
        else:
            self._connection, self._fault = task.result(), ""
        self._changed.set()

    async def _open(self) -> Connection:
        around = self._around
        try:
            wire = await around.bridge.to_thread(_load_wire)
        except ImportError as error:
            raise ToolFailedError(f"{error}; run: pip install 'keryx[mcp]'") from error
        if self._connection is not None:
            await self._connection.close()
        # A few old servers end when they are asked something that they do not know.
        mode = "auto" if self._failures % 2 == 0 else "legacy"
        connection: Connection = wire.Connection(self.name, around.group, self._list_again)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT) as limit:
                transport = self._transport(connection, limit)
                await connection.open(transport, mode=mode)
                listing = await connection.list_tools()
        except TimeoutError:
            connection.fail(f"it did not answer within {CONNECT_TIMEOUT:g} seconds")
            await connection.close()
            raise ToolFailedError(connection.fault) from None
        except BaseException:
            await connection.close()
            raise
        await self._take(listing)
        return connection

    def _transport(self, connection: Connection, limit: asyncio.Timeout) -> Any:
        settings, around = self.settings, self._around
        if settings.url is not None:

            def wait_for_login(address: str | None) -> None:
                self.login = address
                self._changed.set()
                if self._connecting is not None:
                    # A person takes as long as it takes; the login has a limit of its own.
                    now = asyncio.get_running_loop().time()
                    limit.reschedule(None if address else now + CONNECT_TIMEOUT)
                elif address is not None:
                    asking = connection.ask_to_log_in(_login_text(self.name, address))
                    around.group.start(asking, name=f"login {self.name}")

            http: Any = importlib.import_module("keryx.tools.mcp.wire.http")
            logins = around.folder / "logins" / f"{self.name}.json"
            return http.transport(settings, logins, around.bridge.to_thread, wait_for_login)
        stdio: Any = importlib.import_module("keryx.tools.mcp.wire.stdio")

        async def spawn(output: OutputSink) -> Process:
            try:
                return await around.spawn(self.name, settings, output)
            except UserMustActError as error:
                raise ToolFailedError(str(error)) from error

        return stdio.StdioTransport(spawn, around.bridge.to_thread, connection.fail)

    async def _take(self, listing: Listing) -> None:
        """Use what the server lists now, and store it for the next start."""
        around = self._around
        listing = await around.bridge.to_thread(checked_listing, listing)
        self.use_listing(listing)
        try:
            await around.bridge.to_thread(
                write_listing, around.folder / "listings", self.name, self.settings, listing
            )
        except OSError as error:
            self.problems = (*self.problems, f"its listing cannot be stored: {error}")

    async def _list_again(self, connection: Connection) -> None:
        """The server says that its tools have changed."""
        if self._connecting is not None:  # the first listing may be older than the change
            await asyncio.wait((self._connecting,))
        if connection is not self._open_connection():
            return
        try:
            await self._take(await connection.list_tools())
        except ToolFailedError as error:
            text = f"its tools changed, and cannot be listed: {error}"
            self.problems = (*(old for old in self.problems if old != text), text)

    # -- failures

    def _is_time(self) -> bool:
        return not self._failure or self._around.clock.monotonic() >= self.retry_at

    def _note_failure(self, fault: str) -> None:
        """Remember the failure. The first one may be tried again at once."""
        self._fault = fault
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** (self._failures - 1)) if self._failures else 0
        self._failures += 1
        self.retry_at = self._around.clock.monotonic() + delay


def _login_text(server: str, address: str) -> str:
    return f"The MCP server {server} needs a login. Open {address} and log in there."


def _load_wire() -> Any:
    """Import the package, in a thread: it takes a second."""
    importlib.import_module("keryx.tools.mcp.schemas").load()
    for name in ("stdio", "http"):
        importlib.import_module(f"keryx.tools.mcp.wire.{name}")
    return importlib.import_module("keryx.tools.mcp.wire.connection")
