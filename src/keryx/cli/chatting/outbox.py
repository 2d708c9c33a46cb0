"""What a person handed in, until it is done: it is sent in order, and its turns are followed.

It knows neither a session nor a view; whoever owns it says what happened to the turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

PATIENCE: Final = 5.0
"""Seconds that a chat which ends waits for messages that are being sent."""
Work = Coroutine[Any, Any, None]


class Outbox:
    """Messages and commands that wait for those before them. Belongs to one loop."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[int, Work]] = asyncio.Queue()
        self._resting = asyncio.Event()
        self._unsent = 0
        self._last_number = 0
        self._doing = 0
        """The number of what is being done."""
        self._messages: dict[int, None] = {}
        """The numbers of the messages among what is not done."""
        self._interrupted: int | None = None
        self._open_turns: dict[str, None] = {}
        self._ended_turns: set[str] = set()
        self._fault: BaseException | None = None
        """Why the turns are not followed any more."""

    def put(self, work: Work, *, is_message: bool) -> None:
        """Do some work after everything that was put in before."""
        self._unsent += 1
        self._last_number += 1
        if is_message:
            self._messages[self._last_number] = None
        self._queue.put_nowait((self._last_number, work))

    async def run(self, do: Callable[[Work], Awaitable[None]]) -> None:
        """Do all work in order, for ever; `do` raises nothing."""
        while True:
            self._doing, work = await self._queue.get()
            await do(work)
            self._unsent -= 1
            self._messages.pop(self._doing, None)
            self._resting.set()

    def close(self) -> None:
        """Drop what has not begun."""
        while not self._queue.empty():
            self._queue.get_nowait()[1].close()

    # -- interrupts

    @property
    def is_busy(self) -> bool:
        """Whether a message is not sent yet, or its turn has not ended."""
        return bool(self._messages) or self.open_turn is not None

    def interrupt(self) -> bool:
        """Remember not to run the turn of the oldest unsent message; False: there is none."""
        self._interrupted = next(iter(self._messages), None)
        return self._interrupted is not None

    @property
    def is_interrupted(self) -> bool:
        """Whether the turn of the message that is being sent is not wanted any more."""
        return self._doing == self._interrupted

    # -- the turns of what was sent

    @property
    def open_turn(self) -> str | None:
        """The oldest turn that has not ended; it may not have started either."""
        return next((turn for turn in self._open_turns if turn not in self._ended_turns), None)

    def turn_opened(self, turn_id: str) -> None:
        self._open_turns[turn_id] = None

    def turn_ended(self, turn_id: str) -> None:
        self._ended_turns.add(turn_id)
        self._resting.set()

    def follow_anew(self) -> None:
        """Follow another session: nobody waits for the turns so far."""
        self._ended_turns.update(self._open_turns)
        self._fault = None
        self._resting.set()

    def fail(self, fault: BaseException) -> None:
        """Turns are not followed any more; whoever waits for them gets the fault."""
        self._fault = fault
        self._resting.set()

    async def wait_resting(self) -> None:
        """Wait until everything is sent and no turn runs. Raise what ended the following."""
        while self._unsent or self.open_turn is not None:
            if self._fault is not None:
                raise self._fault
            self._resting.clear()
            await self._resting.wait()

    async def wait_sent(self) -> int:
        """Wait until everything is sent, but not for long; return how much is not."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self._unsent:
                    self._resting.clear()
                    await self._resting.wait()
        return self._unsent
