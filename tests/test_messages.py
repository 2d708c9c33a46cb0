"""The vocabulary as a whole: its parts, its words, and that all it can say survives the wire."""

from __future__ import annotations

import inspect
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx import commands, events, messages
from keryx.aio import scope
from keryx.events import fields, live, logged
from keryx.messages import (
    AssistantMessage,
    CallOutcome,
    File,
    Image,
    Json,
    Message,
    Opaque,
    Part,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from keryx.ports import effects, tool

PINNED: tuple[tuple[Message | CallOutcome, str], ...] = (
    (
        UserMessage(
            content=(
                Text("look"),
                Image("b1", "image/png", "i.png"),
                File("b2", "text/csv"),
                Json(msgspec.Raw(b'{"a":1}')),
            )
        ),
        (
            '{"role":"user","content":[{"type":"text","text":"look"},'
            '{"type":"image","blob":"b1","media_type":"image/png","name":"i.png"},'
            '{"type":"file","blob":"b2","media_type":"text/csv","name":""},'
            '{"type":"json","value":{"a":1}}]}'
        ),
    ),
    (
        AssistantMessage(
            content=(Text("hi"),),
            calls=(ToolCall("c1", "read"),),
            reasoning="hm",
            opaque=(Opaque(provider="p", item=msgspec.Raw(b'{"s":1}'), after_text=2),),
        ),
        (
            '{"role":"assistant","content":[{"type":"text","text":"hi"}],'
            '"calls":[{"call_id":"c1","tool":"read","arguments":"{}"}],"reasoning":"hm",'
            '"opaque":[{"provider":"p","item":{"s":1},"after_text":2,"after_calls":0}]}'
        ),
    ),
    (
        ToolMessage("c1", (Text("x"),), "read"),
        '{"role":"tool","call_id":"c1","content":[{"type":"text","text":"x"}],"tool":"read"}',
    ),
    (
        CallOutcome("c1", "read", "unknown", "steer", True, (Text("x"),), 0.5, ("c2",), ("c0",)),
        (
            '{"call_id":"c1","tool":"read","outcome":"unknown","reason":"steer","started":true,'
            '"content":[{"type":"text","text":"x"}],"duration":0.5,"left_over":["c2"],'
            '"overlaps":["c0"],"hooks":[]}'
        ),
    ),
)

VOCABULARY: tuple[type[msgspec.Struct], ...] = (
    *get_args(Part),
    *get_args(Message),
    CallOutcome,
    *get_args(events.Event),
    events.NestedCalls,
    *get_args(commands.Command),
)
each_word = pytest.mark.parametrize("word", VOCABULARY, ids=lambda word: word.__name__)

# Bounded as JSON numbers are: what other readers cannot hold, nobody may write.
_PLAIN: dict[object, st.SearchStrategy[object]] = {
    str: st.text(max_size=8),
    int: st.integers(-(2**53), 2**53),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    NoneType: st.none(),
    msgspec.UnsetType: st.just(msgspec.UNSET),
    msgspec.Raw: st.sampled_from([msgspec.Raw(b"null"), msgspec.Raw(b'{"a":[1,"b"]}')]),
}


def _values(hint: Any) -> st.SearchStrategy[object]:
    """Every value that a field of that type can hold."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    match get_origin(hint), get_args(hint):
        case origin, words if origin is Literal:
            return st.sampled_from(words)
        case origin, members if origin in (Union, UnionType):
            return st.one_of([_values(member) for member in members])
        case origin, (item, _) if origin is tuple:
            return st.lists(_values(item), max_size=2).map(tuple)
        case origin, (key, value) if origin is dict:
            return st.dictionaries(_values(key), _values(value), max_size=2)
        case _:
            return _structs(hint)


def _structs(word: type[msgspec.Struct]) -> st.SearchStrategy[object]:
    fields = msgspec.structs.fields(word)
    return st.builds(word, **{field.name: _values(field.type) for field in fields})


@each_word
@settings(max_examples=20, deadline=None)  # a deadline would assert elapsed time
@given(data=st.data())
def test_all_that_can_be_said_comes_back_as_it_was(
    word: type[msgspec.Struct], data: st.DataObject
) -> None:
    said = data.draw(_structs(word))
    assert msgspec.json.decode(msgspec.json.encode(said), type=word) == said


@each_word
def test_nothing_said_can_be_changed(word: type[msgspec.Struct]) -> None:
    assert word.__struct_config__.frozen


@pytest.mark.parametrize(("said", "text"), PINNED, ids=lambda said: type(said).__name__)
def test_a_message_has_its_pinned_form_on_the_wire(said: Message | CallOutcome, text: str) -> None:
    assert msgspec.json.encode(said).decode() == text
    assert msgspec.json.decode(text, type=type(said)) == said


def test_every_message_and_every_part_has_a_pinned_form() -> None:
    assert {type(said) for said, _ in PINNED} == {*get_args(Message), CallOutcome}
    user = PINNED[0][0]
    assert isinstance(user, UserMessage)
    assert {type(part) for part in user.content} == set(get_args(Part))


def test_a_message_is_told_by_its_role() -> None:
    for said, text in PINNED[:3]:
        assert msgspec.json.decode(text, type=Message) == said
    with pytest.raises(msgspec.ValidationError, match=r"'system' - at `\$\.role`"):
        msgspec.json.decode(b'{"role":"system"}', type=Message)


def test_what_was_written_before_signed_items_had_a_place_reads_on() -> None:
    item = msgspec.json.decode(b'{"provider":"p","item":{"s":1}}', type=Opaque)
    assert (item.after_text, item.after_calls) == (0, 0)
    message = msgspec.json.decode(b'{"role":"assistant","calls":[]}', type=AssistantMessage)
    assert message.opaque == ()
    assert msgspec.json.decode(b'{"role":"tool","call_id":"c"}', type=ToolMessage).tool == ""


def test_a_structured_value_keeps_the_bytes_that_it_was_encoded_to() -> None:
    part = msgspec.json.decode(b'{"type":"json","value":{"b": 1.0,"a":[ ]}}', type=Json)
    assert bytes(part.value) == b'{"b": 1.0,"a":[ ]}'
    assert part.decode() == {"b": 1.0, "a": []}


def test_a_model_reads_an_outcome_as_text() -> None:
    content = (Text("a"), Json(msgspec.Raw(b"[1]")), Image("b1", "image/png", "i.png"))
    outcome = CallOutcome("c1", "read", "completed", content=(*content, File("b2", "text/csv")))
    assert outcome.text == "a\n[1]\n[image/png i.png]\n[text/csv b2]"


def test_the_version_is_that_of_what_is_pinned() -> None:
    assert messages.VERSION == 1


def test_one_idea_has_the_same_words_in_every_layer() -> None:
    assert get_args(messages.Reason) == get_args(scope.Reason)
    assert get_args(events.Replay) == get_args(tool.Replay)
    assert set(get_args(messages.Reason)) <= set(get_args(events.Expiry))
    assert set(get_args(messages.Reason)) <= set(get_args(events.AbandonCause))
    for level in get_args(events.RiskLevel):
        assert msgspec.convert({"level": level}, tool.Risk).level == level


def test_declared_effects_become_logged_ones_as_they_are() -> None:
    declared = effects.writes("/w", peers="terminal") | effects.uses("db")
    said = msgspec.convert(declared, events.CallEffects, from_attributes=True)
    assert msgspec.json.encode(said) == msgspec.json.encode(declared)


def test_the_blob_of_nested_calls_has_a_pinned_form() -> None:
    blob = events.NestedCalls(
        calls=(
            events.NestedCall(
                call_id="c1",
                tool="terminal",
                start=0.5,
                duration=1.5,
                outcome="completed",
                preview="ls",
            ),
        ),
        sums=(
            events.NestedSum(
                tool="terminal",
                calls=9,
                duration=3.0,
                completed=8,
                ended={"completed": 8, "cancelled": 1},
            ),
        ),
    )
    assert msgspec.json.encode(blob).decode() == (
        '{"calls":[{"call_id":"c1","tool":"terminal","start":0.5,"duration":1.5,'
        '"outcome":"completed","preview":"ls"}],'
        '"sums":[{"tool":"terminal","calls":9,"duration":3.0,"completed":8,'
        '"ended":{"completed":8,"cancelled":1}}]}'
    )


def test_the_package_exports_all_that_its_files_define() -> None:
    defined = {
        name
        for module in (fields, logged, live)
        for name, value in inspect.getmembers(module, inspect.isclass)
        if value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert defined - {"Envelope", "Logged", "InTurn", "AtWork"} <= set(events.__all__)
    assert all(hasattr(events, name) for name in events.__all__)


def test_what_comes_after_the_end_of_a_turn_belongs_to_no_turn() -> None:
    for late in (events.CallSettled, events.UsageRecorded, events.ToolsLoaded):
        assert "turn_id" not in late.__struct_fields__


def test_a_cost_is_always_said_even_if_it_is_unknown() -> None:
    for spent in (events.StepReplied, events.TurnFinished, events.UsageRecorded):
        (cost,) = (field for field in msgspec.structs.fields(spent) if field.name == "cost")
        assert cost.required
        assert set(get_args(cost.type)) == {float, NoneType}
