"""Delivers to one provider: in order within each session, several sessions at once.

A provider that fails is left alone for a while, longer each time, and then tried with one session.
Nothing here delays a turn: what is not delivered waits in the file, over restarts too.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from keryx.aio.clock import Deadline
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.errors import StoreError
from keryx.memory import deliveries
from keryx.memory.deliveries import Breaker, Pending
from keryx.memory.memory_file import MemoryFile
from keryx.memory.providers.left_out import LeftOut
from keryx.ports.memory import (
    FateUnknownError,
    ItemRefusedError,
    MemoryProvider,
    ProviderUnavailableError,
)

# Sessions that one provider stores at the same time.
MAX_SESSIONS: Final = 8
BATCH: Final = 50
# Seconds. A provider that has not answered by then may or may not have stored the items.
ATTEMPT_TIMEOUT: Final = 30.0
CLOSE_TIMEOUT: Final = 2.0
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 300.0
# A provider may ask for a longer pause; an hour is the longest that is believed.
LONGEST_RETRY_AFTER: Final = 3_600.0


class Deliverer:
    """The only owner of the deliveries to one provider. Belongs to the host's loop."""

    def __init__(
        self,
        provider: MemoryProvider,
        file: MemoryFile,
        scope: Scope,
        *,
        report: Callable[[str, BaseException], None],
        attempt_timeout: float = ATTEMPT_TIMEOUT,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        """`report` gets a defect of ours: the name of the work, and the error."""
        self.provider: Final = provider
        self.left_out: Final = provider.reason if isinstance(provider, LeftOut) else None
        """Why the provider cannot be used at all: what it misses waits. None: it can be used."""
        self._file = file
        self._clock = scope.clock
        self._deadlines = scope.deadlines
        self._group = Group(scope.child(f"memory provider {provider.name}"), on_error=report)
        self._report = report
        self._attempt_timeout = attempt_timeout
        self._first_pause = first_pause
        self._waiting: dict[str, None] = {}
        self._busy: set[str] = set()
        self.breaker = Breaker()
        self._retry: Deadline | None = None
        self._idle: list[asyncio.Future[None]] = []

    async def register(self) -> None:
        """Let a new provider get all that is remembered already."""
        name, now = self.provider.name, self._clock.wall()
        await self._file.write(partial(deliveries.register, provider=name, at=now))

    async def start(self) -> None:
        """Go on with what an earlier process left."""
        name = self.provider.name
        self.breaker = await self._file.read(partial(deliveries.breaker, provider=name))
        self.wake(await self._file.read(partial(deliveries.sessions_waiting, provider=name)))

    def wake(self, sessions: Iterable[str]) -> None:
        """Deliver what these sessions have; it is in the file already."""
        self._waiting.update(dict.fromkeys(sessions))
        self._start_more()

    def retry_now(self) -> None:
        """Try at once, although the provider is left alone: a person asks for it."""
        self.breaker = Breaker(self.breaker.failures, 0.0, self.breaker.error)
        self._start_more()

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt failed, or none is made: then nobody waits for the provider."""
        return self.breaker.failures > 0 or self.left_out is not None

    def fails(self) -> bool:
        return self.is_failing

    async def wait_idle(self, seconds: float) -> bool:
        """Wait until nothing is to be delivered now. False: the time was over before."""
        if self.left_out is not None or not (self._busy or self._waiting):
            return not self._waiting
        idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(idle)
        done, _ = await asyncio.wait([idle], timeout=seconds)
        return bool(done)

    async def close(self) -> None:
        """Stop, and close the provider.

        What is under way is sent again after the next start, and found there.
        """
        if self._retry is not None:
            self._deadlines.drop(self._retry)
        await self._group.leave()
        self._group.scope.close()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self.provider.close()
        except Exception as error:  # noqa: BLE001 (whatever fails in a provider, the host ends)
            self._report(f"close the memory provider {self.provider.name}", error)

    # -- which session is next

    def _start_more(self) -> None:
        if self.left_out is not None or self._group.scope.is_cancelled or self._is_paused():
            return
        most = 1 if self.breaker.failures else MAX_SESSIONS
        for session_id in [name for name in self._waiting if name not in self._busy]:
            if len(self._busy) >= most:
                return
            del self._waiting[session_id]
            self._busy.add(session_id)
            self._group.start(self._deliver(session_id), name=f"deliver {session_id}")
        if not (self._busy or self._waiting):
            self._wake_idle()

    def _is_paused(self) -> bool:
        """Whether the provider is left alone now; then a timer is set."""
        seconds = self.breaker.retry_at - self._clock.wall()
        if seconds <= 0:
            return False
        if self._retry is None and self._waiting:
            self._retry = self._deadlines.add(self._clock.monotonic() + seconds, self._on_retry)
        return True

    def _on_retry(self) -> None:
        self._retry = None
        self._start_more()

    def _wake_idle(self) -> None:
        idle, self._idle = self._idle, []
        for future in idle:
            if not future.done():
                future.set_result(None)

    # -- one session

    async def _deliver(self, session_id: str) -> None:
        begin = partial(
            deliveries.begin, provider=self.provider.name, session_id=session_id, limit=BATCH
        )
        is_failing = False
        try:
            while not is_failing and (pending := await self._file.write(begin)):
                is_failing = not await self._attempt(session_id, pending)
        except StoreError as error:
            # The file of the memories cannot be written now: the items are in it, and wait.
            is_failing = True
            with suppress(StoreError):
                await self._open_breaker(error)
        finally:
            self._busy.discard(session_id)
            if is_failing:
                self._waiting[session_id] = None
            if not self._group.scope.is_cancelled:
                self._start_more()

    async def _attempt(self, session_id: str, pending: list[Pending]) -> bool:
        """Deliver once; False if the provider fails and must be left alone."""
        try:
            async with asyncio.timeout(self._attempt_timeout):
                await self.provider.store(session_id, [entry.delivery for entry in pending])
        except ItemRefusedError as error:
            await self._give_up(pending, error.item_id, "refused", error)
        except FateUnknownError as error:
            await self._give_up(pending, error.item_id, "unknown", error)
        except Exception as error:  # noqa: BLE001 (whatever fails in a provider, the items stay)
            await self._open_breaker(error)
            return False
        else:
            places = [entry.place for entry in pending]
            await self._file.write(partial(deliveries.finish, places=places, state="done"))
        if self.breaker.failures:
            await self._set_breaker(Breaker())
        return True

    async def _give_up(
        self,
        pending: list[Pending],
        item_id: str,
        state: deliveries.DeliveryState,
        error: Exception,
    ) -> None:
        places = [entry.place for entry in pending if entry.delivery.item.id == item_id]
        # A provider that names no item of these would be asked for ever.
        places = places or [pending[0].place]
        await self._file.write(
            partial(deliveries.finish, places=places, state=state, error=str(error))
        )

    async def _open_breaker(self, error: Exception) -> None:
        if self.breaker.retry_at > self._clock.wall():
            return  # another session has noticed the same failure
        failures = self.breaker.failures + 1
        pause = min(self._first_pause * 2 ** min(failures - 1, 30), LONGEST_PAUSE)
        retry_after = error.retry_after if isinstance(error, ProviderUnavailableError) else None
        # Not all hosts of a provider that was down should come back in the same moment.
        pause = max(pause * random.uniform(0.8, 1.2), min(retry_after or 0.0, LONGEST_RETRY_AFTER))  # noqa: S311 (no secret)
        await self._set_breaker(
            Breaker(failures, self._clock.wall() + pause, _describe(error, self._attempt_timeout))
        )

    async def _set_breaker(self, breaker: Breaker) -> None:
        self.breaker = breaker
        name = self.provider.name
        await self._file.write(partial(deliveries.set_breaker, provider=name, breaker=breaker))


def _describe(error: Exception, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s"
    is_clear = isinstance(error, ProviderUnavailableError | StoreError)
    return f"{error}" if is_clear else repr(error)
