"""The event hub of a session: it replays facts from the store, then streams new events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from keryx import events as ev
from keryx.aio.clock import Clock
from keryx.aio.hub import Hub, Replay
from keryx.engine.session_context import EVENT_WEIGHT
from keryx.ports.store import Store

PAGE: Final = 500_000
"""Bytes of a log that are read at once for a reader that starts far back."""


def open_hub(store: Store, clock: Clock, session_id: str, last: int) -> Hub[ev.Event]:
    """Return the event hub of a session whose last fact has that number, open or not."""
    return Hub(
        replay=_replay(store, session_id),
        lost=lambda: ev.Resync(session_id=session_id, at=clock.wall()),
        last=last,
    )


def caught_up(hub: Hub[ev.Event], log: Sequence[ev.LoggedEvent]) -> Hub[ev.Event]:
    """Publish the facts that another host wrote meanwhile, and return the hub."""
    hub.publish_facts((event.seq, event, EVENT_WEIGHT) for event in log[hub.last :])
    return hub


def _replay(store: Store, session_id: str) -> Replay[ev.Event]:
    async def replay(after: int, upto: int) -> AsyncIterator[tuple[int, ev.Event]]:
        while after < upto:
            page = await store.events(session_id, after=after, limit=upto - after, size=PAGE)
            if not page:
                return  # it was deleted meanwhile
            for event in page:
                yield event.seq, event
            after = page[-1].seq

    return replay
