"""Thousands of calls from every kind of caller at once, some given up in every way there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.guest.script_processes import run
from tests.guest.server import Server

pytestmark = pytest.mark.promise("000.2")

CALLS = 100_000 if SOAK else 10_000
TIMEOUT = 1800 if SOAK else 60

MIXED = """
import asyncio, json, multiprocessing, random, signal, sys, threading
from keryx_tools import ToolTimeoutError, aio, echo

class Abandoned(Exception):
    pass

def ring(*_):
    raise Abandoned

class Count:
    def __init__(self):
        self.right = self.wrong = self.given_up = 0

    def take(self, answer, tag):
        if answer["tag"] == tag:
            self.right += 1
        else:
            self.wrong += 1

    def sums(self):
        return [self.right, self.wrong, self.given_up]

def blocking(name, calls, alarms=False):
    chance, count = random.Random(name), Count()
    if alarms:
        signal.signal(signal.SIGALRM, ring)
    for number in range(calls):
        tag, delay, fate = f"{name} {number}", chance.random() * 0.002, chance.random()
        try:
            if alarms and fate < 0.05:
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + chance.random() * 0.002)
            patience = 0.0005 if 0.05 < fate < 0.1 else 60
            answer = echo(tag, delay, _deadline=patience)
            signal.setitimer(signal.ITIMER_REAL, 0) if alarms else None
            count.take(answer, tag)
        except (Abandoned, ToolTimeoutError):
            count.given_up += 1
    return count.sums()

async def one(count, chance, name, calls):
    for number in range(calls):
        tag, delay = f"{name} {number}", chance.random() * 0.002
        task = asyncio.ensure_future(aio.echo(tag, delay))
        if chance.random() < 0.1:
            await asyncio.sleep(chance.random() * 0.002)
            task.cancel()
        try:
            count.take(await task, tag)
        except asyncio.CancelledError:
            count.given_up += 1

async def tasks(calls):
    count, chance = Count(), random.Random("tasks")
    await asyncio.gather(*(one(count, chance, f"task {n}", calls // 40) for n in range(40)))
    return count.sums()

def main(calls):
    sums, share = [], calls // 5
    fork, spawn = (multiprocessing.get_context(method) for method in ("fork", "spawn"))
    with fork.Pool(2) as forked, spawn.Pool(2) as spawned:
        pools = [
            pool.starmap_async(
                blocking, [(f"{kind} {n}", share // 2, kind == "fork") for n in "ab"], 1
            )
            for kind, pool in (("fork", forked), ("spawn", spawned))
        ]
        threads = [
            threading.Thread(target=lambda n=n: sums.append(blocking(f"thread {n}", share // 8)))
            for n in range(8)
        ]
        threads.append(threading.Thread(target=lambda: sums.append(asyncio.run(tasks(2 * share)))))
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        for pool in pools: sums += pool.get()
        for pool in (forked, spawned):
            pool.close()
            pool.join()
    print(json.dumps([sum(column) for column in zip(*sums)]))

if __name__ == "__main__":
    main(CALLS)
"""


@pytest.mark.timeout(TIMEOUT)
def test_every_answer_reaches_its_own_caller_and_nothing_stays(
    tmp_path: Path, server: Server, address: str
) -> None:
    script = MIXED.replace("CALLS", str(CALLS))
    right, wrong, given_up = run(tmp_path, script, address, patience=TIMEOUT)
    assert wrong == 0
    assert right + given_up == CALLS
    assert right > CALLS * 0.8
    assert given_up > 0
    ran = server.tools.ran
    assert set(ran.values()) == {1}
    assert right <= len(ran) <= CALLS
    server.wait_idle()
