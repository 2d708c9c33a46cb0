"""A model that asks again when the failure may pass.

It owns how often and how long. It refuses to know why a model fails: the error says whether it
may pass.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from keryx.errors import ModelError
from keryx.messages import Message
from keryx.ports.model import Finished, Model, ModelRequest, Piece, unfinished
from keryx.ports.model import Retrying as RetryingPiece

Sleep = Callable[[float], Awaitable[None]]

ATTEMPTS: Final = 5
FIRST_DELAY: Final = 0.5
LONGEST_DELAY: Final = 20.0
# Whoever waits for an answer gives up after this; better to say so than to wait on.
ALL_DELAYS: Final = 120.0

_MAY_PASS: Final = frozenset({"rate_limit", "unreachable", "stalled"})


class Retrying:
    """Asks `model` up to `attempts` times; each retry starts the reply anew."""

    def __init__(
        self,
        model: Model,
        *,
        attempts: int = ATTEMPTS,
        most_delay: float = ALL_DELAYS,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._model = model
        self._attempts = attempts
        self._most_delay = most_delay
        self._sleep = sleep
        self._jitter = jitter

    def __repr__(self) -> str:
        return f"Retrying({self._model!r})"

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def window(self) -> int | None:
        return self._model.window

    @property
    def sees_images(self) -> bool:
        return self._model.sees_images

    def encode(self, message: Message) -> bytes:
        return self._model.encode(message)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        waited = 0.0
        attempt = 1
        while True:
            is_whole = False
            try:
                async with contextlib.aclosing(self._model.stream(request)) as pieces:
                    async for piece in pieces:
                        is_whole = type(piece) is Finished
                        yield piece
                if not is_whole:
                    raise unfinished(self._model.name)
            except ModelError as error:
                delay = self._delay(error, attempt, waited)
                failed = error
            else:
                return
            yield RetryingPiece(failed.kind, failed.message, delay)
            await self._sleep(delay)
            waited += delay
            attempt += 1

    def _delay(self, error: ModelError, attempt: int, waited: float) -> float:
        """How long to wait before asking again. Raises the error if that is pointless."""
        if error.kind not in _MAY_PASS and error.retry_after is None:
            raise error
        if attempt >= self._attempts:
            raise _given_up(error, f"tried {attempt} times")
        # The server knows better. Else the ceiling doubles, and anything below it is as likely,
        # so that those who failed together do not come back together.
        ceiling = min(LONGEST_DELAY, FIRST_DELAY * 2 ** (attempt - 1))
        delay = error.retry_after or ceiling * self._jitter()
        if waited + delay > self._most_delay:
            tried = f"tried {attempt} times" if attempt > 1 else "tried once"
            raise _given_up(error, f"{tried}; another wait of {delay:.0f} s would be too long")
        return delay


def _given_up(error: ModelError, why: str) -> ModelError:
    return ModelError(
        error.kind, f"{error.message} ({why})", error.hint, retry_after=error.retry_after
    )
