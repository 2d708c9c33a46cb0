"""Running a program on a loop: Ctrl+C reaches it wherever it is, and it cleans up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import pytest
import uvloop

from keryx.aio.loops import run_loop

LOOPS = pytest.mark.parametrize(
    "factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
Factory = Callable[[], asyncio.AbstractEventLoop]


@LOOPS
def test_ctrl_c_in_a_callback_of_the_loop_is_not_lost(factory: Factory) -> None:
    cleaned: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            cleaned.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        run_loop(main(), loop_factory=factory)
    assert cleaned == ["cleaned up"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@LOOPS
def test_a_program_that_cancels_itself_is_not_taken_for_ctrl_c(factory: Factory) -> None:
    async def main() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run_loop(main(), loop_factory=factory)


@LOOPS
def test_its_value_and_its_error_come_back(factory: Factory) -> None:
    async def give() -> int:
        return 42

    async def fail() -> None:
        raise LookupError

    assert run_loop(give(), loop_factory=factory) == 42
    with pytest.raises(LookupError):
        run_loop(fail(), loop_factory=factory)
