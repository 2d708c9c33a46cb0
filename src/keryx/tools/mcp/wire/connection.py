"""One connection to an MCP server: opened, used by any number of calls, closed.

It lives in one task, because the package's cancel scopes must be left where they were entered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, cast

import mcp_types
from mcp.client import Client, IncomingMessage, Transport
from mcp.shared.exceptions import MCPError

from keryx.aio.group import Group
from keryx.errors import KeryxError, ToolFailedError
from keryx.ports.tool_context import ToolContext
from keryx.tools.mcp.listing import MOST_TOOLS, ListedTool, Listing, bounded
from keryx.tools.mcp.wire.asking import Asking
from keryx.tools.mcp.wire.pages import list_page
from keryx.tools.mcp.wire.results import bound_checks, fields_of, parts_of, text_of
from keryx.tools.mcp.wire.running import RunningCall, RunningCalls

MOST_PAGES: Final = 100
"""Pages of one listing; a server whose listing never ends must not hang anybody."""
CLOSE_PATIENCE: Final = 1.0
"""Seconds for a graceful end: the end of a session is told to the server."""
FAULT_PATIENCE: Final = 1.0
"""Seconds until the reason of a lost connection is known; it takes some steps of the loop."""
LONGEST_ERROR: Final = 2_000


class ConnectionLostError(ToolFailedError):
    """The connection ended; the text says why."""


class Connection:
    """An open connection, or one that is being opened."""

    def __init__(
        self,
        server: str,
        group: Group,
        on_changed: Callable[[Connection], Coroutine[Any, Any, None]],
    ) -> None:
        """`on_changed` runs when the server says that its tools have changed, once at a time."""
        self.server = server
        self._group = group
        self._on_changed = on_changed
        self._has_changed = False
        self._changing: asyncio.Task[None] | None = None
        self._calls = RunningCalls()
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._fault: str | None = None
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_open(self) -> bool:
        return self._client is not None and not self._stop.is_set()

    @property
    def fault(self) -> str:
        """Why the connection ended or could not be opened, in words."""
        return self._fault or "the connection was closed"

    def fail(self, fault: str) -> None:
        """End the connection; the first reason counts."""
        if self._fault is None:
            self._fault = fault[:LONGEST_ERROR]
        self._stop.set()

    async def open(self, transport: Transport, *, mode: str) -> None:
        """Connect. `ConnectionLostError` says why that is not possible."""
        asking = Asking(self.server, self._calls)
        client = Client(
            transport,
            mode=mode,
            client_info=mcp_types.Implementation(name="keryx", version="1"),
            elicitation_callback=asking.elicit,
            sampling_callback=asking.sample,
            message_handler=self._notified,
            cache=None,
        )
        self._task = self._group.start(self._live(client), name=f"mcp {self.server}")
        try:
            await asyncio.wait((self._opened, self._task), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.fail("connecting was given up")
            self._task.cancel()
            raise
        if self._client is None:
            raise ConnectionLostError(self.fault)

    async def _live(self, client: Client) -> None:
        """Hold the connection until it is stopped. Any fault of it ends here."""
        stopped = self._group.start(self._stop.wait(), name=f"mcp {self.server} stop")
        opening = asyncio.current_task()
        assert opening is not None

        def give_up(_: object) -> None:
            # Only while it opens: a program that ended will never answer.
            if self._client is None:
                opening.cancel()

        stopped.add_done_callback(give_up)
        listening: asyncio.Task[None] | None = None
        try:
            async with client:
                bound_checks(client.session)
                self._client = client
                self._opened.set_result(None)
                listening = self._group.start(self._listen(client), name=f"listen {self.server}")
                await asyncio.wait((stopped,))
                # Before the client is left: it ends its subscription properly.
                listening.cancel()
                await asyncio.wait((listening,), timeout=CLOSE_PATIENCE)
        except asyncio.CancelledError:
            self.fail("it was given up")
        except Exception as error:  # noqa: BLE001 (the package raises what the network, a program or a lie made it raise)
            self.fail(described(error))
        finally:
            self._stop.set()
            self._client = None
            stopped.cancel()
            if listening is not None:
                listening.cancel()

    async def _listen(self, client: Client) -> None:
        """Wait for changes of the tools. New servers must be asked for them; old ones tell."""
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._note_change()
        except Exception as error:  # noqa: BLE001 (without it the tools are those of the first listing)
            del error

    async def close(self) -> None:
        """End the connection and everything that belongs to it."""
        self.fail("the connection was closed")
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=CLOSE_PATIENCE)
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=CLOSE_PATIENCE)

    async def list_tools(self) -> Listing:
        """Ask the server for all of its tools."""
        client, cursor = self._open_client(), None
        tools: list[ListedTool] = []
        problems: list[str] = []
        for _ in range(MOST_PAGES):
            page, faults = await self._request(list_page(client, cursor))
            tools += map(_listed, page.tools)
            problems += faults
            cursor = page.next_cursor
            if not cursor or len(tools) > MOST_TOOLS:
                break
        return bounded(Listing(tools=tuple(tools), problems=tuple(problems)))

    async def call(
        self, tool: str, arguments: dict[str, Any], context: ToolContext, seconds: float
    ) -> Any:
        """Call a tool, for at most so many seconds; `ToolFailedError` says why it fails.

        A cancelled call tells the server, and waits for nothing.
        """
        client = self._open_client()

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            try:
                context.progress(progress, total, message or "")
            except KeryxError:
                return  # the call has its outcome

        async def send() -> mcp_types.CallToolResult:
            return await self._request(
                client.call_tool(tool, arguments, progress_callback=progressed)
            )

        call = RunningCall(context, seconds)
        result = await self._calls.during(call, call.run(self._group, send))
        if result.is_error:
            raise ToolFailedError(text_of(result) or f"{tool} failed, and does not say why")
        if context.nested:
            return fields_of(result)

        async def keep(data: bytes) -> str:
            files = await context.to_thread(lambda: context.files)
            return await files.keep(data)

        return await parts_of(result, keep)

    async def ask_to_log_in(self, text: str) -> None:
        """Ask the person of the call for which the server wants another login."""
        call = self._calls.find()
        if call is not None:
            await call.ask(lambda context: context.ask(text, ("done", "not now")))

    def _open_client(self) -> Client:
        if self._client is None or self._stop.is_set():
            raise ConnectionLostError(self.fault)
        return self._client

    async def _request(self, request: Awaitable[Any]) -> Any:
        """Return the answer; `ToolFailedError` in words, whatever went wrong with it."""
        try:
            return await request
        except MCPError as error:
            if error.code == mcp_types.CONNECTION_CLOSED:
                await self._wait_for_fault()
                raise ConnectionLostError(self.fault) from error
            if "Session terminated" in error.message:
                self.fail("the server has ended the session")
            raise ToolFailedError(f"the server answers: {error.message[:LONGEST_ERROR]}") from error
        except KeryxError:
            raise
        except Exception as error:
            raise ToolFailedError(
                f"the answer of the server cannot be used: {described(error)}"
            ) from error

    async def _wait_for_fault(self) -> None:
        """Wait for the reason of a lost connection, which comes from the task that holds it."""
        try:
            async with asyncio.timeout(FAULT_PATIENCE):
                await self._stop.wait()
        except TimeoutError:
            self.fail("the connection was closed")

    async def _notified(self, message: IncomingMessage) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._note_change()

    def _note_change(self) -> None:
        """A server may say any number of times that its tools have changed."""
        self._has_changed = True
        if self._changing is None:
            self._changing = self._group.start(self._change(), name=f"change {self.server}")

    async def _change(self) -> None:
        try:
            while self._has_changed and self.is_open:
                self._has_changed = False
                await self._on_changed(self)
        finally:
            self._changing = None


def described(error: BaseException) -> str:
    """Return an error of the package in words. Groups of errors are told by their first one."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    text = str(error) or type(error).__name__
    if isinstance(error, MCPError | KeryxError):
        return text[:LONGEST_ERROR]
    return f"{type(error).__name__}: {text}"[:LONGEST_ERROR]


def _listed(tool: mcp_types.Tool) -> ListedTool:
    hints = tool.annotations or mcp_types.ToolAnnotations()
    return ListedTool(
        name=tool.name,
        description=tool.description or tool.title or "",
        schema=tool.input_schema,
        read_only=hints.read_only_hint is True,
        destructive=hints.destructive_hint is True,
        open_world=hints.open_world_hint is not False,
    )
