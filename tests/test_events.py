"""The JSON form of every event is pinned here: what is written today can be read for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec
import pytest

from keryx import events
from keryx.events import Event, LiveEvent, LoggedEvent
from tests import pinned
from tests.pinned import FACT, fact_text, live_text, turn_text
from tests.pinned_live import PINNED_LIVE
from tests.pinned_models import PINNED_MODELS

LOGGED_NAMES = {
    f"{noun}.{verb}"
    for noun, verbs in {
        "session": ("opened", "changed"),
        "message": ("accepted", "changed", "withdrawn", "delivered", "expired"),
        "prompt": ("changed",),
        "turn": (
            *("started", "resumed", "suspended", "cancelling"),
            *("undone", "restored", "finished"),
        ),
        "step": ("started", "abandoned", "replied"),
        "call": ("amended", "started", "finished", "settled"),
        "calls": ("answered",),
        "nested": ("finished",),
        "files": ("changed",),
        "approval": ("asked", "answered", "expired"),
        "question": ("asked", "answered", "expired"),
        "model": ("retried", "switched"),
        "context": ("compacted",),
        "usage": ("recorded",),
        "tools": ("loaded",),
        "memory": ("changed", "recalled"),
    }.items()
    for verb in verbs
}
LIVE_NAMES = {"text.delta", "reasoning.delta", "arguments.delta", "step.reset", "call.output"} | {
    "call.progress",
    "step.snapshot",
    "calls.snapshot",
    "context.compacting",
    "resync",
}


PINNED = [*pinned.PINNED, *PINNED_MODELS, *PINNED_LIVE]
each_event = pytest.mark.parametrize(
    ("event", "text"), [pytest.param(*pin, id=events.type_of(pin[0])) for pin in PINNED]
)


def _names(union: Any) -> list[str]:
    return [member.__struct_config__.tag for member in get_args(union)]


def _without(text: str, *names: str) -> bytes:
    members: Mapping[str, object] = msgspec.json.decode(text)
    return msgspec.json.encode({key: members[key] for key in members if key not in names})


def test_the_logged_and_live_names_are_those_of_the_design() -> None:
    logged_names, live_names = _names(LoggedEvent), _names(LiveEvent)
    assert set(logged_names) == LOGGED_NAMES
    assert set(live_names) == LIVE_NAMES
    assert len(logged_names + live_names) == len(LOGGED_NAMES | LIVE_NAMES)


def test_every_event_has_a_pinned_form() -> None:
    assert {type(event) for event, _ in PINNED} == set(get_args(Event))


@each_event
def test_an_event_has_its_pinned_form_on_the_wire_and_comes_back(event: Event, text: str) -> None:
    assert events.encode(event) == text.encode()
    assert events.decode(text.encode()) == event


@each_event
def test_an_unknown_field_is_skipped(event: Event, text: str) -> None:
    newer = text[:-1] + ',"of_a_newer_writer":{"a":[1]}}'
    assert events.decode(newer.encode()) == event


@each_event
def test_a_missing_required_field_is_refused(event: Event, text: str) -> None:
    required = [f.encode_name for f in msgspec.structs.fields(event) if f.required]
    assert {"session_id", "at"} <= set(required)
    for name in ["type", *required]:
        with pytest.raises(msgspec.ValidationError, match=f"missing required field `{name}`"):
            events.decode(_without(text, name))


@each_event
def test_an_optional_field_may_be_absent(event: Event, text: str) -> None:
    optional = [f.encode_name for f in msgspec.structs.fields(event) if not f.required]
    assert type(events.decode(_without(text, *optional))) is type(event)


@each_event
def test_only_facts_are_read_from_a_log(event: Event, text: str) -> None:
    if events.type_of(event) in LOGGED_NAMES:
        assert events.decode_logged(text.encode()) == event
        assert "seq" in event.__struct_fields__
    else:
        with pytest.raises(msgspec.ValidationError, match=events.type_of(event)):
            events.decode_logged(text.encode())
        assert "seq" not in event.__struct_fields__


def test_an_unknown_type_is_refused_by_its_name() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"'turn\.imagined' - at `\$\.type`"):
        events.decode(live_text("turn.imagined").encode())


def test_a_word_outside_its_list_is_refused() -> None:
    text = turn_text("turn.cancelling", '"reason":"boredom","by":"ann"')
    with pytest.raises(msgspec.ValidationError, match="boredom"):
        events.decode(text.encode())


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        events.decode(b'{"type":"resync"')


def test_a_change_says_only_what_changed() -> None:
    renamed = events.SessionChanged(**FACT, by="ann", title="New")
    assert events.encode(renamed).decode() == fact_text(
        "session.changed", '"by":"ann","title":"New"'
    )
    moved = events.MessageChanged(**FACT, message_id="m2", by="ann", before="m1")
    expected = '"message_id":"m2","by":"ann","before":"m1"'
    assert events.encode(moved).decode() == fact_text("message.changed", expected)
    assert events.decode(events.encode(moved)) == moved
