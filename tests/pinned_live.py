"""The form of each live event on the wire. A form that changed breaks readers of streams."""

from __future__ import annotations

from keryx import events
from keryx.events import Event
from tests.pinned import (
    CALLS,
    CALLS_JSON,
    LIVE,
    NESTED,
    NESTED_JSON,
    RUNNING,
    RUNNING_JSON,
    live_text,
)

PINNED_LIVE: tuple[tuple[Event, str], ...] = (
    (
        events.TextDelta(**LIVE, step_id="p1", text="he"),
        live_text("text.delta", '"step_id":"p1","text":"he"'),
    ),
    (
        events.ReasoningDelta(**LIVE, step_id="p1", text="hm"),
        live_text("reasoning.delta", '"step_id":"p1","text":"hm"'),
    ),
    (
        events.ArgumentsDelta(**LIVE, step_id="p1", call_id="c1", tool="sh", text='{"'),
        live_text("arguments.delta", '"step_id":"p1","call_id":"c1","tool":"sh","text":"{\\""'),
    ),
    (events.StepReset(**LIVE, step_id="p1"), live_text("step.reset", '"step_id":"p1"')),
    (
        events.CallOutput(**LIVE, call_id="c1", stream="stderr", text="oh", parent="c0"),
        live_text("call.output", '"call_id":"c1","stream":"stderr","text":"oh","parent":"c0"'),
    ),
    (
        events.CallProgress(
            **LIVE, call_id="c1", done=1.0, total=4.0, note="page 1", parent="c0", nested=NESTED
        ),
        live_text(
            "call.progress",
            '"call_id":"c1","done":1.0,"total":4.0,"note":"page 1","parent":"c0",'
            f'"nested":{NESTED_JSON}',
        ),
    ),
    (
        events.StepSnapshot(**LIVE, after=7, turn_id="t1", step_id="p1", text="he", calls=CALLS),
        live_text(
            "step.snapshot",
            '"after":7,"turn_id":"t1","step_id":"p1","text":"he","reasoning":"",'
            f'"calls":{CALLS_JSON}',
        ),
    ),
    (
        events.CallsSnapshot(**LIVE, after=7, running=RUNNING),
        live_text("calls.snapshot", f'"after":7,"running":{RUNNING_JSON}'),
    ),
    (
        events.ContextCompacting(**LIVE, turn_id="t1", tokens_before=900),
        live_text("context.compacting", '"turn_id":"t1","tokens_before":900,"over":false'),
    ),
    (events.Resync(**LIVE), live_text("resync")),
)
