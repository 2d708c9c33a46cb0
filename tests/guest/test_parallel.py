"""Many calls of one tool: in order, bounded, and every failure in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guest.script_processes import run
from tests.guest.server import Server

# The same script, blocking and for asyncio.
BLOCKING = """
import json
from keryx_tools import *
def main():
    BODY
print(json.dumps(main()))
"""
ASYNC = """
import asyncio, json
from keryx_tools import ToolFailedError
from keryx_tools.aio import *
async def main():
    BODY
print(json.dumps(asyncio.run(main())))
"""


@pytest.fixture(params=[BLOCKING, ASYNC], ids=["blocking", "async"])
def frame(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def script(frame: str, body: str) -> str:
    await_ = "await " if frame is ASYNC else ""
    return frame.replace("BODY", body.replace("parallel(", f"{await_}parallel("))


def test_results_come_in_the_order_of_the_items(tmp_path: Path, address: str, frame: str) -> None:
    body = """
    items = [("a", 0.02), {"tag": "b", "delay": 0.01}, "c"]
    return [found["tag"] for found in parallel(echo, items)]
    """
    assert run(tmp_path, script(frame, body), address) == ["a", "b", "c"]


def test_a_failure_stays_in_its_place(tmp_path: Path, address: str, frame: str) -> None:
    body = """
    found = parallel(fail, [("one", "ToolFailedError"), ("two", "ToolDeniedError")])
    assert isinstance(found[0], ToolFailedError)
    return [[type(one).__name__, str(one)] for one in found] + [list(found.failures)]
    """
    assert run(tmp_path, script(frame, body), address) == [
        ["ToolFailedError", "one"],
        ["ToolDeniedError", "two"],
        [0, 1],
    ]


def test_the_limit_holds_and_is_reached(
    tmp_path: Path, server: Server, address: str, frame: str
) -> None:
    body = """
    found = parallel(meet, [(str(n), 5) for n in range(20)], limit=5)
    return [len(found), found.failures]
    """
    assert run(tmp_path, script(frame, body), address) == [20, {}]
    assert server.tools.most_running == 5


def test_wrong_arguments_are_refused_before_the_first_call(
    tmp_path: Path, server: Server, address: str, frame: str
) -> None:
    body = """
    said = []
    for items, limit in (["a", {"nonsense": 1}], 16), (["a"], 0):
        try:
            parallel(echo, items, limit=limit)
        except (TypeError, ValueError) as error:
            said.append(str(error))
    return said + [parallel(echo, [])]
    """
    assert run(tmp_path, script(frame, body), address) == [
        "echo() has no argument 'nonsense'; it has: tag, delay",
        "limit is 0; at least one call at a time must be allowed",
        [],
    ]
    assert server.connections == 0


def test_any_function_of_the_script_can_be_fanned_out(tmp_path: Path, address: str) -> None:
    body = """
    def doubled(tag):
        if tag == "b":
            raise KeyError(tag)
        return echo(tag)["tag"] * 2
    found = parallel(doubled, ["a", "b", "c"])
    return [str(one) for one in found] + [list(found.failures)]
    """
    assert run(tmp_path, script(BLOCKING, body), address) == ["aa", "'b'", "cc", [1]]
