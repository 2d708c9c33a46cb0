"""Long polling: take updates in, and acknowledge them only once they are stored.

Telegram repeats every update until a request names a higher offset. So the offset is raised only
after `take` has returned. Nothing of an earlier process is needed: what it stored but did not
acknowledge comes again, and is recognised.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, cast

from keryx.aio.clock import Clock
from keryx.errors import StoreError
from keryx.gateway.delivery.flood_gate import sleep
from keryx.gateway.telegram.requests import CONFLICT, REFUSED
from keryx.gateway.telegram.updates import ALLOWED, as_update
from keryx.ports.platform import PlatformError, Take

if TYPE_CHECKING:
    import aiohttp

BATCH: Final = 100
STALLED: Final = 150.0
"""Seconds without any response after which polling counts as stalled: the client is replaced, and
after as many seconds more the gateway ends."""
# Another getUpdates of this gateway may still be open after a restart: Telegram ends it soon.
CONFLICTS: Final = 10
LONGEST_PAUSE: Final = 30.0
_UNAUTHORIZED: Final = (401, 404)
_CONFLICT: Final = 409
_TOO_MANY: Final = 429
_OK: Final = 200
_log: Final = logging.getLogger("keryx.gateway")
Connect = Callable[[], Awaitable["aiohttp.ClientSession"]]


class Polling:
    """Asks for updates until it is cancelled."""

    def __init__(
        self,
        connect: Connect,
        url: str,
        clock: Clock,
        *,
        wait: float,
        pause: float = 1.0,
    ) -> None:
        """`connect` makes a new client and closes the one before it.

        `wait`: seconds that Telegram holds a request open. `pause`: after the first error.
        """
        self._connect = connect
        self._url = url
        self._clock = clock
        self._wait = wait
        self._pause = pause
        self._offset: int | None = None
        self._last_response = clock.monotonic()
        self._was_rebuilt = False
        """Whether the client was replaced since the last response."""

    async def run(self, take: Take) -> None:
        """Take updates in. `PlatformError` if a person must act."""
        failures = conflicts = 0
        session = await self._connect()
        while True:
            status, answer = await self._ask(session)
            if status is not None:
                self._last_response = self._clock.monotonic()
                self._was_rebuilt = False
            conflicts = conflicts + 1 if status == _CONFLICT else 0
            result = answer.get("result")
            is_answered = status == _OK and isinstance(result, list)
            if is_answered and await self._store(cast("list[object]", result), take):
                failures = 0
                continue
            _raise_if_fatal(status, conflicts)
            if self._is_stalled():
                session = await self._rebuild()
            failures += 1
            await sleep(self._clock, self._delay(status, answer, failures))

    def _is_stalled(self) -> bool:
        return self._clock.monotonic() - self._last_response > STALLED

    async def _rebuild(self) -> aiohttp.ClientSession:
        """Replace the client, which may be the fault. `PlatformError` if that did not help."""
        if self._was_rebuilt:
            raise PlatformError(
                f"Telegram has not answered for {2 * STALLED:.0f} s; check the network and start "
                "again"
            )
        _log.error("Telegram has not answered for %.0f s; connecting anew", STALLED)
        self._was_rebuilt = True
        self._last_response = self._clock.monotonic()
        return await self._connect()

    async def _store(self, raw_updates: list[object], take: Take) -> bool:
        """Store updates, and acknowledge them with the next request. False: try it again later."""
        updates = [update for raw in raw_updates if (update := as_update(raw)) is not None]
        if len(updates) < len(raw_updates):
            _log.warning("%d updates cannot be read", len(raw_updates) - len(updates))
        if not updates:
            # What has no number cannot be acknowledged: it comes again at once.
            return not raw_updates
        try:
            await take(sorted(updates, key=lambda update: update.number))
        except StoreError as error:
            _log.error("%d updates are not acknowledged: %s", len(updates), error)
            return False
        self._offset = max(update.number for update in updates) + 1
        return True

    async def _ask(self, session: aiohttp.ClientSession) -> tuple[int | None, dict[str, Any]]:
        """Return the status and the answer; no status: there was no response."""
        from aiohttp import ClientError, ClientTimeout  # noqa: PLC0415 (heavy)

        body: dict[str, Any] = {
            "timeout": int(self._wait),
            "limit": BATCH,
            "allowed_updates": list(ALLOWED),
        }
        if self._offset is not None:
            body["offset"] = self._offset
        timeout = ClientTimeout(total=self._wait + 10)
        try:
            async with session.post(self._url, json=body, timeout=timeout) as response:
                text = await response.text()
        except (TimeoutError, ClientError, OSError) as error:
            _log.info("getUpdates failed: %s", type(error).__name__)
            return None, {}
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        return response.status, cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}

    def _delay(self, status: int | None, answer: dict[str, Any], failures: int) -> float:
        parameters = answer.get("parameters")
        if status == _TOO_MANY and isinstance(parameters, dict):
            seconds = cast("dict[str, Any]", parameters).get("retry_after")
            if isinstance(seconds, int | float):
                return float(seconds)
        return backoff(self._pause, failures)


def backoff(pause: float, failures: int) -> float:
    """Return the seconds to wait after the nth failure in a row."""
    return min(pause * 2.0 ** min(failures - 1, 10), LONGEST_PAUSE)


def _raise_if_fatal(status: int | None, conflicts: int) -> None:
    if status in _UNAUTHORIZED:
        raise PlatformError(REFUSED)
    if conflicts >= CONFLICTS:
        raise PlatformError(CONFLICT)
