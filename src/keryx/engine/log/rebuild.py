"""Folding a whole log, which may be long, without holding up the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from keryx import events as ev
from keryx.engine.log.fold import Fold
from keryx.errors import SessionDamagedError

FOLDED_AT_ONCE: Final = 2_000
"""Facts; some milliseconds."""


async def folded(
    session_id: str, log: Sequence[ev.LoggedEvent], undone_later: Collection[str] = ()
) -> Fold:
    """The state that the log tells; a long one holds up nobody. `undone_later`: see `Fold`.

    `SessionDamagedError` if its facts do not follow from each other.
    """
    undone = {event.turn_id for event in log if isinstance(event, ev.TurnUndone)}
    fold = Fold(session_id, {*undone, *undone_later})
    for number, event in enumerate(log, 1):
        try:
            fold.apply(event)
        except (AssertionError, LookupError, TypeError, AttributeError) as error:
            raise SessionDamagedError(
                f"session {session_id} is damaged (event {event.seq} does not follow from those "
                "before it); the other sessions work. `keryx sessions export` shows its log"
            ) from error
        if number % FOLDED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return fold
