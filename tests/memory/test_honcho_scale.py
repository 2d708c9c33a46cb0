"""Many sessions conclude and synchronise at once, with a server that fails, hangs and is killed."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from keryx.ports.memory import Memory, TurnMemory
from tests.memory.honcho_home import honcho_server, provider_of
from tests.memory.honcho_server.faults import Fault
from tests.memory.honcho_server.process import HonchoServer
from tests.memory.remembering_store import RememberingStore, remembering_store

LONG = os.environ.get("KERYX_SOAK") == "1"
"""`make soak` does ten times as much on five times as many sessions."""
CONCLUSIONS, TURNS, SESSIONS = (10_000, 1_000, 50) if LONG else (1_000, 100, 10)
PATIENCE = 1_800.0 if LONG else 120.0
KILLS = 5 if LONG else 2
SEED = 20_261_116
RATE = 0.05
KINDS: list[Fault] = [
    "slow",
    "error",
    "error_after",
    "drop",
    "drop_after",
    "hang",
    "hang_after",
    "late",
    "busy",
    "odd",
]
# Seconds. The server stores late by far less than the provider waits, on a busy machine too.
LATE, SETTLE, TIMEOUT = 0.02, 1.0, 1.0


async def conclude_and_sync(memory: RememberingStore) -> dict[str, list[TurnMemory]]:
    """Let all sessions remember at once; return their turns, in the order of the log."""
    names = [f"s{number}" for number in range(SESSIONS)]
    turns: dict[str, list[TurnMemory]] = defaultdict(list)

    async def conclude(number: int) -> None:
        # Every tenth is one that its session has concluded before.
        text = "The build is red." if number // SESSIONS % 10 == 0 else f"Conclusion {number}."
        await memory.conclude(names[number % SESSIONS], text)

    async def sync(number: int) -> None:
        name = names[number % SESSIONS]
        turns[name].append(await memory.sync_turn(name, f"Question {number}?", f"Answer {number}."))

    for number in range(SESSIONS):  # a session is opened by the first
        await conclude(number)
    async with asyncio.TaskGroup() as group:
        for number in range(SESSIONS, CONCLUSIONS):
            group.create_task(conclude(number))
            if number % (CONCLUSIONS // TURNS) == 0:
                group.create_task(sync(number))
    for name in names:
        turns[name].sort(key=lambda turn: turn.seq)
    return turns


async def kill_now_and_then(server: HonchoServer, orders: dict[str, Any]) -> None:
    """Kill the server when it has got some more; it forgets its orders, and gets them again."""
    for part in range(1, KILLS + 1):
        await server.wait_conclusions(part * CONCLUSIONS // (KILLS + 2))
        await server.restart()
        await server.misbehave(**{**orders, "seed": SEED + part})


@pytest.mark.promise("003.2", "003.3")
@pytest.mark.timeout(PATIENCE + 60)
async def test_everything_is_at_honcho_once_and_in_order(tmp_path: Path) -> None:
    orders = {"rate": RATE, "seed": SEED, "kinds": KINDS, "late": LATE}
    began = time.monotonic()
    with honcho_server(tmp_path) as server:
        await server.misbehave(**orders)
        async with (
            remembering_store(
                tmp_path,
                lambda file, bridge: provider_of(
                    server, file, bridge, settle=SETTLE, timeout=TIMEOUT
                ),
                attempt_timeout=30.0,
                patience=PATIENCE,
            ) as memory,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(kill_now_and_then(server, orders))
            turns = await conclude_and_sync(memory)
            accepted = time.monotonic() - began
            assert await memory.service.wait_delivered(PATIENCE)
            failures = await memory.service.failures()
            (state,) = await memory.service.states()
            assert state.lag.waiting == 0
        remote = await server.state()
    report(accepted, time.monotonic() - began, remote, len(failures))
    check(remote, turns, [failure.item for failure in failures])
    assert {failure.state for failure in failures} <= {"unknown"}
    assert {entry[2] for entry in remote["refusals"]} <= {404}, remote["refusals"][:3]


def check(remote: dict[str, Any], turns: dict[str, list[TurnMemory]], unknown: list[Any]) -> None:
    """Messages are there exactly once and in order; conclusions once, except the unknown ones."""
    messages: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in remote["messages"]:
        messages[row["session_id"]].append((row["metadata"]["event_id"], row["content"]))
    for name, session_turns in turns.items():
        expected = [(text.id, text.text) for turn in session_turns for text in turn.texts]
        assert messages[name] == expected, name
    stored = Counter((row["session_id"], row["content"]) for row in remote["conclusions"])
    expected_counts = Counter(
        (
            f"s{number % SESSIONS}",
            "The build is red." if number // SESSIONS % 10 == 0 else f"Conclusion {number}.",
        )
        for number in range(CONCLUSIONS)
    )
    doubtful = Counter(
        (item.sources[0].session_id, item.text) for item in unknown if isinstance(item, Memory)
    )
    for key in {*expected_counts, *stored}:
        least = expected_counts[key] - doubtful[key]
        assert least <= stored[key] <= expected_counts[key], key


def report(accepted: float, seconds: float, remote: dict[str, Any], unknown: int) -> None:
    sys.stdout.write(
        f"{CONCLUSIONS} conclusions and {TURNS} turns of {SESSIONS} sessions: accepted in "
        f"{accepted:.1f} s, delivered in {seconds:.1f} s, {unknown} unknown; "
        f"since the last kill {sum(remote['requests'].values())} requests, of which failed "
        f"{sum(remote['misbehaved'].values())}\n"
    )
