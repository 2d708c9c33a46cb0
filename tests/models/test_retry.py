"""Asking again: what is tried again, when, and what the reader is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from keryx.errors import ErrorKind, ModelError
from keryx.models.http import Clients
from keryx.models.retry import Retrying
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.ports.model import Model, TextPiece
from keryx.ports.model import Retrying as RetryingPiece
from keryx.testing.modelserver import ModelServer, Reply
from tests.models.scripted_server import PATIENCE, ask, failure, openai_model, request


class Sleeps:
    """A sleep that takes no time and remembers how long it should have been."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


def retrying(model: Model, sleep: Sleeps, jitter: float = 0.5) -> Retrying:
    return Retrying(model, sleep=sleep, jitter=lambda: jitter)


def failing(*errors: ModelError | None) -> ScriptedModel:
    replies = [ScriptedReply(text="some text", piece=100, error=error) for error in errors]
    return ScriptedModel(replies)


def error(kind: ErrorKind, retry_after: float | None = None) -> ModelError:
    return ModelError(kind, f"it is {kind}", "do something", retry_after=retry_after)


async def test_what_may_pass_is_tried_again_and_each_retry_is_told_before_its_wait(
    clients: Clients,
) -> None:
    sleep = Sleeps()
    replies = [
        Reply(status=429, headers={"Retry-After": "3"}),
        Reply(status=529),
        Reply(text="half of it is lost", fault="reset mid-stream", after=3),
        Reply(text="half of it is lost", fault="end mid-stream"),
        Reply(text="whole"),
    ]
    async with ModelServer(replies) as server:
        answer = await ask(retrying(openai_model(server.url, clients), sleep))
        assert len(server.asked) == 5
    assert answer.text == "whole"
    retries = [notice for notice in answer.notices if isinstance(notice, RetryingPiece)]
    assert [notice.cause for notice in retries] == [
        "rate_limit",
        "unreachable",
        "bad_response",
        "bad_response",
    ]
    # The server's own delay first; then half of 1, 2 and 4 seconds.
    assert sleep.slept == [notice.delay for notice in retries] == [3.0, 0.5, 1.0, 2.0]
    assert "answered 429" in retries[0].message
    assert "was cut" in retries[2].message


async def test_a_retry_is_told_before_the_wait_and_the_reply_starts_anew() -> None:
    model = retrying(failing(error("stalled"), None), Sleeps())
    pieces = [piece async for piece in model.stream(request(model))]
    assert [type(piece).__name__ for piece in pieces] == [
        "TextPiece",
        "Retrying",
        "TextPiece",
        "Finished",
    ]


async def test_when_all_attempts_are_used_the_last_error_says_how_often() -> None:
    sleep = Sleeps()
    model = failing(*[error("unreachable", 0.0)] * 9)
    caught = await failure(retrying(model, sleep, jitter=1.0))
    assert len(model.asked) == 5
    assert sleep.slept == [0.5, 1.0, 2.0, 4.0]
    assert caught.kind == "unreachable"
    assert caught.message == "it is unreachable (tried 5 times)"
    assert caught.hint == "do something"


@pytest.mark.parametrize(
    "kind", ["auth", "quota", "context_too_long", "model_not_found", "bad_response"]
)
async def test_what_will_not_pass_is_not_tried_again(kind: ErrorKind) -> None:
    sleep = Sleeps()
    model = failing(error(kind), None)
    caught = await failure(retrying(model, sleep))
    assert (caught.kind, caught.message) == (kind, f"it is {kind}")
    assert (len(model.asked), sleep.slept) == (1, [])


@pytest.mark.parametrize(
    ("delays", "slept", "words"),
    [
        ([3600.0], [], "tried once; another wait of 3600 s would be too long"),
        ([100.0, 15.0, 15.0], [100.0, 15.0], "tried 3 times; another wait of 15 s"),
    ],
)
async def test_the_waits_together_are_bounded(
    delays: Sequence[float], slept: list[float], words: str
) -> None:
    sleep = Sleeps()
    model = failing(*[error("rate_limit", delay) for delay in delays], None)
    caught = await failure(retrying(model, sleep))
    assert sleep.slept == slept
    assert words in caught.message


async def test_cancelling_the_wait_asks_nobody_again() -> None:
    waiting = asyncio.Event()

    async def wait(_: float) -> None:
        waiting.set()
        await asyncio.get_running_loop().create_future()

    model = failing(error("rate_limit"), None)
    reader = asyncio.create_task(ask(Retrying(model, sleep=wait)))
    await waiting.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert len(model.asked) == 1


async def test_closing_it_hangs_up_at_once(clients: Clients) -> None:
    async with ModelServer([Reply(text="a long story", fault="hang mid-stream")]) as server:
        model = Retrying(openai_model(server.url, clients))
        pieces = model.stream(request(model))
        assert isinstance(await anext(pieces), TextPiece)
        await pieces.aclose()
        async with asyncio.timeout(PATIENCE):
            await server.asked[0].gone.wait()


def test_it_speaks_for_the_model_that_it_wraps() -> None:
    inner = ScriptedModel([], name="scripted:x", window=7, sees_images=True)
    model = Retrying(inner)
    assert (model.name, model.window, model.sees_images) == ("scripted:x", 7, True)
    assert repr(model) == "Retrying(ScriptedModel('scripted:x'))"
