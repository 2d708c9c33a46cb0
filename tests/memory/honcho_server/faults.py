"""How the server misbehaves when a test tells it to."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal, get_args

from aiohttp import web
from pydantic import BaseModel, ConfigDict

from tests.memory.honcho_server.state import RefusedError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Fault = Literal[
    "slow",  # answers, after a moment
    "error",  # 500, and nothing is stored
    "error_after",  # 500, although it is stored
    "drop",  # closes the connection, and nothing is stored
    "drop_after",  # closes the connection, although it is stored
    "hang",  # never answers, and nothing is stored
    "hang_after",  # never answers, although it is stored
    "late",  # closes the connection, and stores it after a moment
    "hold",  # waits for the next orders, and answers then
    "busy",  # 429, with a time to wait
    "odd",  # an answer that is none of the API's
    "refuse",  # 422 that names no item
    "unauthorized",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
NO_ANSWER = 3_600.0


class Orders(BaseModel):
    """What a test wants: faults at random, and faults for the next requests that match."""

    model_config = ConfigDict(extra="forbid")
    rate: float = 0.0
    seed: int = 1
    kinds: list[Fault] = []
    late: float = 0.05
    retry_after: float = 0.05
    script: list[tuple[str, Fault]] = []
    """Each is done once: a pattern of `POST /path`, and what happens to the first that matches."""


class Faults:
    """Decides what happens to a request, and counts requests and refusals."""

    def __init__(self) -> None:
        self.orders = Orders()
        self._dice = random.Random(1)
        self.requests: dict[str, int] = {}
        self.refusals: list[Any] = []
        self.misbehaved: dict[Fault, int] = {}
        self.held: list[str] = []
        """The sessions whose requests wait for the next orders."""
        self._next_orders = asyncio.Event()
        self._late: set[asyncio.Task[Any]] = set()

    def order(self, orders: Orders) -> None:
        self.orders = orders
        self._dice = random.Random(orders.seed)
        self._next_orders.set()
        self._next_orders = asyncio.Event()

    def _next(self, request: web.Request) -> Fault | None:
        line = f"{request.method} {request.path}"
        for entry in self.orders.script:
            if re.search(entry[0], line):
                self.orders.script.remove(entry)
                return entry[1]
        if self.orders.kinds and self._dice.random() < self.orders.rate:
            return self._dice.choice(self.orders.kinds)
        return None

    async def handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith("/control"):
            return await handler(request)
        route = request.match_info.route.resource
        name = f"{request.method} {route.canonical if route else request.path}"
        self.requests[name] = self.requests.get(name, 0) + 1
        await request.read()
        fault = self._next(request)
        if fault is None:
            return await self._answer(request, handler)
        self.misbehaved[fault] = self.misbehaved.get(fault, 0) + 1
        if fault in ("error_after", "drop_after", "hang_after"):
            await self._answer(request, handler)
        if fault == "late":
            task = asyncio.create_task(self._answer_late(request, handler))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
        return await self._misbehave(request, handler, fault)

    async def _misbehave(
        self, request: web.Request, handler: Handler, fault: Fault
    ) -> web.StreamResponse:
        if fault == "hold":
            name = request.match_info.get("session", request.path)
            self.held.append(name)
            await self._next_orders.wait()
            self.held.remove(name)
            return await self._answer(request, handler)
        if fault == "slow":
            await asyncio.sleep(0.02)
            return await self._answer(request, handler)
        if fault in ("hang", "hang_after"):
            await asyncio.sleep(NO_ANSWER)
        if fault in ("drop", "drop_after", "late") and request.transport is not None:
            request.transport.abort()
        if fault == "busy":
            wait = {"Retry-After": str(self.orders.retry_after)}
            return web.json_response({"detail": "slow down"}, status=429, headers=wait)
        if fault == "odd":
            return web.json_response({"surprise": [1, 2, 3]})
        if fault == "unauthorized":
            return web.json_response({"detail": "Invalid JWT"}, status=401)
        status = 422 if fault == "refuse" else 500
        return web.json_response({"detail": "An unexpected error occurred"}, status=status)

    async def _answer_late(self, request: web.Request, handler: Handler) -> None:
        await asyncio.sleep(self.orders.late)
        with suppress(RefusedError):
            await handler(request)

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except RefusedError as error:
            self.refusals.append([request.method, request.path, error.status, error.detail])
            return web.json_response({"detail": error.detail}, status=error.status)
        except web.HTTPException as error:
            self.refusals.append([request.method, request.path, error.status, error.reason])
            raise
