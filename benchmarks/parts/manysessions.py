"""A home with many sessions in it, each with an exchange, written straight into the store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import uvloop

from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.ports.store import Commit
from keryx.store.sqlite import SqliteStore

AT_ONCE: Final = 200
NOW: Final = 1_780_000_000.0


def fill(home: Path, count: int) -> None:
    """Make the home, with that many sessions."""
    home.mkdir(mode=0o700)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_fill(home / "keryx.db", count))


async def _fill(path: Path, count: int) -> None:
    scope = Scope("fill")
    bridge = Bridge(scope)
    store = await SqliteStore.open(path, bridge)
    for begin in range(0, count, AT_ONCE):
        numbers = range(begin, min(count, begin + AT_ONCE))
        await asyncio.gather(*(_session(store, number) for number in numbers))
    await store.close()
    await bridge.close()
    scope.close()


async def _session(store: SqliteStore, number: int) -> None:
    session_id = f"s_{number:016x}"
    epoch = await store.claim(session_id)
    opened = ev.SessionOpened(
        session_id=session_id,
        at=NOW + number,
        seq=1,
        model="openai:answer-5",
        profile="default",
        place="local",
        workspace="/tmp",
        tools=(),
        title=f"What was said in session {number}",
    )
    events: tuple[ev.LoggedEvent, ...] = (opened,)
    await store.append(Commit(session_id=session_id, epoch=epoch, events=events))
