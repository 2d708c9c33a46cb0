"""Measures streams, whoever reads them. It uses the standard library only, because programs of
other packages measure themselves with it too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

TOKEN: Final = 5
"""Characters of a token: all tokens of the model server have the same length."""
RATE: Final = 100
"""Tokens a second of a paced stream."""
WARM: Final = 0.5
SECONDS: Final = 3.0
"""How long is measured, after the streams have run warm."""
_SLACK: Final = 1.0
UNSTEADY: Final = 0.05
PACED: Final = f"pace-{int((WARM + SECONDS + _SLACK) * RATE)}"
"""The model whose streams last for all of it."""

OnText = Callable[[str], None]
Stream = Callable[[OnText], Coroutine[Any, Any, object]]
"""Reads one stream to its end, and passes on each text."""


@dataclass(frozen=True, slots=True)
class Paced:
    """What streams at a given pace cost."""

    cpu_per_token: float
    keeps_up: float
    """The share of due tokens that arrived; less than 1 if the reader is too slow."""

    together: float
    """Tokens in one text."""

    @property
    def is_steady(self) -> bool:
        """Whether tokens came in time and one by one.

        A slow reader gets tokens of an earlier time; and if tokens queue up on a busy machine, one
        read takes many of them, which is cheaper than what is to be measured.
        """
        return abs(self.keeps_up - 1) < UNSTEADY and self.together - 1 < UNSTEADY


@dataclass(frozen=True, slots=True)
class Flood:
    """The speed of streams that are sent as fast as they are read."""

    rate: float
    """Tokens a second, of all together."""
    together: float
    """Tokens in one text: tokens that arrive together may be passed on together."""


class Meter:
    """Runs streams at the same time and counts the texts of all of them."""

    def __init__(self, streams: list[Stream]) -> None:
        self._streams = streams
        self._characters = 0
        self._texts = 0
        self._ended = 0
        self._reading: asyncio.Future[list[None]] | None = None

    async def paced(self) -> Paced:
        """Return the CPU seconds of this process for each token, all its threads included.

        The streams go on; `wait_ended` waits for them.
        """
        self._reading = asyncio.gather(*(self._read(stream) for stream in self._streams))
        while self._tokens < len(self._streams) * WARM * RATE:  # noqa: ASYNC110 (to tell of it would cost time for each token)
            await asyncio.sleep(0.05)
        began, cpu, tokens = time.perf_counter(), time.process_time(), self._tokens
        texts = self._texts
        await asyncio.sleep(SECONDS)
        cpu, tokens = time.process_time() - cpu, self._tokens - tokens
        texts = self._texts - texts
        due = len(self._streams) * RATE * (time.perf_counter() - began)
        assert self._ended == 0, "streams ended while they were measured"
        return Paced(cpu / tokens, tokens / due, tokens / texts)

    async def whole(self) -> float:
        """Return the CPU seconds for each token, from the first request to the last end.

        For readers that do not keep up: they get tokens later than the work for them was done, so a
        measurement over a part of the time means nothing.
        """
        cpu = time.process_time()
        await asyncio.gather(*(self._read(stream) for stream in self._streams))
        return (time.process_time() - cpu) / self._tokens

    async def flood(self) -> Flood:
        """Read as fast as possible, from the first request to the last end."""
        began = time.perf_counter()
        await asyncio.gather(*(self._read(stream) for stream in self._streams))
        return Flood(self._tokens / (time.perf_counter() - began), self._tokens / self._texts)

    async def wait_ended(self) -> None:
        if self._reading is not None:
            await self._reading

    @property
    def _tokens(self) -> float:
        return self._characters / TOKEN

    async def _read(self, stream: Stream) -> None:
        await stream(self._on_text)
        self._ended += 1

    def _on_text(self, text: str) -> None:
        self._characters += len(text)
        self._texts += 1
