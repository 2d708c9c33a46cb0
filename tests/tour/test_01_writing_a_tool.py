"""Writing a tool, from the first line to cancelling it. Read it from top to bottom."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from keryx import NO_EFFECTS, Effects, ToolContext, ToolFailedError, get_token, reads, tool
from keryx.errors import InvalidArgumentsError
from keryx.messages import ToolCall
from tests.engine.host import Host, recorder

# A tool is a typed function with a docstring. The schema comes from the signature, the
# descriptions from the docstring. `effects` says what the tool reads and writes; without it, the
# tool runs alone, because nobody knows what it touches.


@dataclass
class City:
    name: str
    country: str = "GR"


@tool(effects=NO_EFFECTS)
async def weather(cities: list[City], unit: str = "C") -> dict[str, str]:
    """Tell the weather.

    Args:
        cities: Where.
        unit: C or F.
    """
    if not cities:
        raise ToolFailedError("name at least one city")
    return {city.name: f"20 {unit}" for city in cities}


def test_the_model_is_given_a_schema() -> None:
    assert weather.description == "Tell the weather."
    properties: Any = weather.parameters["properties"]
    assert properties["cities"]["description"] == "Where."
    assert weather.parameters["required"] == ["cities"]


def test_a_tool_is_still_a_function() -> None:
    assert asyncio.run(weather([City("Athens")])) == {"Athens": "20 C"}


def test_what_the_model_sends_is_checked_and_the_error_says_what_to_do() -> None:
    with pytest.raises(InvalidArgumentsError, match=r"\$\.cities\[0\]\.name"):
        weather.parse('{"cities": [{"name": 7}]}')


# The executor runs calls. Each ends with exactly one outcome.


async def test_calls_of_one_step_run_side_by_side(host: Host) -> None:
    environment = host.environment(weather)
    good, bad = await host.run(
        environment,
        ToolCall("c1", "weather", '{"cities": [{"name": "Athens"}]}'),
        ToolCall("c2", "weather", '{"cities": []}'),
    )
    assert (good.outcome, good.text) == ("completed", '{"Athens":"20 C"}')
    assert (bad.outcome, bad.text) == ("failed", "name at least one city")


# Effects may depend on the arguments. Calls that touch the same things keep their order.


def what_it_reads(args: Any) -> Effects:
    return reads(args.path)


@tool(effects=what_it_reads)
def peek(path: str) -> str:
    """Read the first line of a file."""
    return path


# A long tool listens to its token, and emits what it has: that survives a cancellation.


@tool(effects=NO_EFFECTS)
async def search(context: ToolContext) -> None:
    """Search for ever."""
    context.emit("one result\n")
    token = get_token()
    assert token is not None
    await token.wait_cancelled()


async def test_a_cancelled_call_keeps_what_it_had(host: Host) -> None:
    environment = host.environment(search, peek)
    batch = host.start(
        environment, ToolCall("c1", "search"), ToolCall("c2", "peek", '{"path": "a"}')
    )
    await recorder(environment).until_noted("output", "c1")
    batch.cancel("c1", "steer")
    cancelled, peeked = await batch.outcomes()
    assert (cancelled.outcome, cancelled.reason) == ("cancelled", "steer")
    assert cancelled.text == "one result\n"
    assert peeked.outcome == "completed", "the other call went on"
