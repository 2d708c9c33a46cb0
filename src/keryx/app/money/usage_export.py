"""Posts what finished turns used to an address of the user's choice, if one is configured.

It can never fail or delay a turn: a turn only adds to a bounded queue. What cannot be delivered is
dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.engine.log.fold import Fold
from keryx.events import TurnFinished, Usage
from keryx.ports.http import HttpClient

MOST_WAITING: Final = 1_000
"""Turns that wait to be posted; the oldest are dropped for new ones."""
TIMEOUT: Final = 10.0
"""Seconds for one request. Nobody waits for it."""
LAST_CHANCE: Final = 1.0
"""Seconds that a host which ends gives to turns that are not posted yet."""


class FinishedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What is posted about a turn: nothing of what was said in it."""

    session_id: str
    turn_id: str
    at: float
    outcome: str
    model: str
    usage: Usage
    cost: float | None
    """US dollars; null: unknown."""


class UsageExport:
    """The export of one host. Belongs to its loop."""

    def __init__(
        self,
        url: Callable[[], str | None],
        http: Callable[[], Awaitable[HttpClient]],
        scope: Scope,
    ) -> None:
        """`url` returns the address that is configured now; None: nothing is exported."""
        self._url = url
        self._http = http
        # An error of the task is counted below, and a defect of ours must not end the host.
        self._group = Group(scope.child("usage export"), on_error=lambda _name, _error: None)
        self._waiting: deque[FinishedTurn] = deque()
        self._task: asyncio.Task[None] | None = None
        self.sent = 0
        self.dropped = 0

    def add(self, fold: Fold, fact: TurnFinished) -> None:
        """Post this turn soon, if an address is configured."""
        if self._url() is None:
            return
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(
            FinishedTurn(
                session_id=fact.session_id,
                turn_id=fact.turn_id,
                at=fact.at,
                outcome=fact.outcome,
                model=fold.settings.model,
                usage=fact.usage,
                cost=fact.cost,
            )
        )
        if self._task is None or self._task.done():
            self._task = self._group.start(self._post_all(), name="usage export")

    async def close(self) -> None:
        """Post what waits if that is quick; drop the rest."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=LAST_CHANCE)
            self._task.cancel()
        self.dropped += len(self._waiting)
        self._waiting.clear()
        await self._group.leave()
        self._group.scope.close()

    async def _post_all(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            try:
                async with asyncio.timeout(TIMEOUT):
                    is_sent = await self._post(turn)
            except asyncio.CancelledError:
                self.dropped += 1
                raise
            except Exception:  # noqa: BLE001 (whatever is wrong there, no turn may notice)
                is_sent = False
            self.sent += is_sent
            self.dropped += not is_sent

    async def _post(self, turn: FinishedTurn) -> bool:
        url = self._url()
        if url is None:
            return False
        options: dict[str, Any] = {
            "data": msgspec.json.encode(turn),
            "headers": {"content-type": "application/json"},
            # A redirect could lead the numbers elsewhere than the user decided.
            "allow_redirects": False,
        }
        async with (await self._http()).request("POST", url, **options) as response:
            return 200 <= response.status < 300  # noqa: PLR2004 (the statuses of success)
