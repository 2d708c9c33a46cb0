"""Retries temporary failures: the delays, and a model that retries.

It owns the number of attempts and the delays. It refuses to know why a model fails: the error says
whether it is temporary.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Final

from keryx.errors import ModelError
from keryx.ports.model import Finished, Model, ModelRequest, Piece, unfinished
from keryx.ports.model import Retrying as RetryingPiece

Sleep = Callable[[float], Awaitable[None]]

ATTEMPTS: Final = 5
FIRST_DELAY: Final = 0.5
MAX_DELAY: Final = 20.0
# People do not wait longer than this; an error is better than more waiting.
MAX_TOTAL_DELAY: Final = 120.0

_TEMPORARY_KINDS: Final = frozenset({"rate_limit", "unreachable", "stalled"})


class RetryDelays:
    """The delays between the attempts of one request."""

    def __init__(
        self,
        *,
        attempts: int = ATTEMPTS,
        most_delay: float = MAX_TOTAL_DELAY,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._attempts = attempts
        self._most_delay = most_delay
        self._jitter = jitter
        self._attempt = 1
        self._waited = 0.0

    def after(self, error: ModelError) -> float:
        """Return the delay before the next attempt. Raise the error if there is none."""
        if error.kind not in _TEMPORARY_KINDS and error.retry_after is None:
            raise error
        attempt = self._attempt
        if attempt >= self._attempts:
            raise _final_error(error, f"tried {attempt} times")
        # The server's own delay wins. Else exponential backoff with full jitter, so that clients
        # that failed together do not retry together.
        ceiling = min(MAX_DELAY, FIRST_DELAY * 2 ** (attempt - 1))
        delay = error.retry_after or ceiling * self._jitter()
        if self._waited + delay > self._most_delay:
            attempts_text = f"tried {attempt} times" if attempt > 1 else "tried once"
            raise _final_error(
                error, f"{attempts_text}; another wait of {delay:.0f} s would be too long"
            )
        self._waited += delay
        self._attempt += 1
        return delay


class Retrying:
    """Asks `model` up to `attempts` times; each retry starts the reply again."""

    def __init__(
        self,
        model: Model,
        *,
        attempts: int = ATTEMPTS,
        most_delay: float = MAX_TOTAL_DELAY,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._model = model
        self.name: Final = model.name
        self.sees_images: Final = model.sees_images
        self.encode: Final = model.encode
        self._new_delays = partial(
            RetryDelays, attempts=attempts, most_delay=most_delay, jitter=jitter
        )
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"Retrying({self._model!r})"

    @property
    def window(self) -> int | None:
        return self._model.window

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        delays: RetryDelays | None = None
        while True:
            is_complete = False
            try:
                async with contextlib.aclosing(self._model.stream(request)) as pieces:
                    async for piece in pieces:
                        is_complete = type(piece) is Finished
                        yield piece
                if not is_complete:
                    raise unfinished(self._model.name)
            except ModelError as error:
                delays = delays or self._new_delays()
                delay = delays.after(error)
                failed = error
            else:
                return
            yield RetryingPiece(failed.kind, failed.message, delay)
            await self._sleep(delay)


def _final_error(error: ModelError, reason: str) -> ModelError:
    return ModelError(
        error.kind, f"{error.message} ({reason})", error.hint, retry_after=error.retry_after
    )
