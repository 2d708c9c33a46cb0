"""Ports that fail on demand: every call of a port is a point, and one point of a run fails.

A run without a fault names all points that it passes; each of them can then be made to fail, before
or after what it does. So the points are found, not listed, and a new call cannot be forgotten.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Any, Literal, NamedTuple, cast


class InjectedError(Exception):
    """What a port raises on demand. It is of no kind that Keryx knows."""


class Point(NamedTuple):
    """The nth call of one method of one port."""

    port: str
    method: str
    number: int
    when: Literal["before", "after"]

    def __str__(self) -> str:
        return f"{self.when} call {self.number} of {self.port}.{self.method}"


class Faults:
    """Counts the calls of all ports, and fails at one of them."""

    def __init__(self, target: Point | None = None) -> None:
        self.target = target
        self.passed: list[Point] = []
        self.is_armed = True
        self.struck = False
        self._counts: Counter[tuple[str, str]] = Counter()

    def wrap(self, port: str, subject: Any) -> Any:
        """The same port, with every call a point."""
        if inspect.isroutine(subject) or isinstance(subject, partial):
            return self.wrap_call(port, "call", cast("Callable[..., Any]", subject))
        return _Port(self, port, subject)

    def _number(self, port: str, method: str) -> int:
        self._counts[port, method] += 1
        return self._counts[port, method]

    def _pass(self, point: Point) -> None:
        if not self.is_armed:
            return
        self.passed.append(point)
        if point == self.target:
            self.is_armed, self.struck = False, True
            raise InjectedError(str(point))

    def wrap_call(self, port: str, method: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            number = self._number(port, method)
            if inspect.isasyncgenfunction(work):
                return self._stream(Point(port, method, number, "before"), work(*args, **kwargs))
            self._pass(Point(port, method, number, "before"))
            value = work(*args, **kwargs)
            after = Point(port, method, number, "after")
            if asyncio.iscoroutine(value) or isinstance(value, asyncio.Future):
                return self._awaited(after, value)
            self._pass(after)
            return value

        return call

    async def _awaited(self, after: Point, value: Any) -> Any:
        result = await value
        self._pass(after)
        return result

    async def _stream(self, before: Point, pieces: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
        try:
            self._pass(before)
            async for piece in pieces:
                yield piece
            self._pass(before._replace(when="after"))
        finally:
            await pieces.aclose()


class _Port:
    """Passes everything on to a port."""

    def __init__(self, faults: Faults, name: str, subject: Any) -> None:
        self._faults = faults
        self._name = name
        self._subject = subject

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._subject, name)
        if inspect.ismethod(value) or inspect.isfunction(value):
            return self._faults.wrap_call(self._name, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._subject, name, value)

    def __bool__(self) -> bool:
        return bool(self._subject)
