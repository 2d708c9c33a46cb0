"""Output and answer of a call come by two ways: in any order and pieces it comes out right."""

from __future__ import annotations

import asyncio

import pytest

from keryx.aio.capture import Capture
from keryx.sandbox.worker_call import WorkerCall
from keryx.sandbox.worker_protocol import Answer
from keryx.warden import Exit

ANSWER = Answer("returned", clean=True)


async def test_a_mark_is_found_wherever_it_is_cut() -> None:
    for text in (b"", b"output", b"zeros \0 and \0", b"\0"):
        for size in range(1, 60):
            capture = Capture()
            exchange = WorkerCall(capture)
            exchange.answered(ANSWER)
            data = text + exchange.mark + b"of nobody"
            for start in range(0, len(data), size):
                exchange.printed(data[start : start + size])
            assert exchange.over.result() == ANSWER
            assert capture.text() == text.decode()


async def test_a_call_is_over_once_both_have_come() -> None:
    late, early = WorkerCall(Capture()), WorkerCall(Capture())
    late.answered(ANSWER)
    early.printed(early.mark)
    assert not late.over.done()
    assert not early.over.done()
    late.printed(late.mark)
    early.answered(ANSWER)
    assert late.over.result() == early.over.result() == ANSWER


async def test_an_answer_that_announces_no_mark_is_enough() -> None:
    exchange = WorkerCall(Capture())
    exchange.answered(Answer("returned", marked=False))
    assert exchange.over.done()


async def test_what_only_looks_like_a_mark_is_output() -> None:
    capture = Capture()
    exchange = WorkerCall(capture)
    exchange.printed(exchange.mark[:-1])
    assert capture.text() == "", "it may still become one"
    exchange.printed(b"?")
    assert capture.text() == f"{exchange.mark[:-1].decode()}?"


@pytest.mark.parametrize("answered", [True, False])
async def test_the_end_of_the_process_ends_the_call(answered: bool) -> None:
    capture = Capture()
    exchange = WorkerCall(capture)
    exchange.printed(b"last words" + exchange.mark[:5])
    if answered:
        exchange.answered(ANSWER)
    end = Exit(1, None)
    exchange.ended(end)
    assert exchange.over.result() == (ANSWER if answered else end)
    assert capture.text() == f"last words{exchange.mark[:5].decode()}"


async def test_nobody_need_wait_for_it() -> None:
    exchange = WorkerCall(Capture())
    exchange.over.cancel()
    exchange.printed(exchange.mark)
    exchange.answered(ANSWER)
    exchange.ended(Exit(0, None))
    with pytest.raises(asyncio.CancelledError):
        await exchange.over
