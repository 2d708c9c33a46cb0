"""The model without a network."""

from __future__ import annotations

import asyncio

from keryx.errors import ModelError
from keryx.events import Usage
from keryx.messages import Text, ToolMessage, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest, TextPiece
from tests.models.scripted_server import ask, failure, request, user


async def test_replies_come_in_order_and_in_pieces() -> None:
    replies = [
        ScriptedReply(
            text="I look.",
            reasoning="Hm, hm.",
            calls=[ScriptedCall("look", {"path": "a"}), ScriptedCall("look", "broken")],
            usage=Usage(input_tokens=1),
        ),
        ScriptedReply(text="Done."),
    ]
    model = ScriptedModel(replies)
    first = await ask(model)
    assert (first.text, first.reasoning) == ("I look.", "Hm, hm.")
    assert first.calls == {
        0: ["scripted_1_0", "look", '{"path":"a"}'],
        1: ["scripted_1_1", "look", "broken"],
    }
    assert first.finished is not None
    assert (first.finished.stop_reason, first.finished.usage) == (
        "tool_calls",
        Usage(input_tokens=1),
    )
    assert len([piece for piece in first.pieces if isinstance(piece, TextPiece)]) == 2
    second = await ask(model)
    assert second.text == "Done."
    assert (await failure(model)).message == "the script of scripted:demo has 2 replies and is over"


async def test_a_function_reads_what_it_is_told_and_answers() -> None:
    def echo(request: ModelRequest) -> ScriptedReply:
        last = history_of(request)[-1]
        assert isinstance(last, UserMessage | ToolMessage)
        (part,) = last.content
        assert isinstance(part, Text)
        return ScriptedReply(text=part.text.upper())

    model = ScriptedModel(echo)
    assert (await ask(model, user("hello"))).text == "HELLO"
    assert (await ask(model, ToolMessage("c", (Text("seen"),)))).text == "SEEN"


async def test_it_pauses_before_each_piece_by_the_sleep_that_it_is_given() -> None:
    slept = list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await ask(ScriptedModel([ScriptedReply(text="123456", piece=2, pause=0.25)], sleep=sleep))
    assert slept == [0.25, 0.25, 0.25]


async def test_an_error_comes_after_the_text() -> None:
    error = ModelError("stalled", "it stalls", "wait")
    model = ScriptedModel([ScriptedReply(text="some", error=error)])
    assert await failure(model) is error


async def test_a_reply_can_be_held_before_its_end() -> None:
    gate, held = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        held.set()
        await gate.wait()

    model = ScriptedModel([ScriptedReply(text="x", hold=hold)])
    asking = asyncio.create_task(ask(model))
    await held.wait()
    assert not asking.done()
    gate.set()
    assert (await asking).text == "x"


def test_it_says_what_it_is() -> None:
    model = ScriptedModel([], name="scripted:x", window=5, sees_images=True)
    assert (model.name, model.window, model.sees_images) == ("scripted:x", 5, True)
    assert history_of(request(model, user("a"))) == [user("a")]
