"""Writes a session with months of work directly into a store.

Its turns are of all kinds: short texts, prose, code, tables, and steps with calls that print, edit
and fail. The session is the same every time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import msgspec

from keryx.events import CallEffects, CallFinished, CallStarted, LoggedEvent
from keryx.messages import Json, Text, ToolCall
from keryx.ports.store import Commit, Store
from keryx.testing.event_factory import EventFactory

AT_ONCE: Final = 600
"""Events in one commit."""
BEGAN: Final = 1_780_000_000.0
TURN_INTERVAL: Final = 40.0
"""Seconds from one turn to the next."""

_SENTENCE: Final = "The reader keeps a *bounded* queue; past its bound it is told to `resync`. "
_PROSE: Final = (
    "## What I found\n\n{}\n\n- one\n- two\n  1. deeper\n\n> Quoted, with `code` in it.\n"
)
_CODE: Final = """Like this:

```python
async def read(stream: Stream) -> AsyncIterator[Event]:
    async for line in stream:  # turn {number}
        if line.startswith("data: "):
            yield decode(line)
```

That is all of it.
"""
_TABLE: Final = """| step | time | result |
|:-----|-----:|--------|
| parse the input of turn {number} | 1.2 ms | fine |
| send it | 120.4 ms | slow |
"""
_SOURCE: Final = '"""Reads."""\n\n\ndef read(path):\n    return open(path).read()\n'


async def write_long_session(
    store: Store, session_id: str, *, messages: int, title: str = "A long session"
) -> None:
    """Write that many messages: half of them a person's, half of them replies."""
    epoch = await store.claim(session_id)
    facts = _facts(session_id, messages // 2, title)
    while events := tuple(itertools.islice(facts, AT_ONCE)):
        await store.append(Commit(session_id=session_id, epoch=epoch, events=events))


def said(number: int) -> str:
    """Return the person's message in this turn; the first is turn 0."""
    more = " Take your time, and say what you did and why." if number % 4 == 3 else ""
    return f"Message {number}: look at the reader once more.{more}"


def replied(number: int) -> str:
    """Return the beginning of the reply in this turn."""
    return f"Reply {number}."


def _facts(session_id: str, turns: int, title: str) -> Iterator[LoggedEvent]:
    facts = EventFactory(session_id, at=BEGAN)
    yield facts.opened(title)
    for number in range(turns):
        facts.at = BEGAN + TURN_INTERVAL * number
        turn_id = f"turn-{number}"
        message_id = f"message-{number}"
        yield facts.accepted(message_id, said(number), turn_id)
        yield facts.delivered(message_id, turn_id)
        yield facts.started(turn_id, message_id)
        yield from _step(facts, number, turn_id)
        yield facts.finished(turn_id)


def _step(facts: EventFactory, number: int, turn_id: str) -> Iterator[LoggedEvent]:
    step_id = f"step-{number}"
    yield msgspec.structs.replace(facts.step(turn_id=turn_id), step_id=step_id)
    calls = _calls(number)
    facts.at += 3
    reply = facts.replied(_text(number), turn_id=turn_id, calls=calls)
    yield msgspec.structs.replace(reply, step_id=step_id)
    for call in calls:
        yield CallStarted(
            session_id=facts.session_id,
            at=facts.at,
            seq=_seq(facts),
            turn_id=turn_id,
            call_id=call.call_id,
            step_id=step_id,
            by="model",
            tool=call.tool,
            arguments=call.arguments,
            preview="",
            effects=CallEffects(),
            replay="never",
        )
    for place, call in enumerate(calls):
        facts.at += 0.4
        yield _end(facts, turn_id, call, failed=(number + place) % 11 == 0)


def _end(facts: EventFactory, turn_id: str, call: ToolCall, *, failed: bool) -> CallFinished:
    output = "\n".join(f"{line:03} src/keryx/reader.py: checked" for line in range(12))
    value = msgspec.json.encode({"output": output, "exit_code": int(failed)})
    return CallFinished(
        session_id=facts.session_id,
        at=facts.at,
        seq=_seq(facts),
        turn_id=turn_id,
        call_id=call.call_id,
        tool=call.tool,
        outcome="failed" if failed else "completed",
        reason="error" if failed else None,
        started=True,
        result=(Text("It went wrong."),) if failed else (Json(msgspec.Raw(value)),),
        duration=0.4,
    )


def _seq(facts: EventFactory) -> int:
    facts.last_seq += 1
    return facts.last_seq


def _calls(number: int) -> tuple[ToolCall, ...]:
    """Return the calls of a turn: none in most turns, four in some."""
    count = (0, 0, 1, 0, 4, 2)[number % 6]
    return tuple(_call(number, place) for place in range(count))


def _call(number: int, place: int) -> ToolCall:
    call_id = f"call-{number}-{place}"
    if place == 1:
        new = _SOURCE.replace("open(path).read()", "path.read_text()")
        edit = {"path": f"src/reader{number}.py", "old_string": _SOURCE, "new_string": new}
        return ToolCall(call_id, "patch", msgspec.json.encode(edit).decode())
    command = {"command": f"grep -rn reader src | head -n {number % 40}"}
    return ToolCall(call_id, "terminal", msgspec.json.encode(command).decode())


def _text(number: int) -> str:
    """Return the reply of a turn, in one of eight forms."""
    bodies = (
        "",
        _SENTENCE,
        _CODE.format(number=number),
        _SENTENCE * 3,
        _PROSE.format(_SENTENCE * 6),
        _TABLE.format(number=number),
        _SENTENCE * 14,
        _PROSE.format(_SENTENCE) + _CODE.format(number=number) + _SENTENCE * 5,
    )
    return f"{replied(number)}\n\n{bodies[number % len(bodies)]}".rstrip()
