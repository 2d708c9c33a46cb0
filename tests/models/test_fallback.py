"""Handing over to another model: when, to whom, with which bytes, and what the reader is told."""

from __future__ import annotations

import asyncio

import pytest

from keryx.aio.clock import FakeClock
from keryx.errors import ErrorKind, ModelError
from keryx.messages import AssistantMessage, Text, ToolCall, ToolMessage
from keryx.models.fallback import REST_SECONDS, Fallback
from keryx.models.http import Clients
from keryx.models.retry import Retrying
from keryx.models.scripted import ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest, Switching, TextPiece
from keryx.testing.modelserver import ModelServer, Reply
from tests.models.scripted_server import PATIENCE, ask, failure, openai_model, request, user
from tests.models.test_retry import Sleeps


def scripted(
    name: str, *errors: ModelError | None, window: int | None = None, text: str = "text"
) -> ScriptedModel:
    replies = [ScriptedReply(text=f"{text} of {name}", error=error) for error in errors]
    return ScriptedModel(replies, name=name, window=window)


def error(kind: ErrorKind, retry_after: float | None = None) -> ModelError:
    return ModelError(kind, f"it is {kind}", "do something", retry_after=retry_after)


@pytest.mark.parametrize(
    "kind",
    ["rate_limit", "auth", "quota", "model_not_found", "unreachable", "stalled", "bad_response"],
)
async def test_another_model_takes_over_and_the_reader_is_told(kind: ErrorKind) -> None:
    model = Fallback([scripted("a", error(kind)), scripted("b", None)])
    answer = await ask(model)
    assert answer.text == "text of b"
    assert answer.notices == [Switching("a", "b", kind, f"it is {kind}")]
    assert answer.finished is not None
    assert answer.finished.model == "b"


async def test_each_model_gets_the_history_in_its_own_encoding(clients: Clients) -> None:
    messages = (
        user("look"),
        AssistantMessage((Text("I do"),), (ToolCall("c1", "look", "{}"),)),
        ToolMessage("c1", (Text("seen"),)),
    )
    first, third = scripted("a", error("quota")), scripted("c", None)
    async with ModelServer([Reply(status=500), Reply(text="ok")]) as server:
        model = Fallback([first, openai_model(server.url, clients), third])
        answer = await ask(model, *messages)
        assert answer.text == "text of c"
        roles = [message["role"] for message in server.asked[0].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]
    assert history_of(first.asked[0]) == history_of(third.asked[0]) == list(messages)
    assert len(answer.notices) == 2


async def test_a_message_is_encoded_once_for_each_model_that_needs_it() -> None:
    class Counting(ScriptedModel):
        count = 0

        def encode(self, message: object) -> bytes:
            self.count += 1
            return super().encode(message)  # pyright: ignore[reportArgumentType] (any message)

    failures = [error("unreachable")] * 3
    second = Counting(lambda _: ScriptedReply(text="ok"), name="b")
    third = Counting(lambda _: ScriptedReply(text="ok"), name="c")
    model = Fallback([scripted("a", *failures), second, third], rest=0.0)
    history = [model.encode(user("one")), model.encode(user("two"))]
    for _ in range(3):
        asking = ModelRequest(system="", history=history)
        assert [piece async for piece in model.stream(asking)]
    assert (second.count, third.count) == (2, 0)


async def test_foreign_bytes_cannot_be_handed_over() -> None:
    model = Fallback([scripted("a", error("quota")), scripted("b", None)])
    with pytest.raises(TypeError, match="encode"):
        async for _ in model.stream(ModelRequest(system="", history=[b"{}"])):
            pass


async def test_what_is_too_long_goes_only_to_a_model_with_a_larger_window() -> None:
    small = scripted("small", None, window=100)
    unknown = scripted("unknown", None)
    large = scripted("large", None, window=1000)
    first = scripted("first", error("context_too_long"), window=100)
    answer = await ask(Fallback([first, small, unknown, large]))
    assert answer.text == "text of large"
    assert [(small.asked, unknown.asked)] == [([], [])]
    caught = await failure(Fallback([scripted("a", error("context_too_long")), unknown]))
    assert (caught.kind, caught.message) == ("context_too_long", "it is context_too_long")


async def test_what_no_other_model_can_help_is_raised() -> None:
    second = scripted("b", None)
    caught = await failure(Fallback([scripted("a", error("internal")), second]))
    assert caught.kind == "internal"
    assert second.asked == []


async def test_when_no_model_is_left_the_error_names_all_that_failed() -> None:
    model = Fallback([scripted("a", error("quota")), scripted("b", error("auth"))])
    caught = await failure(model)
    assert caught.kind == "auth"
    assert caught.message == (
        "it is auth (no fallback is left; these failed before: a: it is quota)"
    )


async def test_a_model_that_failed_rests_and_is_asked_again_later(clock: FakeClock) -> None:
    first = scripted("a", error("unreachable"), None, None)
    second = scripted("b", None, None)
    model = Fallback([first, second], clock=clock)
    assert (await ask(model)).text == "text of b"
    rested = await ask(model)
    assert rested.text == "text of b"
    assert rested.notices == [Switching("a", "b", "unreachable", "it is unreachable")]
    assert len(first.asked) == 1
    clock.advance(REST_SECONDS)
    back = await ask(model)
    assert (back.text, back.notices) == ("text of a", [])


async def test_if_all_rest_all_are_asked(clock: FakeClock) -> None:
    model = Fallback(
        [scripted("a", error("quota"), None), scripted("b", error("auth"))], clock=clock
    )
    await failure(model)
    assert (await ask(model)).text == "text of a"


async def test_it_comes_after_the_retries_are_used_up(clients: Clients) -> None:
    sleep = Sleeps()
    async with ModelServer(lambda _: Reply(status=503)) as server:
        first = Retrying(openai_model(server.url, clients), sleep=sleep)
        answer = await ask(Fallback([first, scripted("b", None)]))
        assert len(server.asked) == 5
    assert [type(notice).__name__ for notice in answer.notices] == ["Retrying"] * 4 + ["Switching"]
    assert answer.text == "text of b"


async def test_closing_it_hangs_up_at_once(clients: Clients) -> None:
    async with ModelServer([Reply(text="a long story", fault="hang mid-stream")]) as server:
        model = Fallback([openai_model(server.url, clients), scripted("b", None)])
        pieces = model.stream(request(model))
        assert isinstance(await anext(pieces), TextPiece)
        await pieces.aclose()
        async with asyncio.timeout(PATIENCE):
            await server.asked[0].gone.wait()


def test_it_speaks_for_its_first_model() -> None:
    inner = ScriptedModel([], name="scripted:x", window=7, sees_images=True)
    model = Fallback([inner, scripted("b")])
    assert (model.name, model.window, model.sees_images) == ("scripted:x", 7, True)
    assert repr(model) == "Fallback([ScriptedModel('scripted:x'), ScriptedModel('b')])"
    assert model.encode(user("x")) == inner.encode(user("x"))
    with pytest.raises(ValueError, match="at least one"):
        Fallback([])
