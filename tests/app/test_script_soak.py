"""Thousands of calls through the whole tool, from every kind of caller at once, some given up."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keryx import NO_EFFECTS, tool
from keryx import events as ev
from tests.app.scripting import Den, call, execute, hosting, value
from tests.conftest import SOAK
from tests.guest.test_mixed_callers import MIXED

CALLS = 100_000 if SOAK else 10_000
TIMEOUT = 1800 if SOAK else 60


class Counting:
    """A tool that takes a random while, and knows how often it ran for whom."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.running = self.most = 0

        @tool(effects=NO_EFFECTS)
        async def echo(tag: str, delay: float) -> dict[str, str]:
            """Say it again, later."""
            self.ran[tag] += 1
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await asyncio.sleep(delay)
            finally:
                self.running -= 1
            return {"tag": tag}

        self.tool = echo


def runs_there(session_id: str) -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"keryx*/{session_id}/run-*"))


def check(report: dict[str, Any], nested: ev.NestedSummary, counting: Counting) -> None:
    right, wrong, given_up = json.loads(report["output"])
    assert wrong == 0, "every answer came to its own caller"
    assert right + given_up == CALLS, "none was lost"
    assert right > CALLS * 0.8
    assert given_up > 0
    assert set(counting.ran.values()) == {1}, "none ran twice"
    assert right <= len(counting.ran) <= CALLS
    # Who gave up before the host had read the call is not counted there.
    assert right <= nested.completed <= nested.calls <= CALLS
    assert report["calls"]["echo"]["count"] == nested.calls
    assert counting.most > 10, "they ran side by side"


@pytest.mark.promise("000.2", "000.4", "000.6")
@pytest.mark.timeout(TIMEOUT)
async def test_every_answer_reaches_its_own_caller_and_nothing_stays(den: Den) -> None:
    counting = Counting()
    async with hosting(den, counting.tool, patience=TIMEOUT - 10) as app:
        handle = await app.open(approvals="never")
        await execute(handle, "import keryx_tools; keryx_tools.echo('first', 0)")
        counting.ran.clear()
        before = len(asyncio.all_tasks())
        code = MIXED.replace("CALLS", str(CALLS))
        ended = await call(handle, "execute_code", code=code, timeout=TIMEOUT)
        assert ended.nested is not None
        check(value(ended), ended.nested, counting)
        # Each call in flight, each connection and each process that is waited for is a task.
        assert len(asyncio.all_tasks()) == before
        assert counting.running == 0
        assert ended.left_over == ()
        assert runs_there(handle.session_id) == []


MEETING = """
import asyncio, concurrent.futures, multiprocessing, os
import keryx_tools
from keryx_tools import aio, meet, terminal

# It ends when all of its kind are there, and no sooner.
WAITS = 'touch met/{number}; until [ "$(ls met | wc -l)" = 8 ]; do sleep 0.01; done; echo {number}'

def waits(number):
    return terminal(WAITS.format(number=number))["output"].strip()

async def together(many):
    return [one["met"] for one in await asyncio.gather(*(aio.meet(many) for _ in range(many)))]

def main():
    found = {}
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        found["threads"] = [one["met"] for one in pool.map(meet, [50] * 50)]
    found["tasks"] = asyncio.run(together(200))
    for kind, many in (("fork", 8), ("spawn", 2)):
        with multiprocessing.get_context(kind).Pool(many) as pool:
            found[kind] = [one["met"] for one in pool.map(meet, [many] * many, 1)]
    os.mkdir("met")
    found["commands"] = list(keryx_tools.parallel(waits, range(8)))
    keryx_tools.finish(found)

if __name__ == "__main__":
    main()
"""


class Meeting:
    """A tool whose calls end only together: one that waited for another would never end."""

    def __init__(self) -> None:
        self._barriers: dict[int, asyncio.Barrier] = {}

        @tool(effects=NO_EFFECTS)
        async def meet(many: int) -> dict[str, int]:
            """Wait until so many are here."""
            await self._barriers.setdefault(many, asyncio.Barrier(many)).wait()
            return {"met": many}

        self.tool = meet


@pytest.mark.promise("000.3")
async def test_calls_in_flight_run_at_the_same_time(den: Den) -> None:
    async with hosting(den, Meeting().tool) as app:
        meeting = (await execute(await app.open(approvals="never"), MEETING))["result"]
    assert meeting == {
        "threads": [50] * 50,
        "tasks": [200] * 200,
        "fork": [8] * 8,
        "spawn": [2] * 2,
        "commands": [str(number) for number in range(8)],
    }
