"""What a process reads from a store, and the state that it folds from a log, as text."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import structs

from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.loops import run_loop
from keryx.aio.scope import Scope
from keryx.engine.log.fold import Fold
from keryx.engine.log.resume_plan import plan
from keryx.errors import StoreError
from keryx.ports.store import SessionRow
from keryx.store.sqlite import SqliteStore

Log = list[ev.LoggedEvent]


async def read_logs(path: Path) -> list[tuple[SessionRow, Log]]:
    """All sessions and their logs, as a process reads them that owns none of them."""
    bridge = Bridge(Scope("reader"), threads=1)
    try:
        store = await SqliteStore.open(path, bridge, read_only=True)
        logs = [
            (row, await store.events(row.session_id)) for row in await store.sessions(parent=None)
        ]
        await store.close()
    except StoreError as error:
        # The host died while it made the file: there is nothing to read in it yet.
        if "has version 0" not in str(error):
            raise
        logs = []
    finally:
        await bridge.close()
    return logs


async def read_log(path: Path) -> Log:
    """The log of the one session that there is."""
    logs = await read_logs(path)
    assert len(logs) <= 1
    return logs[0][1] if logs else []


def log_of(path: Path) -> Log:
    return run_loop(read_log(path)) if path.exists() else []


def logs_of(path: Path) -> list[tuple[SessionRow, Log]]:
    return run_loop(read_logs(path))


def state_of(log: Log) -> dict[str, str]:
    """Every field of the state that this log gives, and how an open turn would go on."""
    fold = Fold(log[0].session_id if log else "")
    for event in log:
        fold.apply(event)
    fields = dict(vars(fold))
    # Sets have no order of their own; that of everything else counts.
    fields["undone"] = sorted(fold.undone)
    fields["branches"] = {**vars(fold.branches), "undone": fields["undone"]}
    by_trust = {trust: sorted(turns) for trust, turns in fold.memories.turns_by_trust.items()}
    fields["memories"] = {**structs.asdict(fold.memories), "turns_by_trust": by_trust}
    fields["plan"] = None if fold.turn is None else plan(fold)
    return {name: msgspec.json.encode(value).decode() for name, value in fields.items()}
