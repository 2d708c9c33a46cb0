"""Calls async code from a blocking program: it runs on a loop in a thread of its own."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, TypeVar

from keryx.aio.loops import LoopThread
from keryx.errors import DeveloperMustActError

T = TypeVar("T")


class Caller:
    """Runs async code on a loop in its own thread. Any thread of this process may call it."""

    def __init__(self) -> None:
        self._thread = LoopThread()
        self._pid = os.getpid()

    def __call__(
        self,
        work: Callable[..., Coroutine[Any, Any, T]],
        *args: Any,
        timeout: float | None = None,
        **options: Any,
    ) -> T:
        """Run async code on the loop and block for its result."""
        if os.getpid() != self._pid:
            raise DeveloperMustActError(
                "this Keryx was made before the process forked, and its thread stayed behind; "
                "make one in each process"
            )
        return self._thread.call(lambda: work(*args, **options), timeout=timeout)

    def stream(self, items: AsyncGenerator[T]) -> Generator[T]:
        """Iterate over an async stream; it is closed when the program leaves the loop."""

        async def pull() -> tuple[T] | None:
            try:
                return (await anext(items),)
            except StopAsyncIteration:
                return None

        try:
            while (pulled := self(pull)) is not None:
                yield pulled[0]
        finally:
            self(items.aclose)

    def close(self) -> None:
        self._thread.close()
