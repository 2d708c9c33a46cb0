"""Every event, and its JSON form for ever."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from keryx import events
from keryx.events import Event
from keryx.messages import (
    ApprovalMode,
    CallAnswer,
    ClientTool,
    File,
    HookAction,
    Image,
    Json,
    Mode,
    Needs,
    Text,
    ToolCall,
    TurnOptions,
)


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
    approvals: ApprovalMode | None
    read_only: bool
    tags: tuple[str, ...]


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
    "approvals": "ask",
    "read_only": True,
    "tags": ("Work",),
}
LOOK_JSON = (
    '"model":"o:m","profile":"home","place":"local","workspace":"/w","tools":["sh"],'
    '"effort":null,"personality":"terse","title":"Hello","pinned":true,"archived":false,'
    '"approvals":"ask","read_only":true,"tags":["Work"]'
)
ATTACHED_JSON = (
    '[{"type":"image","blob":"b1","media_type":"image/png","name":"i.png"},'
    '{"type":"file","blob":"b2","media_type":"text/csv","name":"f.csv"}]'
)
ACCEPTED: dict[str, Any] = {
    "turn_id": "t1",
    "key": "k1",
    "by": "ann",
    "wait": True,
    "attended": False,
}
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
        call_id="c2",
        tool="sh",
        output="line",
        done=1.0,
        total=2.0,
        note="n",
        nested=events.RunningNested(
            began=3,
            ended=2,
            completed=1,
            calls=(events.ShownNested(call_id="c2.1", tool="read", start=0.5, preview="a"),),
            tools=(
                events.ShownTool(
                    tool="read", began=3, ended={"completed": 1, "failed": 1}, first=0.5, last=2.0
                ),
            ),
        ),
    ),
)
RUNNING_JSON = (
    '[{"call_id":"c2","tool":"sh","output":"line","done":1.0,"total":2.0,"note":"n",'
    '"nested":{"began":3,"ended":2,"completed":1,"calls":'
    '[{"call_id":"c2.1","tool":"read","start":0.5,"preview":"a","outcome":null,"duration":null}],'
    '"tools":[{"tool":"read","began":3,"ended":{"completed":1,"failed":1},'
    '"first":0.5,"last":2.0}]}}]'
)
USAGE = events.Usage(input_tokens=9, output_tokens=4, cached_tokens=2, reasoning_tokens=1)
USAGE_JSON = '{"input_tokens":9,"output_tokens":4,"cached_tokens":2,"reasoning_tokens":1}'


def live_text(name: str, rest: str = "") -> str:
    return f'{{"type":"{name}","session_id":"s1","at":1.5,"v":1{rest and ","}{rest}}}'


def fact_text(name: str, rest: str) -> str:
    return live_text(name, f'"seq":7,{rest}')


def turn_text(name: str, rest: str) -> str:
    return fact_text(name, f'"turn_id":"t1",{rest}')


PINNED: tuple[tuple[Event, str], ...] = (
    (
        events.SessionOpened(
            **FACT,
            **LOOK,
            parent=events.ParentCall(session_id="s0", call_id="c0"),
            fork=events.ForkPoint(session_id="s9", up_to=3),
            brought=("tool:add",),
            person="telegram:42",
        ),
        fact_text(
            "session.opened",
            f'{LOOK_JSON},"parent":{{"session_id":"s0","call_id":"c0"}},'
            '"fork":{"session_id":"s9","up_to":3},"brought":["tool:add"],'
            '"person":"telegram:42"',
        ),
    ),
    (
        events.SessionChanged(**FACT, **LOOK, by="ann"),
        fact_text("session.changed", f'"by":"ann",{LOOK_JSON}'),
    ),
    (
        events.MessageAccepted(
            **FACT,
            **SAID,
            **ACCEPTED,
            schema="{}",
            options=TurnOptions(
                instructions="be kind",
                client_tools=(ClientTool(name="look", parameters="{}", description="looks"),),
                max_tokens=9,
                request="{}",
            ),
            variants=("t0",),
        ),
        fact_text(
            "message.accepted",
            '"message_id":"m1","turn_id":"t1","key":"k1","by":"ann","mode":"steer",'
            f'"text":"go","workspace":"/w","attachments":{ATTACHED_JSON},"wait":true,"attended":false,"schema":"{{}}",'
            '"options":{"instructions":"be kind","client_tools":[{"name":"look","parameters":"{}",'
            '"description":"looks"}],"max_tokens":9,"request":"{}"},"variants":["t0"]',
        ),
    ),
    (
        events.MessageChanged(**FACT, **SAID, by="ann", turn_id="t2", before=None),
        fact_text(
            "message.changed",
            '"message_id":"m1","by":"ann","turn_id":"t2","mode":"steer","text":"go",'
            f'"workspace":"/w","attachments":{ATTACHED_JSON},"before":null',
        ),
    ),
    (
        events.MessageWithdrawn(**FACT, message_id="m1", by="ann"),
        fact_text("message.withdrawn", '"message_id":"m1","by":"ann"'),
    ),
    (
        events.MessageDelivered(**TURN, message_id="m1"),
        turn_text("message.delivered", '"message_id":"m1"'),
    ),
    (
        events.MessageExpired(**TURN, message_id="m1", cause="interrupt"),
        turn_text("message.expired", '"message_id":"m1","cause":"interrupt"'),
    ),
    (
        events.PromptChanged(**FACT, part="skills", blob="b1"),
        fact_text("prompt.changed", '"part":"skills","blob":"b1"'),
    ),
    (
        events.TurnStarted(**TURN, message_ids=("m1", "m2"), warnings=("hm",)),
        turn_text("turn.started", '"message_ids":["m1","m2"],"warnings":["hm"]'),
    ),
    (events.TurnResumed(**TURN, attempt=2), turn_text("turn.resumed", '"attempt":2')),
    (events.TurnSuspended(**TURN), fact_text("turn.suspended", '"turn_id":"t1"')),
    (
        events.TurnCancelling(**TURN, reason="interrupt", by="ann"),
        turn_text("turn.cancelling", '"reason":"interrupt","by":"ann"'),
    ),
    (
        events.TurnUndone(**TURN, by="ann", branch="t0"),
        turn_text("turn.undone", '"by":"ann","branch":"t0"'),
    ),
    (
        events.TurnRestored(**TURN, by="ann", variants=("t0", "t1")),
        turn_text("turn.restored", '"by":"ann","variants":["t0","t1"]'),
    ),
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
        turn_text(
            "turn.finished",
            f'"outcome":"failed","usage":{USAGE_JSON},"cost":null,"reason":"timeout",'
            '"started":false,"left_over":["c1"],'
            '"error":{"kind":"rate_limit","message":"slow down","hint":"wait 3 s"}',
        ),
    ),
    (
        events.StepStarted(**TURN, step_id="p1", model="o:m", effort="low"),
        turn_text("step.started", '"step_id":"p1","model":"o:m","effort":"low"'),
    ),
    (
        events.StepAbandoned(**TURN, step_id="p1", cause="crash", asked=True),
        turn_text("step.abandoned", '"step_id":"p1","cause":"crash","asked":true'),
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
            opaque=(
                events.Opaque(
                    provider="anthropic",
                    item=msgspec.Raw(b'{"sig":"x"}'),
                    after_text=2,
                    after_calls=1,
                ),
            ),
            calls=CALLS,
            cut=True,
            first_token=0.5,
        ),
        turn_text(
            "step.replied",
            f'"step_id":"p1","text":"hi","usage":{USAGE_JSON},"cost":0.25,'
            '"context":{"window":100,"compact_at":80,"last_prompt_tokens":9},'
            '"stop_reason":"tool_calls","reasoning":"hm",'
            '"opaque":[{"provider":"anthropic","item":{"sig":"x"},"after_text":2,"after_calls":1}],'
            f'"calls":{CALLS_JSON},"cut":true,"first_token":0.5',
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
        turn_text(
            "call.started",
            '"call_id":"c1","step_id":"p1","by":"model","tool":"sh","arguments":"{}",'
            f'"preview":"ls","effects":{EFFECTS_JSON},"replay":"never","overlaps":["c0"],'
            '"arguments_blob":"b1"',
        ),
    ),
    (
        events.CallAmended(
            **TURN,
            call_id="c1",
            tool="sh",
            hooks=(HookAction("guard", "before_call", "input"),),
            arguments="{}",
            arguments_blob="b1",
        ),
        turn_text(
            "call.amended",
            '"call_id":"c1","tool":"sh","hooks":[{"hook":"guard","event":"before_call",'
            '"action":"input","detail":""}],"arguments":"{}","arguments_blob":"b1"',
        ),
    ),
    (
        events.NestedFinished(
            **TURN,
            call_id="c1",
            calls=(
                events.NestedCall(
                    call_id="c1.1", tool="sh", start=0.5, duration=1.5, outcome="completed"
                ),
            ),
            sums=(events.NestedSum(tool="sh", calls=2, duration=0.5, completed=1),),
            total=3,
            completed=2,
        ),
        turn_text(
            "nested.finished",
            '"call_id":"c1","calls":[{"call_id":"c1.1","tool":"sh","start":0.5,"duration":1.5,'
            '"outcome":"completed","preview":""}],"sums":[{"tool":"sh","calls":2,"duration":0.5,'
            '"completed":1,"ended":{}}],"total":3,"completed":2',
        ),
    ),
    (
        events.CallsAnswered(
            **TURN,
            answers=(CallAnswer("p1.1", "sunny"),),
            client_tools=("look",),
            by="ann",
            request="{}",
        ),
        turn_text(
            "calls.answered",
            '"answers":[{"call_id":"p1.1","text":"sunny"}],"client_tools":["look"],"by":"ann",'
            '"request":"{}"',
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
            hooks=(HookAction("tidy", "after_call", "note", "formatted"),),
        ),
        turn_text(
            "call.finished",
            '"call_id":"c1","tool":"execute_code","outcome":"cancelled","reason":"steer",'
            '"started":true,"result":[{"type":"text","text":"part"},{"type":"json","value":[1]}],'
            '"duration":0.5,"left_over":["c2"],"overlaps":["c0"],'
            '"nested":{"calls":3,"completed":2,"blob":"b1"},"hooks":[{"hook":"tidy",'
            '"event":"after_call","action":"note","detail":"formatted"}]',
        ),
    ),
    (
        events.CallSettled(**FACT, call_id="c1", duration=9.5),
        fact_text("call.settled", '"call_id":"c1","duration":9.5'),
    ),
    (
        events.FilesChanged(
            **TURN,
            call_id="c1",
            path="a.py",
            before="b1",
            after="h2",
            kept=False,
            workspace="/w",
        ),
        turn_text(
            "files.changed",
            '"call_id":"c1","path":"a.py","before":"b1","after":"h2","kept":false,"workspace":"/w"',
        ),
    ),
    (
        events.ApprovalAsked(
            **TURN,
            approval_id="a1",
            call_id="c1",
            what="rm",
            why="w",
            risk="high",
            expires=60.5,
            tool="sh",
            patterns=("rm",),
            needs=Needs(network=True, reads=("/r",), writes=("/w",)),
            workspace="/w",
            offers=(events.Offer("exact", "sh: rm, in /w", ("rm",), "/w"),),
            arguments="{}",
            arguments_blob="ab",
        ),
        turn_text(
            "approval.asked",
            '"approval_id":"a1","call_id":"c1","what":"rm","why":"w","risk":"high",'
            '"expires":60.5,"parent":null,"tool":"sh","patterns":["rm"],'
            '"needs":{"network":true,"reads":["/r"],"writes":["/w"]},"workspace":"/w",'
            '"offers":[{"reach":"exact","says":"sh: rm, in /w","patterns":["rm"],'
            '"workspace":"/w"}],"arguments":"{}","arguments_blob":"ab"',
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
            reach="folder",
        ),
        turn_text(
            "approval.answered",
            '"approval_id":"a1","call_id":"c1","decision":"once","by":"ann","where":"w",'
            '"follows":"a0","reach":"folder"',
        ),
    ),
    (
        events.ApprovalExpired(**TURN, approval_id="a1", call_id="c1", cause="undelivered"),
        turn_text("approval.expired", '"approval_id":"a1","call_id":"c1","cause":"undelivered"'),
    ),
    (
        events.QuestionAsked(
            **TURN, question_id="q1", call_id="c1", text="Why?", expires=None, choices=("a", "b")
        ),
        turn_text(
            "question.asked",
            '"question_id":"q1","call_id":"c1","text":"Why?","expires":null,"choices":["a","b"],'
            '"parent":null',
        ),
    ),
    (
        events.QuestionAnswered(
            **TURN, question_id="q1", call_id="c1", answer="that", by="ann", where="cli"
        ),
        turn_text(
            "question.answered",
            '"question_id":"q1","call_id":"c1","answer":"that","by":"ann","where":"cli"',
        ),
    ),
    (
        events.QuestionExpired(**TURN, question_id="q1", call_id="c1", cause="timeout"),
        turn_text("question.expired", '"question_id":"q1","call_id":"c1","cause":"timeout"'),
    ),
)
