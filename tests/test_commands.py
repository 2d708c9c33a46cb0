"""The JSON form of every command is pinned here: what a front end sends today is understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, get_args

import msgspec
import pytest

from keryx import commands, events
from keryx.commands import Command
from keryx.messages import CallAnswer, File, Image, TurnOptions

NAMES = {
    "message.send",
    "message.change",
    "message.withdraw",
    "turn.cancel",
    "turn.undo",
    "turn.restore",
    "call.cancel",
    "call.run",
    "calls.answer",
    "files.revert",
    "approval.answer",
    "question.answer",
    "session.change",
    "context.compact",
    "session.fork",
    "draft.set",
}


class _Head(TypedDict):
    command_id: str
    session_id: str
    by: str


HEAD: _Head = {"command_id": "x1", "session_id": "s1", "by": "ann"}
ATTACHED = (Image("b1", "image/png", "i.png"), File("b2", "text/csv", "f.csv"))
ATTACHED_JSON = (
    '[{"type":"image","blob":"b1","media_type":"image/png","name":"i.png"},'
    '{"type":"file","blob":"b2","media_type":"text/csv","name":"f.csv"}]'
)


def _text(name: str, rest: str = "") -> str:
    head = f'"type":"{name}","command_id":"x1","session_id":"s1","by":"ann","v":1'
    return f"{{{head}{rest and ','}{rest}}}"


PINNED: tuple[tuple[Command, str], ...] = (
    (
        commands.SendMessage(
            **HEAD,
            text="go",
            mode="steer",
            turn_id="t1",
            attachments=ATTACHED,
            workspace="/w",
            key="k1",
            wait=True,
            schema="{}",
            attended=False,
            options=TurnOptions(max_tokens=9),
            replaces="t0",
            revert=True,
        ),
        _text(
            "message.send",
            f'"text":"go","mode":"steer","turn_id":"t1","attachments":{ATTACHED_JSON},'
            '"workspace":"/w","key":"k1","wait":true,"schema":"{}","attended":false,'
            '"options":{"max_tokens":9},'
            '"replaces":"t0","revert":true',
        ),
    ),
    (
        commands.ChangeMessage(
            **HEAD,
            message_id="m1",
            mode="queue",
            text="stay",
            attachments=ATTACHED,
            workspace="/w",
            before="m0",
        ),
        _text(
            "message.change",
            f'"message_id":"m1","mode":"queue","text":"stay","attachments":{ATTACHED_JSON},'
            '"workspace":"/w","before":"m0"',
        ),
    ),
    (
        commands.WithdrawMessage(**HEAD, message_id="m1"),
        _text("message.withdraw", '"message_id":"m1"'),
    ),
    (
        commands.CancelTurn(**HEAD, turn_id="t1"),
        _text("turn.cancel", '"turn_id":"t1","reason":"interrupt"'),
    ),
    (commands.UndoTurn(**HEAD, turn_id="t1"), _text("turn.undo", '"turn_id":"t1","files":true')),
    (commands.RestoreTurn(**HEAD, turn_id="t1"), _text("turn.restore", '"turn_id":"t1"')),
    (
        commands.CancelCall(**HEAD, call_id="c1", reason="timeout"),
        _text("call.cancel", '"call_id":"c1","reason":"timeout"'),
    ),
    (
        commands.RunCall(**HEAD, call_id="c1", tool="terminal", workspace="/w"),
        _text(
            "call.run",
            '"call_id":"c1","tool":"terminal","arguments":"{}","workspace":"/w","attended":true',
        ),
    ),
    (
        commands.AnswerCalls(**HEAD, answers=(CallAnswer("p1.1", "sunny"),), request="{}"),
        _text("calls.answer", '"answers":[{"call_id":"p1.1","text":"sunny"}],"request":"{}"'),
    ),
    (commands.RevertFiles(**HEAD, changes=(4, 7)), _text("files.revert", '"changes":[4,7]')),
    (
        commands.AnswerApproval(
            **HEAD, approval_id="a1", decision="always", where="web", reach="folder"
        ),
        _text(
            "approval.answer",
            '"approval_id":"a1","decision":"always","where":"web","reach":"folder"',
        ),
    ),
    (
        commands.AnswerQuestion(**HEAD, question_id="q1", answer="that", where="cli"),
        _text("question.answer", '"question_id":"q1","answer":"that","where":"cli"'),
    ),
    (
        commands.ChangeSession(
            **HEAD,
            model="openai:m",
            profile="work",
            place="box",
            workspace="/w",
            tools=(),
            effort="high",
            personality=None,
            title="Hello",
            pinned=True,
            archived=False,
            approvals="never",
            read_only=True,
            tags=("Work",),
        ),
        _text(
            "session.change",
            '"model":"openai:m","profile":"work","place":"box","workspace":"/w","tools":[],'
            '"effort":"high","personality":null,"title":"Hello","pinned":true,"archived":false,'
            '"approvals":"never","read_only":true,"tags":["Work"]',
        ),
    ),
    (
        commands.CompactContext(**HEAD, focus="the tea"),
        _text("context.compact", '"focus":"the tea"'),
    ),
    (
        commands.ForkSession(**HEAD, new_session_id="s2", turn_id="t1", title="Copy"),
        _text("session.fork", '"new_session_id":"s2","turn_id":"t1","title":"Copy"'),
    ),
    (
        commands.SetDraft(**HEAD, text="he", attachments=ATTACHED),
        _text("draft.set", f'"text":"he","attachments":{ATTACHED_JSON}'),
    ),
)

each_command = pytest.mark.parametrize(
    ("command", "text"), [pytest.param(*pin, id=type(pin[0]).__name__) for pin in PINNED]
)


def _without(text: str, *names: str) -> bytes:
    members: Mapping[str, object] = msgspec.json.decode(text)
    return msgspec.json.encode({key: members[key] for key in members if key not in names})


def test_the_names_are_unique_and_no_event_has_one_of_them() -> None:
    names = [member.__struct_config__.tag for member in get_args(Command)]
    assert set(names) == NAMES
    assert len(names) == len(NAMES)
    assert NAMES.isdisjoint(member.__struct_config__.tag for member in get_args(events.Event))


def test_every_command_has_a_pinned_form() -> None:
    assert {type(command) for command, _ in PINNED} == set(get_args(Command))


@each_command
def test_a_command_has_its_pinned_form_on_the_wire_and_comes_back(
    command: Command, text: str
) -> None:
    assert commands.encode(command) == text.encode()
    assert commands.decode(text.encode()) == command


@each_command
def test_an_unknown_field_is_skipped(command: Command, text: str) -> None:
    newer = text[:-1] + ',"of_a_newer_writer":{"a":[1]}}'
    assert commands.decode(newer.encode()) == command


@each_command
def test_a_missing_required_field_is_refused(command: Command, text: str) -> None:
    required = [f.encode_name for f in msgspec.structs.fields(command) if f.required]
    assert {"command_id", "session_id", "by"} <= set(required)
    for name in ["type", *required]:
        with pytest.raises(msgspec.ValidationError, match=f"missing required field `{name}`"):
            commands.decode(_without(text, name))


@each_command
def test_an_optional_field_may_be_absent(command: Command, text: str) -> None:
    optional = [f.encode_name for f in msgspec.structs.fields(command) if not f.required]
    assert type(commands.decode(_without(text, *optional))) is type(command)


def test_an_unknown_type_is_refused_by_its_name() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"'turn\.imagine' - at `\$\.type`"):
        commands.decode(_text("turn.imagine").encode())


def test_an_event_is_no_command() -> None:
    said = events.TurnUndone(session_id="s1", at=1.5, seq=7, turn_id="t1", by="ann")
    with pytest.raises(msgspec.ValidationError, match=r"turn\.undone"):
        commands.decode(events.encode(said))


def test_a_word_outside_its_list_is_refused() -> None:
    text = _text("approval.answer", '"approval_id":"a1","decision":"maybe","where":"web"')
    with pytest.raises(msgspec.ValidationError, match="maybe"):
        commands.decode(text.encode())


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        commands.decode(b'{"type":"context.compact"')


def test_to_leave_a_field_out_is_not_to_clear_it() -> None:
    title = commands.ChangeSession(**HEAD, title="New")
    assert commands.encode(title).decode() == _text("session.change", '"title":"New"')
    plain = commands.ChangeSession(**HEAD, personality=None)
    assert commands.encode(plain).decode() == _text("session.change", '"personality":null')
    last = commands.ChangeMessage(**HEAD, message_id="m1", before=None)
    assert commands.encode(last).decode() == _text(
        "message.change", '"message_id":"m1","before":null'
    )
