"""Values are counted without decoding, and the calls of a run hold a limited number at a time."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.sandbox.scripts import value_limits
from keryx.sandbox.scripts.value_limits import ValueBudget, values_in

JSON = st.recursive(
    st.none() | st.integers() | st.text(alphabet='\\",:[]{}aä\n', max_size=12),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='"\\:,x'), inner),
    max_leaves=30,
)


def value_count(value: Any) -> int:
    """How many objects it takes, names included."""
    match value:
        case list():
            return 1 + sum(value_count(item) for item in value)  # pyright: ignore[reportUnknownVariableType] (JSON)
        case dict():
            return 1 + sum(1 + value_count(item) for item in value.values())  # pyright: ignore[reportUnknownVariableType] (JSON)
        case _:
            return 1


@pytest.mark.parametrize("piece", [1, 2, 5, 65_536])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_no_value_is_missed_and_text_counts_as_one(piece: int, *, ascii_only: bool) -> None:
    @given(JSON)
    def check(value: Any) -> None:
        text = json.dumps(value, ensure_ascii=ascii_only).encode()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(value_limits, "_PIECE", piece)
            count = values_in(memoryview(text))
        assert value_count(value) <= count <= 2 * value_count(value) + 1

    check()


def test_counting_ends_past_the_most() -> None:
    text = b"[" + b"[]," * 1_000_000 + b"[]]"
    assert 100 < values_in(memoryview(text), 100) < 100_000


async def test_what_would_hold_too_many_waits_and_one_alone_never_does() -> None:
    allowance, begun = ValueBudget(10), list[str]()
    gates = {name: asyncio.Event() for name in ("huge", "small", "large")}

    async def hold(name: str, count: int) -> None:
        async with allowance.reserve(count):
            begun.append(name)
            await gates[name].wait()

    async with asyncio.TaskGroup() as group:
        huge = group.create_task(hold("huge", 100))
        await asyncio.sleep(0)
        given_up = group.create_task(hold("small", 1))
        group.create_task(hold("small", 4))
        group.create_task(hold("large", 7))
        await asyncio.sleep(0)
        assert begun == ["huge"]
        given_up.cancel()
        gates["huge"].set()
        await huge
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert begun == ["huge", "small"]
        gates["small"].set()
        gates["large"].set()
    assert begun == ["huge", "small", "large"]
