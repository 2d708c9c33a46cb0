"""One running call of an MCP tool, and the requests that its server makes while it runs.

A server may ask the person, or a model, during a call. Which call it means is told by the context
in which its request arrives, if the transport keeps that; else it is the only call that runs. If
that is not clear, the request is declined: nobody is asked on behalf of a wrong call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from keryx.aio.group import Group
from keryx.ports.tool_context import ToolContext

T = TypeVar("T")

_current_call: ContextVar[RunningCall | None] = ContextVar("keryx_mcp_call", default=None)

Request = Callable[[ToolContext], Coroutine[Any, Any, Any]]
"""What a server wants: asks a person or a model through the context of the call."""


class RunningCall:
    """A call that waits for its server. Its requests are handled one after the other."""

    def __init__(self, context: ToolContext, timeout: float) -> None:
        self.context = context
        self.allows_models = False
        """Whether the person allowed all requests to models for this call."""
        self._timeout = timeout
        self._requests: deque[tuple[Request, asyncio.Future[Any]]] = deque()
        self._more: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_over = False

    async def ask(self, request: Request) -> Any:
        """Pass on a request of the server; None if the call ends before it is answered."""
        if self._is_over:
            return None
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._requests.append((request, answered))
        if not self._more.done():
            self._more.set_result(None)
        return await answered

    async def run(self, group: Group, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Send the call, and handle the requests of its server until it is answered.

        A cancelled call gives control back at once: the package tells the server in a task of
        its own, which a server that does not read could hold for some seconds.
        """
        token = _current_call.set(self)  # the task that sends inherits it
        try:
            sending = group.start(work(), name="mcp call")
        finally:
            _current_call.reset(token)
        asking: asyncio.Task[Any] | None = None
        try:
            while not sending.done():
                await asyncio.wait((sending, self._more), return_when=asyncio.FIRST_COMPLETED)
                while self._requests and not sending.done():
                    request, answered = self._requests.popleft()
                    asking = group.start(self._handle(request, answered), name="mcp request")
                    await asyncio.wait((sending, asking), return_when=asyncio.FIRST_COMPLETED)
                if self._more.done():
                    self._more = asyncio.get_running_loop().create_future()
            return sending.result()
        finally:
            self._is_over = True
            sending.cancel()
            if asking is not None:
                asking.cancel()
            for _, answered in self._requests:
                if not answered.done():  # else the server has withdrawn its request
                    answered.set_result(None)

    async def _handle(self, request: Request, answered: asyncio.Future[Any]) -> None:
        """Answer one request. The time that a person takes does not count as the server's."""
        result: Any = None
        try:
            self.context.cancel_after(_LONGEST_WAIT)
            result = await request(self.context)
            self.context.cancel_after(self._timeout)
        finally:
            if not answered.done():
                answered.set_result(result)


# Seconds: a day. How long a question waits for its answer is decided by the approvals' settings.
_LONGEST_WAIT = 86_400.0


class RunningCalls:
    """The running calls of one connection."""

    def __init__(self) -> None:
        self._calls: set[RunningCall] = set()

    def __len__(self) -> int:
        return len(self._calls)

    async def during(self, call: RunningCall, work: Awaitable[T]) -> T:
        self._calls.add(call)
        try:
            return await work
        finally:
            self._calls.discard(call)

    def find(self) -> RunningCall | None:
        """Return the call that a request of the server belongs to; None if that is not clear."""
        current = _current_call.get()
        if current is not None:
            return current if current in self._calls else None
        return next(iter(self._calls)) if len(self._calls) == 1 else None
