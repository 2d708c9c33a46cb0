"""A turn with a schema: its answer fits and is there as a value, or the turn has failed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.engine.answer_schema import check_schema, problems
from keryx.errors import UserMustActError
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of

pytestmark = pytest.mark.promise("mended.12")

SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'


def replies(*texts: str) -> ScriptedModel:
    return ScriptedModel([ScriptedReply(text=text) for text in texts])


async def test_an_answer_that_fits_is_there_as_a_value(tmp_path: Path) -> None:
    async with Keryx(model=replies('{"n": 5}'), home=tmp_path) as app:
        session = await app.open()
        result = await (await session.send("How many?", schema=SCHEMA)).result()
    assert (result.outcome, result.data) == ("completed", {"n": 5})


async def test_the_model_is_told_once_what_does_not_fit(tmp_path: Path) -> None:
    model = replies("Five!", '{"n": 5}')
    async with Keryx(model=model, home=tmp_path) as app:
        session = await app.open()
        result = await (await session.send("How many?", schema=SCHEMA)).result()
    assert (result.outcome, result.data) == ("completed", {"n": 5})
    assert "the answer is not JSON" in str(history_of(model.asked[1])[-1])


async def test_an_answer_that_never_fits_fails_the_turn(tmp_path: Path) -> None:
    model = replies("Five!", '{"n": "five"}', "never asked for")
    async with Keryx(model=model, home=tmp_path) as app:
        session = await app.open()
        result = await (await session.send("How many?", schema=SCHEMA)).result()
        following = await (await session.send("And now?")).result()
    assert (result.outcome, result.data) == ("failed", None)
    assert result.error is not None
    assert result.error.kind == "bad_response"
    assert "'five' is not of type 'integer' (at $.n)" in result.error.message
    assert result.error.hint
    assert (following.outcome, following.data) == ("completed", None), "it has no schema"


async def test_replies_that_ask_for_calls_need_not_fit(tmp_path: Path) -> None:
    model = ScriptedModel(
        [
            ScriptedReply(text="Let me look.", calls=[ScriptedCall("list_files", {})]),
            ScriptedReply(text='{"n": 0}'),
        ]
    )
    async with Keryx(model=model, workspace=tmp_path, home=tmp_path / "home") as app:
        session = await app.open()
        result = await (await session.send("How many?", schema=SCHEMA)).result()
    assert (result.outcome, result.data) == ("completed", {"n": 0})


async def test_a_turn_cancelled_after_a_misfit_leaves_no_message_behind(tmp_path: Path) -> None:
    gate = asyncio.Event()
    model = ScriptedModel([ScriptedReply(text="x"), ScriptedReply(text="y", hold=gate.wait)])
    async with Keryx(model=model, home=tmp_path) as app:
        session = await app.open()
        turn = await session.send("How many?", schema=SCHEMA)
        async for event in turn.events():
            if isinstance(event, ev.TextDelta) and event.text == "y":
                break
        assert (await turn.cancel()).outcome == "cancelled"
        assert (await session.view()).queue == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("not json {", "is not JSON"),
        ("5", "must be an object"),
        ("[]", "must be an object"),
        ('{"type": 5}', "is not a JSON schema"),
        ('{"type": "string", "pattern": "("}', "is not a JSON schema"),
        ('{"$ref": "https://example.invalid/schema"}', "which is not in it"),
        ('{"$dynamicRef": "https://example.invalid/schema"}', "which is not in it"),
        ('{"properties": {"a": {"$ref": "#/$defs/b"}}}', "which is not in it"),
        ('{"not": ' * 5_000 + "{}" + "}" * 5_000, "recursion"),
    ],
)
def test_what_is_no_schema_is_refused_with_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(UserMustActError, match=why):
        check_schema(text)


@pytest.mark.parametrize(
    ("answer", "count"), [('{"n": 5}', 0), ("{}", 1), ("", 1), ("NaN", 1), ("[" * 100_000, 1)]
)
def test_an_answer_is_checked_against_a_schema(answer: str, count: int) -> None:
    check_schema(SCHEMA)
    assert len(problems(SCHEMA, answer)) == count


def test_a_schema_without_end_is_a_misfit_and_no_crash() -> None:
    check_schema('{"$ref": "#"}')
    assert problems('{"$ref": "#"}', "{}")
