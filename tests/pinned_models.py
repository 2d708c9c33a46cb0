"""The form of each fact about models and memory on the wire and in the log."""

from __future__ import annotations

from keryx import events
from keryx.events import Event
from tests.pinned import FACT, TURN, USAGE, USAGE_JSON, fact_text, turn_text

PINNED_MODELS: tuple[tuple[Event, str], ...] = (
    (
        events.ModelRetried(**TURN, step_id="p1", cause="stalled", message="no token", delay=2.0),
        turn_text(
            "model.retried", '"step_id":"p1","cause":"stalled","message":"no token","delay":2.0'
        ),
    ),
    (
        events.ModelSwitched(**TURN, step_id="p1", cause="quota", from_="o:m", to="l:n"),
        turn_text("model.switched", '"step_id":"p1","cause":"quota","from":"o:m","to":"l:n"'),
    ),
    (
        events.ContextCompacted(
            **TURN,
            summary="so far",
            up_to=5,
            tokens_before=90,
            tokens_after=10,
            focus="tea",
            verbatim=events.Verbatim(
                said=(events.Said("m1", "hi"),), left_out=2, plan="first", files=("a.md",)
            ),
        ),
        turn_text(
            "context.compacted",
            '"summary":"so far","up_to":5,"tokens_before":90,"tokens_after":10,"focus":"tea",'
            '"verbatim":{"said":[{"message_id":"m1","text":"hi"}],"left_out":2,"plan":"first",'
            '"files":["a.md"]}',
        ),
    ),
    (
        events.UsageRecorded(
            **FACT, purpose="title", model="o:m", usage=USAGE, cost=None, call_id="c1"
        ),
        fact_text(
            "usage.recorded",
            f'"purpose":"title","model":"o:m","usage":{USAGE_JSON},"cost":null,"call_id":"c1"',
        ),
    ),
    (
        events.ToolsLoaded(**FACT, names=("mcp_a_b",), call_id="c1"),
        fact_text("tools.loaded", '"names":["mcp_a_b"],"call_id":"c1"'),
    ),
    (
        events.MemoryChanged(
            **FACT, memory_id="mem_1", change="replace", call_id="c1", text="tea", target="mem_0"
        ),
        fact_text(
            "memory.changed",
            '"memory_id":"mem_1","change":"replace","call_id":"c1","turn_id":null,"text":"tea",'
            '"kind":"fact","about":"user","trust":"tool","target":"mem_0","profile":"",'
            '"workspace":""',
        ),
    ),
    (
        events.MemoryRecalled(
            **TURN,
            memories=(
                events.RecalledMemory(memory_id="mem_1", text="tea", trust="page", provider="p"),
            ),
        ),
        turn_text(
            "memory.recalled",
            '"memories":[{"memory_id":"mem_1","text":"tea","trust":"page","provider":"p",'
            '"session_id":"","at":0.0}],"late":[],"waited":0.0',
        ),
    ),
)
