"""The JSON form of every event is pinned here: what is written today can be read for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, get_args

import msgspec
import pytest

from keryx import events
from keryx.events import Event, LiveEvent, LoggedEvent
from keryx.messages import File, Image, Json, Mode, Text, ToolCall

LOGGED_NAMES = {
    f"{noun}.{verb}"
    for noun, verbs in {
        "session": ("opened", "changed"),
        "message": ("accepted", "changed", "withdrawn", "delivered", "expired"),
        "prompt": ("changed",),
        "turn": ("started", "resumed", "cancelling", "undone", "finished"),
        "step": ("started", "abandoned", "replied"),
        "call": ("started", "finished", "settled"),
        "files": ("changed",),
        "approval": ("asked", "answered", "expired"),
        "question": ("asked", "answered", "expired"),
        "model": ("retried", "switched"),
        "context": ("compacted",),
        "usage": ("recorded",),
    }.items()
    for verb in verbs
}
LIVE_NAMES = {"text.delta", "reasoning.delta", "arguments.delta", "step.reset", "call.output"} | {
    "call.progress",
    "step.snapshot",
    "resync",
}


class _Live(TypedDict):
    session_id: str
    at: float


class _Fact(_Live):
    seq: int


class _InTurn(_Fact):
    turn_id: str


class _Look(TypedDict):
    model: str
    profile: str
    place: str
    workspace: str
    tools: tuple[str, ...]
    effort: str | None
    personality: str | None
    title: str
    pinned: bool
    archived: bool


class _Said(TypedDict):
    message_id: str
    mode: Mode
    text: str
    workspace: str
    attachments: tuple[Image | File, ...]


LIVE: _Live = {"session_id": "s1", "at": 1.5}
FACT: _Fact = {"session_id": "s1", "at": 1.5, "seq": 7}
TURN: _InTurn = {"session_id": "s1", "at": 1.5, "seq": 7, "turn_id": "t1"}

LOOK: _Look = {
    "model": "o:m",
    "profile": "home",
    "place": "local",
    "workspace": "/w",
    "tools": ("sh",),
    "effort": None,
    "personality": "terse",
    "title": "Hello",
    "pinned": True,
    "archived": False,
}
LOOK_JSON = (
    '"model":"o:m","profile":"home","place":"local","workspace":"/w","tools":["sh"],'
    '"effort":null,"personality":"terse","title":"Hello","pinned":true,"archived":false'
)
ATTACHED_JSON = (
    '[{"type":"image","blob":"b1","media_type":"image/png","name":"i.png"},'
    '{"type":"file","blob":"b2","media_type":"text/csv","name":"f.csv"}]'
)
SAID: _Said = {
    "message_id": "m1",
    "mode": "steer",
    "text": "go",
    "workspace": "/w",
    "attachments": (Image("b1", "image/png", "i.png"), File("b2", "text/csv", "f.csv")),
}
ACCESS = events.CallAccess(kind="path", name="/w", writes=True, peers="sh")
EFFECTS = events.CallEffects(accesses=(ACCESS,), exclusive=True)
EFFECTS_JSON = (
    '{"accesses":[{"kind":"path","name":"/w","writes":true,"peers":"sh"}],"exclusive":true}'
)
NESTED = events.NestedProgress(tool="read", preview="a", outcome="completed", duration=0.5, count=3)
NESTED_JSON = '{"tool":"read","preview":"a","outcome":"completed","duration":0.5,"count":3}'
CALLS = (ToolCall(call_id="c1", tool="read", arguments='{"path":"a"}'),)
CALLS_JSON = r'[{"call_id":"c1","tool":"read","arguments":"{\"path\":\"a\"}"}]'
RUNNING = (
    events.RunningCall(
        call_id="c2", tool="sh", parent="c0", output="line", done=1.0, total=2.0, note="n"
    ),
)
RUNNING_JSON = (
    '[{"call_id":"c2","tool":"sh","parent":"c0","output":"line","done":1.0,"total":2.0,"note":"n"}]'
)
USAGE = events.Usage(input_tokens=9, output_tokens=4, cached_tokens=2, reasoning_tokens=1)
USAGE_JSON = '{"input_tokens":9,"output_tokens":4,"cached_tokens":2,"reasoning_tokens":1}'


def _live(name: str, rest: str = "") -> str:
    return f'{{"type":"{name}","session_id":"s1","at":1.5,"v":1{rest and ","}{rest}}}'


def _fact(name: str, rest: str) -> str:
    return _live(name, f'"seq":7,{rest}')


def _turn(name: str, rest: str) -> str:
    return _fact(name, f'"turn_id":"t1",{rest}')


PINNED: tuple[tuple[Event, str], ...] = (
    (
        events.SessionOpened(
            **FACT,
            **LOOK,
            parent=events.ParentCall(session_id="s0", call_id="c0"),
            fork=events.ForkPoint(session_id="s9", up_to=3),
        ),
        _fact(
            "session.opened",
            f'{LOOK_JSON},"parent":{{"session_id":"s0","call_id":"c0"}},'
            '"fork":{"session_id":"s9","up_to":3}',
        ),
    ),
    (
        events.SessionChanged(**FACT, **LOOK, by="ann"),
        _fact("session.changed", f'"by":"ann",{LOOK_JSON}'),
    ),
    (
        events.MessageAccepted(
            **FACT, **SAID, turn_id="t1", key="k1", by="ann", wait=True, schema="{}"
        ),
        _fact(
            "message.accepted",
            '"message_id":"m1","turn_id":"t1","key":"k1","by":"ann","mode":"steer",'
            f'"text":"go","workspace":"/w","attachments":{ATTACHED_JSON},"wait":true,"schema":"{{}}"',
        ),
    ),
    (
        events.MessageChanged(**FACT, **SAID, by="ann", turn_id="t2", before=None),
        _fact(
            "message.changed",
            '"message_id":"m1","by":"ann","turn_id":"t2","mode":"steer","text":"go",'
            f'"workspace":"/w","attachments":{ATTACHED_JSON},"before":null',
        ),
    ),
    (
        events.MessageWithdrawn(**FACT, message_id="m1", by="ann"),
        _fact("message.withdrawn", '"message_id":"m1","by":"ann"'),
    ),
    (
        events.MessageDelivered(**TURN, message_id="m1"),
        _turn("message.delivered", '"message_id":"m1"'),
    ),
    (
        events.MessageExpired(**TURN, message_id="m1", cause="interrupt"),
        _turn("message.expired", '"message_id":"m1","cause":"interrupt"'),
    ),
    (
        events.PromptChanged(**FACT, part="skills", blob="b1"),
        _fact("prompt.changed", '"part":"skills","blob":"b1"'),
    ),
    (
        events.TurnStarted(**TURN, message_ids=("m1", "m2"), warnings=("hm",)),
        _turn("turn.started", '"message_ids":["m1","m2"],"warnings":["hm"]'),
    ),
    (events.TurnResumed(**TURN, attempt=2), _turn("turn.resumed", '"attempt":2')),
    (
        events.TurnCancelling(**TURN, reason="interrupt", by="ann"),
        _turn("turn.cancelling", '"reason":"interrupt","by":"ann"'),
    ),
    (events.TurnUndone(**TURN, by="ann"), _turn("turn.undone", '"by":"ann"')),
    (
        events.TurnFinished(
            **TURN,
            outcome="failed",
            usage=USAGE,
            cost=None,
            reason="timeout",
            started=False,
            left_over=("c1",),
            error=events.TurnError(kind="rate_limit", message="slow down", hint="wait 3 s"),
        ),
        _turn(
            "turn.finished",
            f'"outcome":"failed","usage":{USAGE_JSON},"cost":null,"reason":"timeout",'
            '"started":false,"left_over":["c1"],'
            '"error":{"kind":"rate_limit","message":"slow down","hint":"wait 3 s"}',
        ),
    ),
    (
        events.StepStarted(**TURN, step_id="p1", model="o:m", effort="low"),
        _turn("step.started", '"step_id":"p1","model":"o:m","effort":"low"'),
    ),
    (
        events.StepAbandoned(**TURN, step_id="p1", cause="crash"),
        _turn("step.abandoned", '"step_id":"p1","cause":"crash"'),
    ),
    (
        events.StepReplied(
            **TURN,
            step_id="p1",
            text="hi",
            usage=USAGE,
            cost=0.25,
            context=events.ContextSize(window=100, compact_at=80, last_prompt_tokens=9),
            stop_reason="tool_calls",
            reasoning="hm",
            opaque=(events.Opaque(provider="anthropic", item=msgspec.Raw(b'{"sig":"x"}')),),
            calls=CALLS,
            cut=True,
        ),
        _turn(
            "step.replied",
            f'"step_id":"p1","text":"hi","usage":{USAGE_JSON},"cost":0.25,'
            '"context":{"window":100,"compact_at":80,"last_prompt_tokens":9},'
            '"stop_reason":"tool_calls","reasoning":"hm",'
            '"opaque":[{"provider":"anthropic","item":{"sig":"x"}}],'
            f'"calls":{CALLS_JSON},"cut":true',
        ),
    ),
    (
        events.CallStarted(
            **TURN,
            call_id="c1",
            step_id="p1",
            by="model",
            tool="sh",
            arguments="{}",
            preview="ls",
            effects=EFFECTS,
            replay="never",
            overlaps=("c0",),
            arguments_blob="b1",
        ),
        _turn(
            "call.started",
            '"call_id":"c1","step_id":"p1","by":"model","tool":"sh","arguments":"{}",'
            f'"preview":"ls","effects":{EFFECTS_JSON},"replay":"never","overlaps":["c0"],'
            '"arguments_blob":"b1"',
        ),
    ),
    (
        events.CallFinished(
            **TURN,
            call_id="c1",
            tool="execute_code",
            outcome="cancelled",
            reason="steer",
            started=True,
            result=(Text(text="part"), Json(value=msgspec.Raw(b"[1]"))),
            duration=0.5,
            left_over=("c2",),
            overlaps=("c0",),
            nested=events.NestedSummary(calls=3, completed=2, blob="b1"),
        ),
        _turn(
            "call.finished",
            '"call_id":"c1","tool":"execute_code","outcome":"cancelled","reason":"steer",'
            '"started":true,"result":[{"type":"text","text":"part"},{"type":"json","value":[1]}],'
            '"duration":0.5,"left_over":["c2"],"overlaps":["c0"],'
            '"nested":{"calls":3,"completed":2,"blob":"b1"}',
        ),
    ),
    (
        events.CallSettled(**FACT, call_id="c1", duration=9.5),
        _fact("call.settled", '"call_id":"c1","duration":9.5'),
    ),
    (
        events.FilesChanged(**TURN, call_id="c1", path="a.py", before="b1", after="h2"),
        _turn("files.changed", '"call_id":"c1","path":"a.py","before":"b1","after":"h2"'),
    ),
    (
        events.ApprovalAsked(
            **TURN, approval_id="a1", call_id="c1", what="rm", why="w", risk="high", expires=60.5
        ),
        _turn(
            "approval.asked",
            '"approval_id":"a1","call_id":"c1","what":"rm","why":"w","risk":"high",'
            '"expires":60.5,"parent":null',
        ),
    ),
    (
        events.ApprovalAnswered(
            **TURN,
            approval_id="a1",
            call_id="c1",
            decision="once",
            by="ann",
            where="w",
            follows="a0",
        ),
        _turn(
            "approval.answered",
            '"approval_id":"a1","call_id":"c1","decision":"once","by":"ann","where":"w",'
            '"follows":"a0"',
        ),
    ),
    (
        events.ApprovalExpired(**TURN, approval_id="a1", call_id="c1", cause="undelivered"),
        _turn("approval.expired", '"approval_id":"a1","call_id":"c1","cause":"undelivered"'),
    ),
    (
        events.QuestionAsked(
            **TURN, question_id="q1", call_id="c1", text="Why?", expires=None, choices=("a", "b")
        ),
        _turn(
            "question.asked",
            '"question_id":"q1","call_id":"c1","text":"Why?","expires":null,"choices":["a","b"],'
            '"parent":null',
        ),
    ),
    (
        events.QuestionAnswered(
            **TURN, question_id="q1", call_id="c1", answer="that", by="ann", where="cli"
        ),
        _turn(
            "question.answered",
            '"question_id":"q1","call_id":"c1","answer":"that","by":"ann","where":"cli"',
        ),
    ),
    (
        events.QuestionExpired(**TURN, question_id="q1", call_id="c1", cause="timeout"),
        _turn("question.expired", '"question_id":"q1","call_id":"c1","cause":"timeout"'),
    ),
    (
        events.ModelRetried(**TURN, step_id="p1", cause="stalled", message="no token", delay=2.0),
        _turn("model.retried", '"step_id":"p1","cause":"stalled","message":"no token","delay":2.0'),
    ),
    (
        events.ModelSwitched(**TURN, step_id="p1", cause="quota", from_="o:m", to="l:n"),
        _turn("model.switched", '"step_id":"p1","cause":"quota","from":"o:m","to":"l:n"'),
    ),
    (
        events.ContextCompacted(
            **TURN, summary="so far", up_to=5, tokens_before=90, tokens_after=10
        ),
        _turn(
            "context.compacted", '"summary":"so far","up_to":5,"tokens_before":90,"tokens_after":10'
        ),
    ),
    (
        events.UsageRecorded(
            **FACT, purpose="title", model="o:m", usage=USAGE, cost=None, call_id="c1"
        ),
        _fact(
            "usage.recorded",
            f'"purpose":"title","model":"o:m","usage":{USAGE_JSON},"cost":null,"call_id":"c1"',
        ),
    ),
    (
        events.TextDelta(**LIVE, step_id="p1", text="he"),
        _live("text.delta", '"step_id":"p1","text":"he"'),
    ),
    (
        events.ReasoningDelta(**LIVE, step_id="p1", text="hm"),
        _live("reasoning.delta", '"step_id":"p1","text":"hm"'),
    ),
    (
        events.ArgumentsDelta(**LIVE, step_id="p1", call_id="c1", tool="sh", text='{"'),
        _live("arguments.delta", '"step_id":"p1","call_id":"c1","tool":"sh","text":"{\\""'),
    ),
    (events.StepReset(**LIVE, step_id="p1"), _live("step.reset", '"step_id":"p1"')),
    (
        events.CallOutput(**LIVE, call_id="c1", stream="stderr", text="oh", parent="c0"),
        _live("call.output", '"call_id":"c1","stream":"stderr","text":"oh","parent":"c0"'),
    ),
    (
        events.CallProgress(
            **LIVE, call_id="c1", done=1.0, total=4.0, note="page 1", parent="c0", nested=NESTED
        ),
        _live(
            "call.progress",
            '"call_id":"c1","done":1.0,"total":4.0,"note":"page 1","parent":"c0",'
            f'"nested":{NESTED_JSON}',
        ),
    ),
    (
        events.StepSnapshot(
            **LIVE, after=7, turn_id="t1", step_id="p1", text="he", calls=CALLS, running=RUNNING
        ),
        _live(
            "step.snapshot",
            '"after":7,"turn_id":"t1","step_id":"p1","text":"he","reasoning":"",'
            f'"calls":{CALLS_JSON},"running":{RUNNING_JSON}',
        ),
    ),
    (events.Resync(**LIVE), _live("resync")),
)

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
        events.decode(_live("turn.imagined").encode())


def test_a_word_outside_its_list_is_refused() -> None:
    text = _turn("turn.cancelling", '"reason":"boredom","by":"ann"')
    with pytest.raises(msgspec.ValidationError, match="boredom"):
        events.decode(text.encode())


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        events.decode(b'{"type":"resync"')


def test_a_change_says_only_what_changed() -> None:
    renamed = events.SessionChanged(**FACT, by="ann", title="New")
    assert events.encode(renamed).decode() == _fact("session.changed", '"by":"ann","title":"New"')
    moved = events.MessageChanged(**FACT, message_id="m2", by="ann", before="m1")
    expected = '"message_id":"m2","by":"ann","before":"m1"'
    assert events.encode(moved).decode() == _fact("message.changed", expected)
    assert events.decode(events.encode(moved)) == moved
