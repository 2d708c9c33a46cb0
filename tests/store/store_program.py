"""A process of its own that uses a store, for tests: run as `python -m tests.store.store_program`.

It says each result as one line of JSON, and waits for a line of input where the test has to act.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from keryx.aio.bridge import Bridge
from keryx.aio.loops import run_loop
from keryx.aio.scope import Scope
from keryx.errors import AlreadyTakenError, FencedError, KeryxError
from keryx.ports.store import Blob, Commit, InboxRow, blob_hash
from keryx.store.sqlite import SqliteStore
from keryx.testing.event_factory import EventFactory

NOBODY = 65534
ROUNDS = 30


def say(value: object) -> None:
    os.write(1, json.dumps(value).encode() + b"\n")


def wait_for_go() -> None:
    say("ready")
    sys.stdin.readline()


async def append_for_ever(store: SqliteStore) -> None:
    """Says each sequence number once it is durable."""
    epoch = await store.claim("s")
    row = await store.session("s")
    facts = EventFactory("s", last_seq=0 if row is None else row.last_seq)
    while True:
        events = tuple(facts.replied("x" * (97 * facts.last_seq % 5000)) for _ in range(3))
        await store.append(Commit(session_id="s", epoch=epoch, events=events))
        say(facts.last_seq)


async def enter_the_same(store: SqliteStore) -> None:
    """Says for each key if this process was first."""
    wait_for_go()
    say([await store.enter("s", InboxRow(str(number), b"same")) for number in range(ROUNDS)])


async def take_the_same(store: SqliteStore) -> None:
    """Says for each name if this process got it; both write with the epoch of the test."""
    wait_for_go()
    successes: list[bool] = []
    for number in range(ROUNDS):
        try:
            await store.append(Commit(session_id="s", epoch=1, claims=(str(number),)))
        except AlreadyTakenError:
            successes.append(False)
        else:
            successes.append(True)
    say(successes)


async def claim_and_append(store: SqliteStore) -> None:
    """Says the epochs that it got; every append of an owner that was fenced is refused."""
    wait_for_go()
    epochs: list[int] = []
    for _ in range(ROUNDS):
        epochs.append(await store.claim("s"))
        last = await store.events("s")
        facts = EventFactory("s", last_seq=len(last))
        with suppress(FencedError):
            await store.append(
                Commit(session_id="s", epoch=epochs[-1], events=(facts.renamed("mine"),))
            )
    say(epochs)


async def fill_the_disk(store: SqliteStore) -> None:
    """Files may not grow past a bound for a while, as on a disk that is full."""
    facts = EventFactory("s")
    epoch = await store.claim("s")
    await store.append(Commit(session_id="s", epoch=epoch, events=(facts.opened(),)))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (260_000, most))
    data = os.urandom(400_000)
    others = {name: await store.claim(name) for name in "abc"}
    large = Commit(session_id="s", epoch=epoch, blobs=(Blob(blob_hash(data), data),))
    small = [
        Commit(session_id=name, epoch=epoch, events=(EventFactory(name).opened(),))
        for name, epoch in others.items()
    ]
    # The first is committed alone; those that come meanwhile, together.
    outcomes = await asyncio.gather(
        *(store.append(commit) for commit in (small[0], small[1], large, small[2])),
        return_exceptions=True,
    )
    say([type(outcome).__name__ for outcome in outcomes])
    say(str(outcomes[-1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    say([len(await store.events(name)) for name in "sabc"])
    await store.append(large)
    await store.append(small[2])
    say([len(await store.events(name)) for name in "sabc"])


async def open_only(store: SqliteStore) -> None:
    say([row.session_id for row in await store.sessions()])


ACTIONS: dict[str, Callable[[SqliteStore], Awaitable[None]]] = {
    action.__name__: action
    for action in (
        *(append_for_ever, enter_the_same, take_the_same),
        *(claim_and_append, fill_the_disk, open_only),
    )
}


async def main(action: str, path: Path, *flags: str) -> None:
    bridge = Bridge(Scope("child"))
    if "nobody" in flags and os.geteuid() == 0:
        os.setuid(NOBODY)
    if "race" in flags:
        wait_for_go()
    try:
        store = await SqliteStore.open(path, bridge, read_only="read_only" in flags)
        await ACTIONS[action](store)
        await store.close()
    except KeryxError as error:
        say(f"{type(error).__name__}: {error}")
    await bridge.close()


def hold_locked(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    wait_for_go()
    connection.close()


if __name__ == "__main__":
    if sys.argv[1] == "hold_locked":
        hold_locked(Path(sys.argv[2]))
    else:
        run_loop(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))
