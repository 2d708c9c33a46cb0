"""A model stream that ends without its end is an error, whoever reads it and whatever sent it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx.engine.side_request import ask_for_text
from keryx.errors import ModelError
from keryx.events import encode
from keryx.messages import Message
from keryx.models.fallback import Fallback
from keryx.models.retry import Retrying
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.model import Finished, Model, ModelRequest, Piece, Switching, TextPiece
from keryx.ports.model import Retrying as RetryingPiece

pytestmark = pytest.mark.promise("mended.12")

REQUEST = ModelRequest(system="", history=[])


class CutModel:
    """An adapter that just stops, so many times, and then ends as it should."""

    name = "program:cut"
    window = None
    sees_images = False

    def __init__(self, cuts: int = 1_000) -> None:
        self.cuts = cuts
        self.request_count = 0

    def encode(self, message: Message) -> bytes:
        return repr(message).encode()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        del request
        self.request_count += 1
        yield TextPiece("half a re")
        if self.request_count > self.cuts:
            yield TextPiece("ply")
            yield Finished("stop")


async def pieces_of(model: Model) -> list[Piece]:
    return [piece async for piece in model.stream(REQUEST)]


async def no_wait(seconds: float) -> None:
    del seconds


async def test_a_turn_with_half_a_reply_fails_and_the_next_one_runs(tmp_path: Path) -> None:
    async with Keryx(model=CutModel(cuts=1), home=tmp_path) as app:
        session = await app.open()
        cut = await (await session.send("Hi")).result()
        whole = await (await session.send("Hi")).result()
    assert (cut.outcome, cut.text) == ("failed", "")
    assert cut.error is not None
    assert cut.error.kind == "bad_response"
    assert cut.error.hint
    assert (whole.outcome, whole.text) == ("completed", "half a reply")


async def test_a_call_whose_arguments_were_cut_off_at_the_limit_does_not_run(
    tmp_path: Path,
) -> None:
    ran: list[bool] = []

    @tool(effects=NO_EFFECTS)
    async def clear(everything: bool = True) -> str:
        """Clear the list, or everything."""
        ran.append(everything)
        return "cleared"

    replies = [
        ScriptedReply(
            calls=[ScriptedCall("clear", "{}"), ScriptedCall("clear", "")], stop="length"
        ),
        ScriptedReply(text="Done."),
    ]
    async with Keryx(model=ScriptedModel(replies), tools=[clear], home=tmp_path) as app:
        result = await (await (await app.open()).send("Go")).result()
    assert (result.outcome, ran) == ("completed", [True])
    (refused,) = [call for call in result.calls if call.outcome == "failed"]
    assert "not valid JSON" in encode(refused).decode()


async def test_words_beside_the_turns_are_whole_or_an_error() -> None:
    with pytest.raises(ModelError, match="was cut") as failure:
        await ask_for_text(CutModel(), REQUEST, timeout=10)
    assert failure.value.kind == "bad_response"


async def test_a_cut_reply_is_asked_for_again() -> None:
    pieces = await pieces_of(Retrying(CutModel(cuts=1), sleep=no_wait))
    assert [type(piece) for piece in pieces] == [
        TextPiece,
        RetryingPiece,
        TextPiece,
        TextPiece,
        Finished,
    ]


async def test_a_model_that_always_cuts_is_given_up() -> None:
    model = CutModel()
    with pytest.raises(ModelError, match="tried 3 times") as failure:
        await pieces_of(Retrying(model, attempts=3, sleep=no_wait))
    assert (failure.value.kind, model.request_count) == ("bad_response", 3)


async def test_another_model_takes_over_from_one_that_cuts() -> None:
    other = ScriptedModel([ScriptedReply(text="whole")])
    pieces = await pieces_of(Fallback([CutModel(), other]))
    assert any(isinstance(piece, Switching) for piece in pieces)
    assert isinstance(pieces[-1], Finished)
